"""Two orders of the same candidates become one: the fusion's and the rescorer's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from retrieval.fusion import FIRST_RANK, Fused

BLEND_K = 5
"""Smoothing constant of the reciprocal ranks that are blended."""


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
    least = min(scores.values(), default=0.0) - 1.0
    known = [scores.get(each.id, least) for each in fused]
    places = range(len(fused))
    # A sort keeps the order of equals, reversed or not: that of the fusion.
    rescored = sorted(places, key=known.__getitem__, reverse=True)
    doubt = 1 - confidence
    blended = [doubt / k for k in range(BLEND_K + FIRST_RANK, BLEND_K + FIRST_RANK + len(fused))]
    for k, at in enumerate(rescored, BLEND_K + FIRST_RANK):
        blended[at] += confidence / k
    order = sorted(places, key=blended.__getitem__, reverse=True)
    return [Placed(fused[at], at + FIRST_RANK, blended[at]) for at in order]
