"""Weighted reciprocal rank fusion of the rankings of one query."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Mapping, Sequence
from math import inf, isfinite
from struct import Struct
from typing import NamedTuple

import msgspec

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


class Fused(msgspec.Struct, frozen=True, gc=False):
    """A fused memory; its score is above 0."""

    id: str
    score: float


class RankingSlice(NamedTuple):
    """One ranking's slice of the concatenated candidate numbers: its start, the hits to fuse, and the leg's weight."""

    start: int
    length: int
    weight: float


class FusedOrder(NamedTuple):
    """Candidate numbers, best first, and their scores."""

    numbers: list[int]
    scores: list[float]


def weighted_rrf(
    rankings: Mapping[Leg, Sequence[str]], weights: Mapping[Leg, float], *, rrf_k: float = 60
) -> list[Fused]:
    """Fuse rankings: score(d) = sum over legs of weights[leg] / (rrf_k + rank), rank from 1.

    A memory that a leg did not return gets 0 from it. A leg of weight 0 contributes nothing: a memory that
    only such legs returned is left out, and the result is empty if all weights are 0. The sum is exactly
    rounded, so it does not depend on the order of the legs. Unweighted form: Cormack, Clarke and Buettcher,
    SIGIR 2009, doi:10.1145/1571941.1572114.

    The rankings have ids best first; the weights need not sum to 1. Returns each id once, score descending, ties by id.
    Raises FusionError for a repeated id, a missing, negative or non-finite weight, or rrf_k not above 0.

    >>> [f.id for f in weighted_rrf({"bm25": ["a", "b"], "vector": ["b"]}, {"bm25": 1.0, "vector": 1.0})]
    ['b', 'a']
    """
    parts: list[RankingSlice] = []
    start = 0
    for leg, ranking in rankings.items():
        if len(set(ranking)) < len(ranking):
            twice = next(id for position, id in enumerate(ranking) if id in ranking[:position])
            raise FusionError(f"the ranking of {leg} has {twice!r} twice", loc=("rankings", leg))
        parts.append(RankingSlice(start, len(ranking), checked_weight(weights, leg)))
        start += len(ranking)
    ids = sorted(set().union(*rankings.values()))
    number = {id: position for position, id in enumerate(ids)}
    numbers = array("i", [number[id] for ranking in rankings.values() for id in ranking])
    order = fuse(len(ids), numbers, parts, rrf_k=rrf_k)  # numbered in the order of the ids, so ties go by id
    return [Fused(ids[number], score) for number, score in zip(*order, strict=True)]


def fuse(count: int, numbers_by_leg: array[int], rankings: Sequence[RankingSlice], *, rrf_k: float) -> FusedOrder:
    """Fuse rankings of candidates numbered from 0 to `count`, as `weighted_rrf` does for ids; ties go by number.

    `numbers_by_leg` are candidate numbers as int32, the rankings concatenated, without repeats within one; `rankings`
    are up to three slices of it, with weights that are finite and >= 0. Raises FusionError if rrf_k is not above 0, or
    if scores overflow.
    """
    if not (isfinite(rrf_k) and rrf_k > 0):
        raise FusionError(f"rrf_k is {rrf_k}, must be above 0", loc=("rrf_k",))
    numbers, scores = array("q", bytes(8 * count)), array("d", bytes(8 * count))
    found = _fuse(
        count, len(numbers_by_leg), numbers_by_leg.buffer_info()[0], len(rankings),
        b"".join([_RANKED.pack(*each) for each in rankings]), rrf_k, numbers.buffer_info()[0], scores.buffer_info()[0],
    )  # fmt: skip
    if found == -1:
        raise MemoryError
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


_blend = native.function(
    "trivet_blend",
    ctypes.c_int64, native.Array, ctypes.c_double, ctypes.c_double, native.Array, native.Array,
    result=ctypes.c_int32,
)  # fmt: skip


def blend_rankings(ids: Sequence[str], scores: Mapping[str, float], share: float) -> FusedOrder:
    """Blend two rankings as `blend` does, of `ids`, best first by the fusion, and their scores.

    >>> blend_rankings(["a", "b"], {"a": 0.1, "b": 0.2}, 1.0).numbers
    [1, 0]
    """
    return blend([scores.get(each, -inf) for each in ids], share)


def blend(rescored: Sequence[float], share: float) -> FusedOrder:
    """Blend two rankings: score(d) = (1 - s) / (k + fused rank) + s / (k + rescored rank).

    `rescored` has the rescorer's scores in the order of the fusion, whose places the result numbers from 0; minus
    infinity for what was not rescored, which ranks last, in the order of the fusion. A share s of 0 keeps the order of
    the fusion, 1 takes the rescorer's.
    """
    count = len(rescored)
    values, order, scores = array("d", rescored), array("q", bytes(8 * count)), array("d", bytes(8 * count))
    addresses = [each.buffer_info()[0] for each in (values, order, scores)]
    if _blend(count, addresses[0], share, BLEND_K, *addresses[1:]):
        raise MemoryError
    return FusedOrder(order.tolist(), scores.tolist())
