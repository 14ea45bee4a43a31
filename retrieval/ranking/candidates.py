"""The distinct memories that the legs returned for one query, numbered from 0."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from classifier.query_performance import LegScores
from classifier.rescorer import Rescored
from retrieval.legs.base import LegRanking
from retrieval.ranking.fusion import FIRST_RANK, FusedOrder, RankingSlice, blend_rankings, checked_weight, fuse
from retrieval.types.search import Leg


class RankedCandidates(NamedTuple):
    """Candidates in the order of an answer, best first.

    Attributes:
        scores: descending; the fused scores, or those blended with the rescorer's ranking.
        fused_ranks: each candidate's rank in the fusion, from 1.
        fused_scores: scores of the fusion in the fusion's order: that of rank r is at r - 1.
    """

    numbers: list[int]
    scores: list[float]
    fused_ranks: list[int]
    fused_scores: list[float]

    def reordered(self, scores: NDArray[np.float64]) -> RankedCandidates:
        """The same candidates by other scores, given in the present order; ties stay in it."""
        order = np.argsort(-scores, kind="stable").tolist()
        return RankedCandidates(
            [self.numbers[at] for at in order],
            scores[order].tolist(),
            [self.fused_ranks[at] for at in order],
            self.fused_scores,
        )

    def at(self, places: Sequence[int]) -> RankedCandidates:
        """Those at some places of the order, in the order of the places."""
        numbers, scores, fused_ranks, fused_scores = self
        return RankedCandidates(
            [numbers[place] for place in places],
            [scores[place] for place in places],
            [fused_ranks[place] for place in places],
            fused_scores,
        )


@dataclass(frozen=True, slots=True)
class Candidates:
    """The legs' hits as numbered candidates, in order of first appearance.

    Attributes:
        docs, ids: slots and ids of the candidates, by number.
        findings: by leg, ids and scores of its hits, best first.
        by_leg: by leg, the numbers of its hits, best first.
        numbers_by_leg: the values of `by_leg` concatenated as int32.
    """

    rankings: Mapping[Leg, LegRanking]
    docs: list[int]
    ids: list[str]
    findings: Mapping[Leg, LegScores]
    by_leg: Mapping[Leg, list[int]]
    numbers_by_leg: bytes

    @classmethod
    def from_rankings(cls, rankings: Mapping[Leg, LegRanking]) -> Candidates:
        """Number the hits of all legs."""
        found: dict[int, str] = {}
        ordinals: dict[Leg, tuple[int, ...]] = {}
        findings: dict[Leg, LegScores] = {}
        for leg, ranking in rankings.items():
            ids, docs, scores, *_ = zip(*ranking.hits, strict=True) if ranking.hits else ((), (), ())
            found.update(zip(docs, ids, strict=True))
            ordinals[leg], findings[leg] = docs, LegScores(ids, scores)
        number = dict(zip(found, range(len(found)), strict=True))
        by_leg = {leg: list(map(number.__getitem__, docs)) for leg, docs in ordinals.items()}
        numbers_by_leg = array("i", chain.from_iterable(by_leg.values())).tobytes()
        return cls(rankings, list(found), list(found.values()), findings, by_leg, numbers_by_leg)

    def fuse(self, kept: Mapping[Leg, LegRanking], weights: Mapping[Leg, float], *, rrf_k: float) -> FusedOrder:
        """Fuse the prefix of each ranking that is `kept`, as `weighted_rrf` does."""
        parts = []
        start = 0
        for leg, of_leg in self.by_leg.items():
            parts.append(RankingSlice(start, len(kept[leg].hits), checked_weight(weights, leg)))
            start += len(of_leg)
        return fuse(self.ids, self.numbers_by_leg, parts, rrf_k=rrf_k)

    def docs_of(self, order: FusedOrder, count: int) -> list[int]:
        """The slots of the first `count` candidates of an order."""
        return [self.docs[number] for number in order.numbers[:count]]

    def rank(self, fused: FusedOrder, rescored: Rescored | None) -> RankedCandidates:
        """The final order: that of the fusion, blended with the rescorer's if it ran."""
        numbers, scores = fused
        if rescored is None:
            return RankedCandidates(numbers, scores, list(range(FIRST_RANK, FIRST_RANK + len(numbers))), scores)
        order, blend = blend_rankings([self.ids[number] for number in numbers], rescored.scores, rescored.share)
        return RankedCandidates(
            [numbers[position] for position in order], blend, [position + FIRST_RANK for position in order], scores
        )
