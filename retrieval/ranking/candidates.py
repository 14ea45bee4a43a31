"""The distinct memories that the legs returned for one query, numbered from 0."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain
from math import inf
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from classifier.rescorer import RescoredCandidates
from retrieval.index.strings import StringColumn
from retrieval.legs.base import LegRanking, best_first
from retrieval.ranking.fusion import FusedOrder, blend, checked_weight, fuse
from retrieval.types.search import Leg


class RankedCandidates(NamedTuple):
    """Candidates in the order of an answer, best first.

    Attributes:
        scores: descending; the fused scores, or those blended with the rescorer's ranking.
        fused: the fusion, a superset of these.
    """

    numbers: list[int]
    scores: list[float]
    fused: FusedOrder

    def reordered(self, scores: NDArray[np.float64]) -> RankedCandidates:
        """The same candidates sorted by new scores, given in the current order; ties keep their order."""
        order = np.argsort(-scores, kind="stable")
        return self.select(order.tolist())._replace(scores=scores[order].tolist())

    def select(self, positions: Sequence[int]) -> RankedCandidates:
        """The candidates at some positions, in that order."""
        numbers, scores, fused = self
        return RankedCandidates([numbers[each] for each in positions], [scores[each] for each in positions], fused)


class Candidates(msgspec.Struct, frozen=True):
    """The legs' hits as numbered candidates, in order of first appearance.

    Attributes:
        docs: slots of the candidates, by number.
        numbers: the candidates of all hits, leg after leg, best first, as int32.
        starts: where each leg's hits begin.
    """

    rankings: Mapping[Leg, LegRanking]
    docs: list[int]
    numbers: array[int]
    starts: Mapping[Leg, int]

    @classmethod
    def from_rankings(cls, rankings: Mapping[Leg, LegRanking]) -> Candidates:
        """Number the hits of all legs."""
        hits = list(chain.from_iterable([ranking.docs.tolist() for ranking in rankings.values()]))
        number = {doc: number for number, doc in enumerate(dict.fromkeys(hits))}
        starts = dict(zip(rankings, accumulate(map(len, rankings.values()), initial=0), strict=False))
        return cls(rankings, list(number), array("i", map(number.__getitem__, hits)), starts)

    def of_leg(self, leg: Leg) -> array[int]:
        """The candidates that a leg returned, best first."""
        start = self.starts[leg]
        return self.numbers[start : start + len(self.rankings[leg])]

    def ids(self, numbers: Sequence[int]) -> list[str]:
        """The ids of some candidates."""
        return self._ids.get(np.array([self.docs[number] for number in numbers], np.int64)) if numbers else []

    @property
    def _ids(self) -> StringColumn:
        return next(iter(self.rankings.values())).ids

    def fuse(self, kept: Mapping[Leg, LegRanking], weights: Mapping[Leg, float], *, rrf_k: float) -> FusedOrder:
        """Fuse the prefix `kept` of each ranking, best first, ties by id."""
        parts = [(self.of_leg(leg)[: len(kept[leg])], checked_weight(weights, leg)) for leg in self.starts]
        fused = fuse(parts, rrf_k=rrf_k)
        if len(set(fused.scores)) == len(fused.scores):
            return fused
        docs = np.array(self.docs_of(fused, len(fused.numbers)), np.int64)
        order = best_first(docs, np.array(fused.scores), self._ids)
        return fused._replace(numbers=[fused.numbers[position] for position in order.tolist()])

    def docs_of(self, order: FusedOrder | RankedCandidates, count: int) -> list[int]:
        """The slots of the first `count` candidates of an order."""
        return [self.docs[number] for number in order.numbers[:count]]

    def rank(self, fused: FusedOrder, rescored: RescoredCandidates | None) -> RankedCandidates:
        """The fused order, blended with the rescorer's if it ran."""
        if rescored is None:
            return RankedCandidates(*fused, fused)
        order, blended = blend([rescored.scores.get(number, -inf) for number in fused.numbers], rescored.share)
        return RankedCandidates([fused.numbers[position] for position in order], blended, fused)
