"""From the order of the candidates to the memories of an answer: texts, duplicates folded, sources capped, variety."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from operator import attrgetter

import msgspec
import numpy as np

from retrieval.blending import Placed
from retrieval.dedup import Candidate, Kept, deduplicate
from retrieval.diversity import cap_sources, maximal_marginal_relevance
from retrieval.fusion import FIRST_RANK, Fused
from retrieval.legs.base import Hit, LegRanking
from retrieval.mirror.vectors import Vectors
from retrieval.profiles import Profile
from retrieval.store import memories
from retrieval.store.memories import HydratedMemory
from retrieval.store.pool import Connection
from retrieval.types import Leg, SearchOptions

SPARE_CANDIDATES = 4
"""Memories read beyond those asked for, to take the places of duplicates; more are read if that is not enough."""

SPARE_CHOICES = 8
"""The same where there is a choice of them, which is made from all that were read."""

CHOICE = 4
"""Memories to choose from, for each one asked for, where the order is not by relevance alone."""


_ID = attrgetter("id")


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

    @property
    def _chooses(self) -> bool:
        """Whether the order is not by relevance alone."""
        capped = self.source_cap is not None and self.source_cap < self.top_k
        return capped or self.diversity > 0


async def select(
    conn: Connection,
    ns: int,
    order: Sequence[Placed],
    rankings: Mapping[Leg, LegRanking],
    vectors: Vectors,
    limits: Limits,
) -> list[Found]:
    """The memories of an answer, best first; the first of several duplicates stands for all of them."""
    placed = {each.fused.id: each for each in order}
    places = Places(rankings)
    texts, kept = await _distinct(conn, ns, list(placed), places, limits)
    if limits.diversity:
        docs = {each.id: places.doc(each.id) for each in kept}
        await vectors.read(docs.values())
        kept = _varied(kept, vectors, docs, {each.id: placed[each.id].score for each in kept}, limits.diversity)
    kept = cap_sources(kept, lambda each: _source(texts[each.id]), cap=limits.source_cap, top_k=limits.top_k)
    return [
        Found(
            memory=texts[each.id],
            score=placed[each.id].score,
            fused=placed[each.id].fused,
            fused_rank=placed[each.id].fused_rank,
            evidence=places.best((each.id, *each.duplicates)) if each.duplicates else places.of(each.id),
            duplicates=each.duplicates,
        )
        for each in kept[: limits.top_k]
    ]


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


class Places:
    """Where each leg has each memory."""

    def __init__(self, rankings: Mapping[Leg, LegRanking]) -> None:
        self._legs: list[tuple[Leg, Sequence[Hit], Mapping[str, int]]] = [
            (leg, ranking.hits, dict(zip(map(_ID, ranking.hits), count(FIRST_RANK), strict=False)))
            for leg, ranking in rankings.items()
        ]

    def of(self, memory_id: str) -> dict[Leg, tuple[int, Hit]]:
        """The rank and the hit of a memory in each leg that has it."""
        return {
            leg: (rank, hits[rank - FIRST_RANK]) for leg, hits, ranks in self._legs if (rank := ranks.get(memory_id))
        }

    def best(self, ids: Sequence[str]) -> dict[Leg, tuple[int, Hit]]:
        """The best place that any of some duplicates has in each leg."""
        evidence: dict[Leg, tuple[int, Hit]] = {}
        for leg, hits, ranks in self._legs:
            if ranked := [ranks[each] for each in ids if each in ranks]:
                evidence[leg] = min(ranked), hits[min(ranked) - FIRST_RANK]
        return evidence

    def doc(self, memory_id: str) -> int:
        """The ordinal of a memory that some leg has."""
        return next(hits[ranks[memory_id] - FIRST_RANK].doc for _, hits, ranks in self._legs if memory_id in ranks)


async def _distinct(
    conn: Connection, ns: int, order: Sequence[str], places: Places, limits: Limits
) -> tuple[Mapping[str, HydratedMemory], list[Kept]]:
    """The best memories that say different things, with their texts; fewer only if there are no more."""
    texts: dict[str, HydratedMemory] = {}
    kept: list[Kept] = []
    at = 0
    while at < len(order) and len(kept) < limits.wanted:
        few = order[at : at + limits.read_at_once]
        rows = await memories.hydrate(conn, ns, map(places.doc, few))
        texts |= {memory_id: rows[memory_id] for memory_id in few if memory_id in rows}
        kept = deduplicate(
            [Candidate(id=each.id, text=each.text, speaker=each.speaker, title=each.title) for each in texts.values()]
        )
        at += len(few)
    return texts, kept


def _varied(
    kept: Sequence[Kept], vectors: Vectors, docs: Mapping[str, int], scores: Mapping[str, float], diversity: float
) -> list[Kept]:
    """The same memories, each as relevant as it is unlike those before it; one without a vector is gone by now."""
    places = vectors.places([docs[each.id] for each in kept])
    there = [each for each, place in zip(kept, places.tolist(), strict=True) if place >= 0]
    if not there:
        return list(kept)
    order = maximal_marginal_relevance(
        np.array([scores[each.id] for each in there]),
        vectors.stored[places[places >= 0]],
        diversity=diversity,
        count=len(there),
    )
    return [there[at] for at in order]


def _source(memory: HydratedMemory) -> tuple[str, str] | None:
    """The document or session that a memory is from, None for one that stands alone."""
    if memory.document_id is not None:
        return ("document", memory.document_id)
    return ("session", memory.session_id) if memory.session_id is not None else None
