"""Two orders of the same candidates become one: the fusion's and the rescorer's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retrieval.fusion import FIRST_RANK, Fused

BLEND_K = 5
"""Smoothing constant of the reciprocal ranks that are blended."""


@dataclass(frozen=True, slots=True)
class Placed:
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
    places = range(len(fused))
    rescored = sorted(places, key=lambda at: (-scores.get(fused[at].id, least), at))
    rank = {at: place for place, at in enumerate(rescored, FIRST_RANK)}
    placed = [
        Placed(
            fused[at],
            at + FIRST_RANK,
            (1 - confidence) / (BLEND_K + at + FIRST_RANK) + confidence / (BLEND_K + rank[at]),
        )
        for at in places
    ]
    placed.sort(key=lambda each: (-each.score, each.fused_rank))
    return placed
