"""From the order of the candidates to the memories of an answer: texts, duplicates folded, sources capped, variety."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import msgspec
import numpy as np

from retrieval.candidates import Candidates, Ordered
from retrieval.dedup import Kept, deduplicate
from retrieval.diversity import cap_sources, maximal_marginal_relevance
from retrieval.fusion import FIRST_RANK, Fused
from retrieval.legs.base import Hit, LegRanking
from retrieval.mirror.vectors import Vectors
from retrieval.profiles import Profile
from retrieval.reading import Reading
from retrieval.store.memories import HydratedMemory
from retrieval.types import Leg, SearchOptions

SPARE_CANDIDATES = 4
"""Memories read beyond those asked for, to take the places of duplicates; more are read if that is not enough."""

SPARE_CHOICES = 8
"""The same where there is a choice of them, which is made from all that were read."""

CHOICE = 4
"""Memories to choose from, for each one asked for, where the order is not by relevance alone."""

FORESEEN = 14
"""Memories read beyond those that are read at once, before the rescorer has said which come first.

With so many 95 of 100 answers of ten need no others (100,000 memories; the fusion by the weights of the intent alone);
with eight less, 73. Reading one costs some microseconds elsewhere, and waiting for another statement 400.
"""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One memory of an answer with all that is known of how it got there; `score` is what it is ordered by."""

    memory: HydratedMemory
    score: float
    fused: Fused
    fused_rank: int
    evidence: Mapping[Leg, tuple[int, Hit]]
    duplicates: Sequence[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What an answer may hold.

    Attributes:
        top_k: memories.
        source_cap: most of one session or document while others can take the place; None for no bound.
        diversity: in [0, 1]; 0 orders by relevance alone.
    """

    top_k: int
    source_cap: int | None
    diversity: float

    @classmethod
    def of(cls, request: SearchOptions, profile: Profile) -> Limits:
        """What the request says, and where it says nothing the profile."""
        return cls(
            top_k=request.top_k,
            source_cap=profile.source_cap if request.source_cap is None else request.source_cap,
            diversity=profile.diversity if request.diversity is None else request.diversity,
        )

    @property
    def wanted(self) -> int:
        """Distinct memories to choose the answer from."""
        return CHOICE * self.top_k if self._chooses else self.top_k

    @property
    def read_at_once(self) -> int:
        """Memories that are read before it is known which of them are duplicates."""
        return self.wanted + (SPARE_CHOICES if self._chooses else SPARE_CANDIDATES)

    def read_ahead(self, *, rescores: bool) -> int:
        """Memories that are read before their order is known."""
        return self.read_at_once + FORESEEN * rescores

    @property
    def _chooses(self) -> bool:
        """Whether the order is not by relevance alone."""
        capped = self.source_cap is not None and self.source_cap < self.top_k
        return capped or self.diversity > 0


async def select(
    reading: Reading,
    order: Ordered,
    candidates: Candidates,
    rankings: Mapping[Leg, LegRanking],
    vectors: Vectors,
    limits: Limits,
) -> list[Found]:
    """The memories of an answer, best first; the first of several duplicates stands for all of them."""
    texts, kept = await _distinct(reading, order, candidates, limits)
    if limits.diversity:
        kept = await _varied(kept, texts, order, candidates, vectors, limits.diversity)
    kept = cap_sources(kept, lambda each: _source(texts[each.id].memory), cap=limits.source_cap, top_k=limits.top_k)
    ranks = Ranks(candidates, rankings)
    return [_found(each, texts, order, ranks) for each in kept[: limits.top_k]]


def within_cap(found: Sequence[Found], *, cap: int | None, top_k: int) -> Sequence[Found]:
    """The best memories of which `top_k` are within the cap of their source, with those over it between them."""
    if cap is None:
        return found[:top_k]
    shown: Counter[tuple[str, str] | None] = Counter()
    within = 0
    for at, each in enumerate(found, 1):
        source = _source(each.memory)
        shown[source] += 1
        within += source is None or shown[source] <= cap
        if within == top_k:
            return found[:at]
    return found


class Ranks:
    """Where each leg has each candidate, by number."""

    def __init__(self, candidates: Candidates, rankings: Mapping[Leg, LegRanking]) -> None:
        self._legs: list[tuple[Leg, Sequence[Hit], Mapping[int, int]]] = [
            (leg, ranking.hits, dict(zip(candidates.by_leg[leg][: len(ranking.hits)], count(FIRST_RANK), strict=False)))
            for leg, ranking in rankings.items()
        ]

    def of(self, number: int) -> dict[Leg, tuple[int, Hit]]:
        """The rank and the hit of a candidate in each leg that has it."""
        return {leg: (rank, hits[rank - FIRST_RANK]) for leg, hits, ranks in self._legs if (rank := ranks.get(number))}

    def best(self, numbers: Sequence[int]) -> dict[Leg, tuple[int, Hit]]:
        """The best place that any of some duplicates has in each leg."""
        evidence: dict[Leg, tuple[int, Hit]] = {}
        for leg, hits, ranks in self._legs:
            if ranked := [ranks[each] for each in numbers if each in ranks]:
                evidence[leg] = min(ranked), hits[min(ranked) - FIRST_RANK]
        return evidence


class _Read(NamedTuple):
    """A memory and its place in the order."""

    memory: HydratedMemory
    place: int


async def _distinct(
    reading: Reading, order: Ordered, candidates: Candidates, limits: Limits
) -> tuple[Mapping[str, _Read], list[Kept]]:
    """The best memories that say different things, as they were read; fewer only if there are no more."""
    texts: dict[str, _Read] = {}
    kept: list[Kept] = []
    at = 0
    while at < len(order.numbers) and len(kept) < limits.wanted:
        few = order.numbers[at : at + limits.read_at_once]
        rows = await reading.read([candidates.docs[number] for number in few])
        texts |= {memory.id: _Read(memory, place) for place, memory in enumerate(rows, at) if memory is not None}
        kept = deduplicate([each.memory for each in texts.values()])
        at += len(few)
    return texts, kept


def _found(kept: Kept, texts: Mapping[str, _Read], order: Ordered, ranks: Ranks) -> Found:
    """A memory of the answer with what is known of it."""
    memory, place = texts[kept.id]
    number, rank = order.numbers[place], order.fused_ranks[place]
    if kept.duplicates:
        evidence = ranks.best([number, *(order.numbers[texts[each].place] for each in kept.duplicates)])
    else:
        evidence = ranks.of(number)
    return Found(
        memory=memory,
        score=order.scores[place],
        fused=Fused(memory.id, order.fused_scores[rank - FIRST_RANK]),
        fused_rank=rank,
        evidence=evidence,
        duplicates=kept.duplicates,
    )


async def _varied(
    kept: Sequence[Kept],
    texts: Mapping[str, _Read],
    order: Ordered,
    candidates: Candidates,
    vectors: Vectors,
    diversity: float,
) -> list[Kept]:
    """The same memories, each as relevant as it is unlike those before it; one without a vector is gone by now."""
    at = [texts[each.id].place for each in kept]
    docs = [candidates.docs[order.numbers[place]] for place in at]
    await vectors.read(docs)
    places = vectors.places(docs)
    there = [
        (each, order.scores[one]) for each, one, place in zip(kept, at, places.tolist(), strict=True) if place >= 0
    ]
    if not there:
        return list(kept)
    chosen = maximal_marginal_relevance(
        np.array([score for _, score in there]),
        vectors.stored[places[places >= 0]],
        diversity=diversity,
        count=len(there),
    )
    return [there[at][0] for at in chosen]


def _source(memory: HydratedMemory) -> tuple[str, str] | None:
    """The document or session that a memory is from, None for one that stands alone."""
    if memory.document_id is not None:
        return ("document", memory.document_id)
    return ("session", memory.session_id) if memory.session_id is not None else None
