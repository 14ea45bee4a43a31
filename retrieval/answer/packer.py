"""From a search's answer to its context pack: reads what the pack shows besides the memories found."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graph.adjacency import Adjacency, is_in_mask
from postgres.arrays import array_text
from postgres.prepared import Parameters, PreparedStatement, fetch_pipelined
from retrieval.answer.answer import Answer
from retrieval.answer.excerpt import excerpt
from retrieval.answer.hydration import TextReader
from retrieval.answer.pack import NOT_RELEVANT, SAID_BEFORE, ContextPack, pack
from retrieval.answer.pack_formats import PackCandidate
from retrieval.answer.selection import Limits, RankedMemory, within_cap
from retrieval.answer.token_counter import count_tokens
from retrieval.answer.utterances import is_mere_question, is_short_reply
from retrieval.index.columns import NEVER, Columns, from_microseconds, microseconds
from retrieval.index.slots import NO_SLOT
from retrieval.legs.base import SearchView
from retrieval.ranking.weighting import check_relevance
from retrieval.store.memories import HydratedMemory
from retrieval.store.pool import Pool
from retrieval.store.turns import PLACES
from retrieval.text.normalized_text import without_speaker
from retrieval.types.search import MIN_PACK_RELEVANCE, ContextRequest, DroppedItem

# Entities of other types are words of the texts, or shown with them.
_NAMES = PreparedStatement("""
    select entity, name from entity
    where ns = %(ns)s and entity = any(%(entities)s::bigint[])
        and type not in ('term', 'phrase', 'date', 'speaker', 'title')
