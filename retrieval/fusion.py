"""Weighted reciprocal rank fusion: several rankings of one query become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, isfinite

import msgspec

from retrieval.errors import FusionError
from retrieval.types import Leg

FIRST_RANK = 1
"""Ranks start at 1, so that an absent memory (0) is worth less than any place in a ranking."""


class Fused(msgspec.Struct, frozen=True, gc=False):
    """One fused memory.

    Attributes:
        id: the memory.
        score: the sum of the formula, > 0.
    """

    id: str
    score: float


def weighted_rrf(
    rankings: Mapping[Leg, Sequence[str]], weights: Mapping[Leg, float], *, rrf_k: float = 60
) -> list[Fused]:
    """Fuse rankings: score(d) = sum over legs of weights[leg] / (rrf_k + rank), rank from 1.

    A memory that a leg did not return gets 0 from it. A leg of weight 0 gives nothing: a memory that
    only such legs returned has no place in the result, which is empty if all weights are 0.
    The sum is exactly rounded, so the order of the legs cannot change it. Unweighted form: Cormack,
    Clarke and Buettcher, SIGIR 2009, doi:10.1145/1571941.1572114.

    Args:
        rankings: best-first ids per leg, no repeats.
        weights: finite, >= 0, one per leg present; they need not sum to 1.
        rrf_k: smoothing constant, > 0.

    Returns:
        Each id once, score descending, ties by id.

    Raises:
        FusionError: a repeated id, a missing, negative or non-finite weight, or rrf_k not above 0.

    >>> [f.id for f in weighted_rrf({"bm25": ["a", "b"], "vector": ["b"]}, {"bm25": 1.0, "vector": 1.0})]
    ['b', 'a']
    """
    if not (isfinite(rrf_k) and rrf_k > 0):
        raise FusionError(f"rrf_k is {rrf_k}, must be above 0", loc=("rrf_k",))
    scores: dict[str, float] = {}
    parts: dict[str, list[float]] = {}
    for leg, ranking in rankings.items():
        weight = _checked_weight(weights, leg)
        values = [weight / (rrf_k + rank) for rank in range(FIRST_RANK, FIRST_RANK + len(ranking))]
        shares = dict(zip(ranking, values, strict=True))
        if len(shares) < len(ranking):
            twice = next(id for at, id in enumerate(ranking) if id in ranking[:at])
            raise FusionError(f"the ranking of {leg} has {twice!r} twice", loc=("rankings", leg))
        if weight:
            for id in scores.keys() & shares.keys():
                parts.setdefault(id, [scores[id]]).append(shares[id])
            scores = shares | scores
    for id, summands in parts.items():
        scores[id] = fsum(summands)
    # A sort keeps the order of equals, reversed or not; few have any.
    distinct = len(set(scores.values())) == len(scores)
    order = sorted(scores if distinct else sorted(scores), key=scores.__getitem__, reverse=True)
    return list(map(Fused, order, map(scores.__getitem__, order)))


def _checked_weight(weights: Mapping[Leg, float], leg: Leg) -> float:
    if leg not in weights:
        raise FusionError(f"no weight for {leg}", loc=("weights", leg))
    weight = weights[leg]
    if not (isfinite(weight) and weight >= 0):
        raise FusionError(f"the weight of {leg} is {weight}, must be finite and not negative", loc=("weights", leg))
    return weight
