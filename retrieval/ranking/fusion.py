"""Weighted reciprocal rank fusion of the rankings of one query."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import fsum, isfinite
from typing import NamedTuple

from classifier.candidates import BLEND_K
from retrieval.errors import FusionError
from retrieval.types.search import Leg

FIRST_RANK = 1
"""Rank of the best hit in the formula of the fusion."""


class FusedOrder(NamedTuple):
    """Candidate numbers, best first, and their scores."""

    numbers: list[int]
    scores: list[float]


def fuse(rankings: Iterable[tuple[Sequence[int], float]], *, rrf_k: float) -> FusedOrder:
    """Fuse rankings: score(d) = sum over legs of weight / (rrf_k + rank), rank from 1; ties go by number.

    A candidate that a leg did not return gets 0 from it. A leg of weight 0 contributes nothing: a candidate that
    only such legs returned is left out, and the result is empty if all weights are 0. The weights need not sum to 1.
    The sum is exactly rounded, so it does not depend on the order of the legs. Unweighted form: Cormack, Clarke and
    Buettcher, SIGIR 2009, doi:10.1145/1571941.1572114.

    Each of `rankings` has the numbers of its candidates, best first, without repeats, and a weight that is finite and
    >= 0. Raises FusionError if rrf_k is not above 0, or if scores overflow.
    """
    if not (isfinite(rrf_k) and rrf_k > 0):
        raise FusionError(f"rrf_k is {rrf_k}, must be above 0", loc=("rrf_k",))
    parts: defaultdict[int, list[float]] = defaultdict(list)
    for numbers, weight in rankings:
        if weight:
            for rank, number in enumerate(numbers, FIRST_RANK):
                parts[number].append(weight / (rrf_k + rank))
    try:
        scores = {number: fsum(parts[number]) for number in sorted(parts)}
    except OverflowError as exc:
        raise FusionError("the weights are too large", loc=("weights",)) from exc
    order = sorted(scores, key=scores.__getitem__, reverse=True)  # keeps the order of equal ones
    return FusedOrder(order, [scores[number] for number in order])


def checked_weight(weights: Mapping[Leg, float], leg: Leg) -> float:
    """The weight of a leg; raises FusionError if it is missing, negative or not finite."""
    if leg not in weights:
        raise FusionError(f"no weight for {leg}", loc=("weights", leg))
    weight = weights[leg]
    if not (isfinite(weight) and weight >= 0):
        raise FusionError(f"the weight of {leg} is {weight}, must be finite and not negative", loc=("weights", leg))
    return weight


def blend(rescored: Sequence[float], share: float) -> FusedOrder:
    """Blend two rankings: score(d) = (1 - s) / (k + fused rank) + s / (k + rescored rank).

    `rescored` has the rescorer's scores in the order of the fusion, whose places the result numbers from 0; minus
    infinity for what was not rescored, which ranks last, in the order of the fusion. A share s of 0 keeps the order of
    the fusion, 1 takes the rescorer's.
    """
    count = len(rescored)
    by_score = sorted(range(count), key=rescored.__getitem__, reverse=True)  # keeps the order of equal ones
    return fuse([(range(count), 1 - share), (by_score, share)], rrf_k=BLEND_K)