""")

_SHOWN = ("id", "text", "title", "speaker", "created_at", "expires_at", "kind", "session_id", "document_id")


async def pack_answer(pool: Pool, answer: Answer, request: ContextRequest) -> ContextPack:
    """Pack the answer of a search that was made for `request`.

    Raises StoreUnavailable if the database cannot be read, InvalidInput for a least relevance without the rescorer.
    """
    query, language = answer.query, answer.namespace.settings.language
    check_relevance(request.min_relevance, rescores=query.rescores)
    cap = Limits.from_request(request, query.profile).source_cap
    with query.stopwatch.span("pack"):
        relevant, others = _by_relevance(answer, request.min_relevance)
        found = within_cap(relevant, cap=cap, top_k=request.top_k)
        candidates = await _candidates(pool, answer, found)
        packed = await asyncio.to_thread(  # counting the tokens of long texts is slow
            pack,
            candidates,
            max_tokens=request.max_tokens,
            format=request.format,
            order=request.order,
            count=count_tokens,
            shorten=lambda memory, most: excerpt(
                memory.text, query.request.query, language, max_tokens=most, count=count_tokens, speaker=memory.speaker
            ),
            source_cap=cap,
            holds=query.conversation.holds,
        )
    said = [DroppedItem(id=id_, reason=SAID_BEFORE) for id_ in answer.said_before]
    shown = {item.id for item in packed.items}  # a needed turn may be irrelevant on its own
    irrelevant = [DroppedItem(id=each.memory.id, reason=NOT_RELEVANT) for each in others if each.memory.id not in shown]
    return replace(packed, dropped=[*packed.dropped, *irrelevant, *said])


async def _candidates(pool: Pool, answer: Answer, found: Sequence[RankedMemory]) -> list[PackCandidate]:
    """The memories found, with the turns they need, their positions in sessions and the entities they share."""
    memories, query = answer.index.memories, answer.query
    needed = _needed_turns(found, memories, query.view)
    others = sorted(set(needed.values()))
    async with TextReader(pool, query.snapshot, query.request, query.conversation) as reader:
        rows = await reader.read(others, memories.ids.get(np.array(others, np.int64))) if others else []
        read = {doc: row for doc, row in zip(others, rows, strict=True) if row is not None}
    docs = [*{each.doc: None for each in found} | read]  # a needed turn may be among those found
    ordinals = memories.slots.to_ordinal_list(docs)
    shared = _shared_entities(answer.index.graph, docs)
    placed: Parameters = {"ns": answer.namespace.ns, "docs": array_text(ordinals)}
    named: Parameters = {"ns": answer.namespace.ns, "entities": array_text(shared)}
    async with pool.connection() as conn:
        places, names = await fetch_pipelined(conn, [(PLACES, placed), (_NAMES, named)])
    place_of, names_of = dict(places), defaultdict[int, list[str]](list)
    for entity, name in sorted(names, key=lambda row: (-sum(shared[row[0]].values()), row[1])):
        for doc in shared[entity]:
            names_of[doc].append(name)
    as_of = NEVER - 1 if query.request.as_of is None else microseconds(query.request.as_of)
    created, repeated = memories.created.values, {each.doc: each.duplicate_docs for each in found}
    details = {
        doc: {
            "place": place_of.get(ordinal, 0),
            "entities": tuple(names_of[doc]),
            # A superseded statement holds again if it was repeated later.
            "superseded": all(memories.superseded[one] <= as_of for one in (doc, *repeated.get(doc, ()))),
        }
        for doc, ordinal in zip(docs, ordinals, strict=True)
    }
    turns = {doc: _candidate(row, **details[doc]) for doc, row in read.items()}
    return [
        _candidate(
            each.memory,
            **details[each.doc],
            duplicates=tuple(each.duplicates),
            last_said_at=from_microseconds(int(created[each.duplicate_docs].max())) if each.duplicates else None,
            needs=turns.get(needed.get(each.doc, NO_SLOT)),
            answers=needed.get(each.doc) == memories.previous[each.doc] != NO_SLOT,
        )
        for each in found
    ]


def _by_relevance(answer: Answer, least: float | None) -> tuple[list[RankedMemory], list[RankedMemory]]:
    """The memories found that are relevant enough, and the others."""
    at_least = MIN_PACK_RELEVANCE if least is None else least
    relevant: list[RankedMemory] = []
    others: list[RankedMemory] = []
    for each in answer.memories:
        known = each.relevance
        shown = known is None or answer.ordering.is_relevant(known, each.doc, at_least=at_least)
        (relevant if shown else others).append(each)
    return relevant, others


def _candidate(memory: HydratedMemory, **details: Any) -> PackCandidate:
    return PackCandidate(**{name: getattr(memory, name) for name in _SHOWN}, **details)


def _shared_entities(graph: Adjacency, docs: Sequence[int]) -> Mapping[int, Mapping[int, float]]:
    """The entities that at least two of these memories mention, each with its memories, by slot, and the weights.

    There are none while the namespace is loading, when there is no graph leg.
    """
    entities, mentioned_in, weights = graph.mentions_in(np.array(docs, np.int64))
    _, codes, counts = np.unique(entities, return_inverse=True, return_counts=True)
    several = counts[codes] > 1
    shared = defaultdict[int, dict[int, float]](dict)
    for entity, doc, weight in zip(
        *(column[several].tolist() for column in (entities, mentioned_in, weights)), strict=True
    ):
        shared[entity][doc] = weight
    return shared


def _needed_turns(found: Iterable[RankedMemory], columns: Columns, view: SearchView) -> dict[int, int]:
    """By the slot of a turn found, the slot of the turn that it needs, if visible to the search.

    A short reply needs the question before it, a mere question the turn after it, both by another speaker.
    """
    needed: dict[int, int] = {}
    for each in found:
        doc, text = each.doc, without_speaker(each.memory.text, each.memory.speaker)
        before, after = int(columns.previous[doc]), int(columns.next[doc])
        if before != NO_SLOT and columns.asks[before] and is_short_reply(text):
            needed[doc] = before
        elif after != NO_SLOT and columns.asks[doc] and is_mere_question(text):
            needed[doc] = after
    speakers = columns.speakers.codes
    return {
        doc: other
        for doc, other in needed.items()
        if is_in_mask(other, view.eligible) and speakers[doc] != speakers[other]
    }
