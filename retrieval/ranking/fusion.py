"""Weighted reciprocal rank fusion of the rankings of one query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import NamedTuple

from classifier.candidates import BLEND_K
from retrieval.errors import FusionError
from retrieval.ranking.rrf import rrf_scores
from retrieval.types.search import Leg


class FusedOrder(NamedTuple):
    """Candidate numbers, best first, and their scores."""

    numbers: list[int]
    scores: list[float]


def fuse(rankings: Iterable[tuple[Sequence[int], float]], *, rrf_k: float) -> FusedOrder:
    """Fuse rankings by `rrf_scores`, ties by number.

    A candidate that a leg did not return gets 0 from it. A leg of weight 0 contributes nothing: a candidate that
    only such legs returned is left out, and the result is empty if all weights are 0. The weights need not sum to 1.

    Each of `rankings` has the numbers of its candidates, best first, without repeats, and a weight that is finite and
    >= 0. Raises FusionError if rrf_k is not above 0, or if scores overflow.
    """
    if not (isfinite(rrf_k) and rrf_k > 0):
        raise FusionError(f"rrf_k is {rrf_k}, must be above 0", loc=("rrf_k",))
    try:
        scores = rrf_scores(rankings, rrf_k=rrf_k)
    except OverflowError as exc:
        raise FusionError("the weights are too large", loc=("weights",)) from exc
    return FusedOrder([*scores], [*scores.values()])


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

    `rescored` has the rescorer's scores in fused order; the result numbers candidates from 0 in that order. Candidates
    that were not rescored have minus infinity and rank last, in fused order. A share s of 0 keeps the fused order, 1
    takes the rescorer's.
    """
    count = len(rescored)
    by_score = sorted(range(count), key=rescored.__getitem__, reverse=True)  # stable: ties keep the fused order
    return fuse([(range(count), 1 - share), (by_score, share)], rrf_k=BLEND_K)
