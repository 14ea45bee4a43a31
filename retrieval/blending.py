"""Two orders of the same candidates become one: the fusion's and the rescorer's."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Mapping, Sequence
from itertools import repeat

import msgspec

import native
from retrieval.fusion import FIRST_RANK, Fused, Order

BLEND_K = 5
"""Smoothing constant of the reciprocal ranks that are blended."""

_blend = native.function(
    "trivet_blend",
    ctypes.c_int64, native.Array, ctypes.c_double, ctypes.c_double, native.Array, native.Array,
    result=ctypes.c_int32,
)  # fmt: skip


class Placed(msgspec.Struct, frozen=True, gc=False):
    """A candidate at its place in the answer's order.

    Attributes:
        fused: what the fusion made of it.
        fused_rank: its rank there, from 1.
        score: what it is ordered by.
    """

    fused: Fused
    fused_rank: int
    score: float


def as_fused(fused: Sequence[Fused]) -> list[Placed]:
    """The order of the fusion as it is."""
    return [Placed(each, rank, each.score) for rank, each in enumerate(fused, FIRST_RANK)]


def blend(fused: Sequence[Fused], scores: Mapping[str, float], confidence: float) -> list[Placed]:
    """Order candidates by both: score(d) = (1 - c) / (k + rank fused) + c / (k + rank rescored).

    Args:
        fused: best first.
        scores: the rescorer's, by id; those without one come after all others, in the order of the fusion.
        confidence: c in [0, 1]; 0 keeps the order of the fusion, 1 takes the rescorer's.

    >>> from retrieval.fusion import weighted_rrf
    >>> fused = weighted_rrf({"bm25": ["a", "b"]}, {"bm25": 1.0})
    >>> [each.fused.id for each in blend(fused, {"a": 0.1, "b": 0.2}, 1.0)]
    ['b', 'a']
    """
    order = blended([each.id for each in fused], scores, confidence)
    return [Placed(fused[at], at + FIRST_RANK, score) for at, score in zip(*order, strict=True)]


def blended(ids: Sequence[str], scores: Mapping[str, float], confidence: float) -> Order:
    """The same of ids in the order of the fusion, which are numbered from 0 as they stand."""
    least = min(scores.values(), default=0.0) - 1.0
    rescored = array("d", map(scores.get, ids, repeat(least)))
    order = array("q", bytes(8 * len(ids)))
    blended_scores = array("d", bytes(8 * len(ids)))
    addresses = [each.buffer_info()[0] for each in (rescored, order, blended_scores)]
    if _blend(len(ids), addresses[0], confidence, BLEND_K, *addresses[1:]):
        raise MemoryError
    return Order(order.tolist(), blended_scores.tolist())
