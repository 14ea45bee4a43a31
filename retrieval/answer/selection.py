"""From ranked candidates to the memories of an answer: texts, deduplication, source caps, diversity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, count
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from retrieval.answer.hydration import TextReader
from retrieval.answer.pack import longest_entry
from retrieval.index.query_vectors import QueryVectors
from retrieval.legs.base import LegRanking
from retrieval.preparation import PreparedQuery
from retrieval.profiles.profile import Profile
from retrieval.ranking.candidates import Candidates, RankedCandidates
from retrieval.ranking.dedup import deduplicate
from retrieval.ranking.diversity import are_within, cap_sources, maximal_marginal_relevance, source_of
from retrieval.ranking.noise import cut_noise
from retrieval.ranking.ordering import Ordering
from retrieval.ranking.rrf import FIRST_RANK
from retrieval.store.memories import HydratedMemory
from retrieval.tasks import in_thread_if_long
from retrieval.text.normalized_text import NormalizedText, wording
from retrieval.types.search import Leg, LegEvidence, PackSize, SearchOptions

SPARE_CANDIDATES = 4
"""Memories read beyond those asked for, to replace duplicates; if they do not suffice, more are read."""

SPARE_CHOICES = 8
"""`SPARE_CANDIDATES` of an answer that is chosen from a larger set, namely all memories read."""

CHOICE = 4
"""Memories to choose from per memory asked for, if the order is not by relevance alone."""

BESIDE_TEXT, TOKENS_PER_TERM = 8, 1.5
"""Tokens of an entry of a context pack besides its text (citation, speaker, a share of the headings), and for each term
of its text: rather too few, so that it is filled."""

PREFETCH_EXTRA = 40
"""Memories prefetched beyond `read_at_once` when the rescorer has yet to decide which come first.

With 40, 93 % of answers of ten need no further read (100,000 memories; fused by the weights of the intent alone); with
30, 81 %, with 14, 27 %. Reading one more costs microseconds, waiting for another statement 400.
"""


class RankedMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory of the answer, its slot, and how it got there; `score` orders the answer.

    `relevance` is the probability that it answers the query; None if no rescorer ran. `duplicate_docs` are the slots of
    its duplicates.
    """

    memory: HydratedMemory
    doc: int
    score: float
    fused_score: float
    fused_rank: int
    relevance: float | None
    leg_evidence: Mapping[Leg, LegEvidence]
    duplicates: Sequence[str]
    duplicate_docs: Sequence[int]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Size and variety of an answer.

    Attributes:
        source_cap: most memories of one session or document while others can take their place; None for no cap.
        diversity: in [0, 1]; 0 orders by relevance alone.
    """

    top_k: int
    source_cap: int | None
    diversity: float

    @classmethod
    def from_request(cls, request: SearchOptions, profile: Profile) -> Limits:
        """The request's limits, defaulting to the profile's."""
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
        """Memories read before it is known which are duplicates."""
        return self.wanted + (SPARE_CHOICES if self._chooses else SPARE_CANDIDATES)

    def for_pack(self, pack_size: PackSize, terms: NDArray[np.integer[Any]]) -> Limits:
        """The limits for as many memories as fill a context pack; `terms` counts those of each memory, best first."""
        costs = np.minimum(BESIDE_TEXT + TOKENS_PER_TERM * terms, longest_entry(pack_size.tokens))
        enough = int(np.searchsorted(costs.cumsum(), pack_size.tokens)) + 1
        return replace(self, top_k=max(self.top_k, min(enough, pack_size.memories)))

    def are_met(self, memories: Sequence[HydratedMemory]) -> bool:
        """Whether `top_k` of these distinct memories are within the cap of their source."""
        return sum(_are_within(memories, self.source_cap)) >= self.top_k

    @property
    def _chooses(self) -> bool:
        """Whether the order is not by relevance alone."""
        capped = self.source_cap is not None and self.source_cap < self.top_k
        return capped or self.diversity > 0


async def select_above_noise(
    query: PreparedQuery, reader: TextReader, ordering: Ordering, vectors: QueryVectors, limits: Limits
) -> tuple[list[RankedMemory], Mapping[Leg, LegRanking]]:
    """Select from the hits above the noise cut; also returns the rankings that were fused.

    If duplicates and source caps leave too few memories, the cut hits are used as well.
    """
    every, time = ordering.candidates.rankings, ordering.named_time
    rankings: Mapping[Leg, LegRanking] = every
    if not (time and time.alone):  # a query of just a time matches no memory's text
        rankings = cut_noise(every, query.profile, enough=limits.wanted, identified=ordering.identified)
    while True:
        with query.stopwatch.span("fuse"):
            order = ordering.order(rankings)
        if query.pack_size is not None:
            terms = query.snapshot.index.memories.length.values
            limits = limits.for_pack(query.pack_size, terms[ordering.candidates.docs_of(order, len(order.numbers))])
        with query.stopwatch.span("hydrate"):
            selected = await _select(
                reader, ordering, order, rankings, vectors, limits, in_pack=query.pack_size is not None
            )
        if limits.are_met([each.memory for each in selected]) or rankings == every:
            return selected, rankings
        rankings = every


async def _select(
    reader: TextReader,
    ordering: Ordering,
    order: RankedCandidates,
    rankings: Mapping[Leg, LegRanking],
    vectors: QueryVectors,
    limits: Limits,
    *,
    in_pack: bool,
) -> list[RankedMemory]:
    """Read the best candidates and choose the answer's memories, best first, one of each group of duplicates."""
    candidates, rescored = ordering.candidates, ordering.rescored
    if limits.diversity:
        await vectors.read(candidates.docs)
    groups = await _distinct(reader, order, candidates, limits)  # no I/O from here on
    if not ordering.asks_for_the_past:
        groups = [_newest_first(group, in_pack=in_pack) if len(group) > 1 else group for group in groups]
    if limits.diversity:
        groups = _varied(groups, order, candidates, vectors, limits.diversity)
    groups = cap_sources(groups, lambda group: group[0].source, cap=limits.source_cap, top_k=limits.top_k)
    groups = groups[: limits.top_k]
    numbers = [order.numbers[group[0].position] for group in groups]  # of the best, whichever is shown
    relevance = [None] * len(groups) if rescored is None else rescored.relevance(numbers)
    ranks = {
        leg: dict(zip(candidates.of_leg(leg)[: len(ranking)], count(FIRST_RANK), strict=False))
        for leg, ranking in rankings.items()
    }
    found = []
    for group, best_number, probability in zip(groups, numbers, relevance, strict=True):
        (memory, position, number), *duplicates = group
        evidence = {}
        for leg, rank_of in ranks.items():
            if ranked := [(rank_of[each.number], each.memory.id) for each in group if each.number in rank_of]:
                rank, best = min(ranked)
                evidence[leg] = _evidence(rankings[leg], rank, duplicate=None if best == memory.id else best)
        fused_position = order.fused.numbers.index(best_number)
        found.append(
            RankedMemory(
                memory=memory,
                doc=candidates.docs[number],
                score=order.scores[position],
                fused_score=order.fused.scores[fused_position],
                fused_rank=fused_position + FIRST_RANK,
                relevance=probability,
                leg_evidence=evidence,
                duplicates=[each.memory.id for each in duplicates],
                duplicate_docs=[candidates.docs[each.number] for each in duplicates],
            )
        )
    return found


