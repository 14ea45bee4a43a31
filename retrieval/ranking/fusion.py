"""Weighted reciprocal rank fusion of the rankings of one query."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Mapping, Sequence
from math import isfinite
from struct import Struct
from typing import NamedTuple

import native
from classifier.candidates import BLEND_K
from retrieval.errors import FusionError
from retrieval.types.search import Leg

FIRST_RANK = 1
"""Rank of the best hit in the formula of the fusion."""

_RANKED = Struct("qqd")

_integer = ctypes.c_int64
_fuse = native.function(
    "trivet_fuse",
    _integer, _integer, native.Array, _integer, native.Array, ctypes.c_double, native.Array, native.Array,
    result=_integer,
)  # fmt: skip


class RankingSlice(NamedTuple):
    """One ranking's slice of the concatenated candidate numbers: its start, the hits to fuse, and the leg's weight."""

    start: int
    length: int
    weight: float


class FusedOrder(NamedTuple):
    """Candidate numbers, best first, and their scores."""

    numbers: list[int]
    scores: list[float]


def fuse(count: int, numbers_by_leg: array[int], rankings: Sequence[RankingSlice], *, rrf_k: float) -> FusedOrder:
    """Fuse rankings: score(d) = sum over legs of weight / (rrf_k + rank), rank from 1; ties go by number.

    A candidate that a leg did not return gets 0 from it. A leg of weight 0 contributes nothing: a candidate that
    only such legs returned is left out, and the result is empty if all weights are 0. The weights need not sum to 1.
    The sum is exactly rounded, so it does not depend on the order of the legs. Unweighted form: Cormack, Clarke and
    Buettcher, SIGIR 2009, doi:10.1145/1571941.1572114.

    Candidates are numbered from 0 to `count`. `numbers_by_leg` are their numbers as int32, the rankings concatenated,
    best first, without repeats within one; `rankings` are up to three slices of it, with weights that are finite and
    >= 0. Raises FusionError if rrf_k is not above 0, or if scores overflow.
    """
    if not (isfinite(rrf_k) and rrf_k > 0):
        raise FusionError(f"rrf_k is {rrf_k}, must be above 0", loc=("rrf_k",))
    numbers, scores = array("q", bytes(8 * count)), array("d", bytes(8 * count))
    found = _fuse(
        count, len(numbers_by_leg), numbers_by_leg.buffer_info()[0], len(rankings),
        b"".join([_RANKED.pack(*each) for each in rankings]), rrf_k, numbers.buffer_info()[0], scores.buffer_info()[0],
    )  # fmt: skip
    if found < 0:
        raise ValueError(f"{rankings} are no rankings of {count} candidates")
    order = FusedOrder(numbers[:found].tolist(), scores[:found].tolist())
    if found and not isfinite(order.scores[0]):
        raise FusionError("the weights are too large", loc=("weights",))
    return order


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
    slices = [RankingSlice(0, count, 1 - share), RankingSlice(count, count, share)]
    return fuse(count, array("i", [*range(count), *by_score]), slices, rrf_k=BLEND_K)
