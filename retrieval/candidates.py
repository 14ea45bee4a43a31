"""The memories that the legs found for one query, numbered, so that each is looked up once for all that ask."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from classifier.evidence import Findings
from classifier.rescorer import Rescored
from retrieval.blending import blended
from retrieval.fusion import FIRST_RANK, Order, Ranked, checked_weight, fuse
from retrieval.legs.base import LegRanking
from retrieval.types import Leg


class Ordered(NamedTuple):
    """Candidates in the order of an answer, best first.

    Attributes:
        numbers: theirs.
        scores: what they are ordered by.
        fused_ranks: their ranks in the fusion, from 1.
        fused_scores: those of the fusion, by rank from 1: the first one's is the first.
    """

    numbers: list[int]
    scores: list[float]
    fused_ranks: list[int]
    fused_scores: list[float]


@dataclass(frozen=True, slots=True)
class Candidates:
    """What the legs found, each memory once, in the order in which they name them.

    Attributes:
        rankings: of the legs.
        docs, ids: the memories, by number.
        findings: ids and scores of what each leg found, best first.
        by_leg: the numbers of what each leg found.
        at: all of these as int32, leg after leg.
    """

    rankings: Mapping[Leg, LegRanking]
    docs: list[int]
    ids: list[str]
    findings: Mapping[Leg, Findings]
    by_leg: Mapping[Leg, list[int]]
    at: bytes

    @classmethod
    def of(cls, rankings: Mapping[Leg, LegRanking]) -> Candidates:
        """Number what the legs found."""
        found: dict[int, str] = {}
        ordinals: dict[Leg, tuple[int, ...]] = {}
        findings: dict[Leg, Findings] = {}
        for leg, ranking in rankings.items():
            ids, docs, scores, *_ = zip(*ranking.hits, strict=True) if ranking.hits else ((), (), ())
            found.update(zip(docs, ids, strict=True))
            ordinals[leg], findings[leg] = docs, Findings(ids, scores)
        number = dict(zip(found, range(len(found)), strict=True))
        by_leg = {leg: list(map(number.__getitem__, docs)) for leg, docs in ordinals.items()}
        at = array("i", chain.from_iterable(by_leg.values())).tobytes()
        return cls(rankings, list(found), list(found.values()), findings, by_leg, at)

    def fused(self, heard: Mapping[Leg, LegRanking], weights: Mapping[Leg, float], *, rrf_k: float) -> Order:
        """Their order by `weighted_rrf`.

        Args:
            heard: the beginnings of the rankings that have a say.
            weights: one per leg.
            rrf_k: smoothing constant.
        """
        parts = []
        start = 0
        for leg, of_leg in self.by_leg.items():
            parts.append(Ranked(start, len(heard[leg].hits), checked_weight(weights, leg)))
            start += len(of_leg)
        return fuse(self.ids, self.at, parts, rrf_k=rrf_k)

    def docs_of(self, order: Order, count: int) -> list[int]:
        """The memories that come first in an order."""
        return [self.docs[number] for number in order.numbers[:count]]

    def ordered(self, fused: Order, rescored: Rescored | None) -> Ordered:
        """Their order by the fusion, and by the rescorer where it has a say."""
        numbers, scores = fused
        if rescored is None:
            return Ordered(numbers, scores, list(range(FIRST_RANK, FIRST_RANK + len(numbers))), scores)
        places, blend = blended([self.ids[number] for number in numbers], rescored.scores, rescored.confidence)
        return Ordered([numbers[place] for place in places], blend, [place + FIRST_RANK for place in places], scores)