def within_cap(found: Sequence[RankedMemory], *, cap: int | None, top_k: int) -> Sequence[RankedMemory]:
    """The shortest prefix with `top_k` memories within the cap of their source, including those above the cap."""
    for position, within in enumerate(accumulate(_are_within([each.memory for each in found], cap)), 1):
        if within == top_k:
            return found[:position]
    return found


def _are_within(memories: Sequence[HydratedMemory], cap: int | None) -> Iterator[bool]:
    """Whether each memory, in order, is within the cap of its source."""
    return are_within((source_of(each.document_id, each.session_id) for each in memories), cap)


def _evidence(ranking: LegRanking, rank: int, *, duplicate: str | None) -> LegEvidence:
    """A leg's evidence for the memory at a rank, which stands for itself or is a `duplicate`."""
    doc, score = ranking.docs.item(rank - FIRST_RANK), ranking.scores.item(rank - FIRST_RANK)
    found = LegEvidence(rank=rank, score=score, duplicate=duplicate, terms=ranking.matched_terms.get(doc))
    path = ranking.paths.get(doc)
    return found if path is None else replace(found, path=list(path.names), why=path.why)


class _Read(NamedTuple):
    """A memory, its position in the order and its number."""

    memory: HydratedMemory
    position: int
    number: int

    @property
    def source(self) -> tuple[str, str] | None:
        return source_of(self.memory.document_id, self.memory.session_id)


async def _distinct(
    reader: TextReader, order: RankedCandidates, candidates: Candidates, limits: Limits
) -> list[Sequence[_Read]]:
    """Read memories in order until enough are distinct or none is left; returns each with its duplicates."""
    texts: dict[str, _Read] = {}
    kept: list[list[str]] = []
    position = 0
    while position < len(order.numbers) and (
        len(kept) < limits.wanted or not limits.are_met([texts[ids[0]].memory for ids in kept])
    ):
        batch = order.numbers[position : position + limits.read_at_once]
        rows = await reader.read([candidates.docs[number] for number in batch], candidates.ids(batch))
        read = enumerate(zip(rows, batch, strict=True), position)
        texts |= {memory.id: _Read(memory, index, number) for index, (memory, number) in read if memory is not None}
        memories = [each.memory for each in texts.values()]
        kept = await in_thread_if_long(sum(len(each.text) for each in memories), partial(deduplicate, memories))
        position += len(batch)
    return [[texts[id_] for id_ in ids] for ids in kept]


def _newest_first(group: Sequence[_Read], *, in_pack: bool) -> Sequence[_Read]:
    """Near-duplicates with the newest first, at the position of the best ranked: what they differ in may have changed.

    Equal ones hold again since the newest. A pack shows both times; turns and chunks belong to those around them.
    """
    best, newest = group[0], max(group, key=lambda each: each.memory.created_at)
    if _wording(newest) == _wording(best) and (in_pack or best.source or newest.source):
        return group
    return [newest._replace(position=best.position), *(each for each in group if each is not newest)]


def _wording(each: _Read) -> NormalizedText:
    return wording(each.memory.text, each.memory.speaker)


def _varied(
    groups: list[Sequence[_Read]],
    order: RankedCandidates,
    candidates: Candidates,
    vectors: QueryVectors,
    diversity: float,
) -> list[Sequence[_Read]]:
    """Reorder by maximal marginal relevance; a memory whose vector has been deleted is left out."""
    rows = vectors.rows_of([candidates.docs[group[0].number] for group in groups])
    with_vectors = [group for group, row in zip(groups, rows.tolist(), strict=True) if row >= 0]
    if not with_vectors:
        return groups
    chosen = maximal_marginal_relevance(
        np.array([order.scores[group[0].position] for group in with_vectors]),
        vectors.context_vectors[rows[rows >= 0]],
        diversity=diversity,
        count=len(with_vectors),
    )
    return [with_vectors[position] for position in chosen]
