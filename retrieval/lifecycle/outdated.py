"""Older memories that a new one may make outdated, as both are about the same thing: suggestions for `supersedes`.

The similarity of two texts is the cosine of their own vectors plus a share of the rarity of the words they share. With
the cosine alone, half as many of the labelled pairs of benchmarks/corpus were found at the same share of writes.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from retrieval.errors import VectorsReplaced
from retrieval.index.columns import Columns
from retrieval.index.query_vectors import QueryVectors
from retrieval.index.registry import IndexRegistry
from retrieval.index.slots import NO_SLOT
from retrieval.index.snapshot import NamespaceSnapshot
from retrieval.index.strings import NONE
from retrieval.index.terms import Postings
from retrieval.ranking.dedup import deduplicate
from retrieval.store import memories, namespaces
from retrieval.store.memories import StoredMemory
from retrieval.store.pool import Pool
from retrieval.store.visibility import by_id
from retrieval.text.analysis import analyze, term_id
from retrieval.text.normalized_text import without_speaker
from retrieval.types.memory import AddResult
from retrieval.types.search import SearchOptions

MOST_SUGGESTED = 3
"""Most ids suggested for one memory."""

MOST_TERMS = 200
"""Memories with more terms are passages rather than statements: they get no suggestions and are not suggested."""

MIN_RARITY = 1.25
"""Minimum rarity of the shared words. A word that no other memory has counts 1."""

_LEAST_RARITY = 0.25
"""Minimum rarity of a word to be counted; less rare ones are in too many memories."""

MAX_RARITY = 2.0
"""Cap of the shared words' rarity: more of them do not make two texts more similar."""

RARITY_SHARE = 0.3
"""Weight of the rarity, relative to 1 for the cosine."""

MIN_LIKENESS = 0.95

_COMPARED = 30
"""Memories with the rarest shared words whose vectors are compared."""

_CHECKED = 2 * MOST_SUGGESTED
"""Most similar memories whose texts are read, as some may repeat the new one."""


class OutdatedMemories:
    """Finds what new memories may make outdated."""

    def __init__(self, pool: Pool, indexes: IndexRegistry) -> None:
        self._pool = pool
        self._indexes = indexes

    async def suggest(self, name: str, results: Sequence[AddResult]) -> list[AddResult]:
        """The results of a write; those of memories created or updated get `may_supersede`, the most similar first.

        Suggested are visible memories with an older time, the same speaker (or both without), in another session and
        document, that are neither questions nor chunks nor repetitions. Chunks are excluded as their ids are
        positions in a document, which another passage may take.
        """
        written = [result.id for result in results if result.id and result.status in ("created", "updated")]
        try:
            suggested = await self._suggestions(name, written) if written else {}
        except VectorsReplaced:
            suggested = await self._suggestions(name, written)
        return [
            structs.replace(result, may_supersede=suggested.get(result.id, []))
            if result.id and result.status in ("created", "updated")
            else result
            for result in results
        ]

    async def _suggestions(self, name: str, ids: Sequence[str]) -> Mapping[str, list[str]]:
        async with namespaces.opened(self._pool, name) as (conn, namespace):
            stored = await memories.read(conn, namespace.ns, by_id(ids))
        terms = {each.doc: _terms(each, namespace.settings.language) for each in stored}
        every = frozenset[int]().union(*terms.values())
        snapshot = await self._indexes.current(name, lambda _: [*every])
        columns = snapshot.index.memories
        slots = columns.slots.from_ordinals(np.array([each.doc for each in stored], np.int64)).tolist()
        statements = {
            slot: each
            for each, slot in zip(stored, slots, strict=True)
            if slot != NO_SLOT and columns.alive[slot] and not columns.asks[slot] and columns.length[slot] <= MOST_TERMS
        }
        most_similar = await self._most_similar(snapshot, {slot: terms[each.doc] for slot, each in statements.items()})
        similar = by_id(sorted({memory_id for some in most_similar.values() for memory_id in some}))
        async with self._pool.connection() as conn:
            others = {each.memory.id: each.memory for each in await memories.read(conn, namespace.ns, similar)}
        return {
            new.memory.id: [
                memory_id
                for memory_id in most_similar[slot]
                if memory_id in others and len(deduplicate([new.memory, others[memory_id]])) > 1  # no repetition
            ][:MOST_SUGGESTED]
            for slot, new in statements.items()
        }

    async def _most_similar(
        self, snapshot: NamespaceSnapshot, terms: Mapping[int, Collection[int]]
    ) -> Mapping[int, list[str]]:
        """The ids of the most similar older memories, best first, by slot of the new ones, given with their terms."""
        visible, _ = snapshot.index.memories.masks(SearchOptions(), now=snapshot.now)
        shared = {}
        for slot, of_new in terms.items():
            shared[slot] = _sharing_words(snapshot, visible, slot, of_new)
            await asyncio.sleep(0)  # let others run
        slots = [*shared, *(slot for docs, _ in shared.values() for slot in docs.tolist())]
        vectors = QueryVectors(self._pool, snapshot.index)
        await vectors.read(list(dict.fromkeys(slots)))
        return {slot: _similar_enough(snapshot, vectors, slot, *found) for slot, found in shared.items()}


def _terms(stored: StoredMemory, language: str) -> frozenset[int]:
    text = without_speaker(stored.memory.text, stored.memory.speaker)
    return frozenset(map(term_id, analyze(text, language)))


def _sharing_words(
    snapshot: NamespaceSnapshot, visible: NDArray[np.bool_], new: int, terms: Collection[int]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The slots of older memories that share the rarest words with a new one, and the rarity of these words."""
    postings = _rare_terms(snapshot.postings, terms)
    if not postings:
        return np.empty(0, np.int64), np.empty(0)
    docs, places = np.unique(np.concatenate([docs for docs, _ in postings]), return_inverse=True)
    counted = np.repeat([rarity for _, rarity in postings], [docs.size for docs, _ in postings])
    rarity = np.bincount(places, counted).astype(np.float64)
    kept = np.flatnonzero(rarity >= MIN_RARITY)
    kept = kept[_may_be_outdated(snapshot.index.memories, visible, docs[kept], new)]
    rarest = kept[np.argsort(-rarity[kept], kind="stable")[:_COMPARED]]
    return docs[rarest].astype(np.int64), rarity[rarest]


def _rare_terms(postings: Postings, terms: Collection[int]) -> list[tuple[NDArray[np.int32], float]]:
    """The slots that have each rare term, and its rarity: 1 - ln(df + 1/2) / ln(N + 1)."""
    scale = math.log(postings.memories + 1)
    occurring = [postings.terms[term].docs for term in terms if term in postings.terms]
    rated = [(docs, 1 - math.log(docs.size + 0.5) / scale) for docs in occurring]
    return [(docs, rarity) for docs, rarity in rated if rarity >= _LEAST_RARITY]


def _may_be_outdated(
    columns: Columns, visible: NDArray[np.bool_], docs: NDArray[np.int32], new: int
) -> NDArray[np.bool_]:
    """Which memories are older statements by the new one's speaker in other sessions, and not chunks."""
    mask = visible[docs] & ~columns.asks[docs] & (columns.length[docs] <= MOST_TERMS)
    mask &= columns.created[docs] < columns.created[new]
    mask &= columns.speakers.codes[docs] == columns.speakers.codes[new]
    mask &= ~np.isin(columns.kinds.codes[docs], columns.kinds.codes_of(["chunk"]))
    for column in (columns.sessions, columns.documents):
        if (code := column.codes[new]) != NONE:
            mask &= column.codes[docs] != code
    return np.asarray(mask, np.bool_)


def _similar_enough(
    snapshot: NamespaceSnapshot, vectors: QueryVectors, slot: int, docs: NDArray[np.int64], rarity: NDArray[np.float64]
) -> list[str]:
    """The ids of the memories that are similar enough, the most similar first."""
    own, *rows = vectors.rows_of([slot, *docs.tolist()])
    known = np.array(rows, np.int64) != NO_SLOT
    if own == NO_SLOT or not known.any():
        return []
    docs, places = docs[known], np.array(rows, np.int64)[known]
    cosines = vectors.text_vectors[places] @ vectors.text_vectors[own]
    likeness = cosines + RARITY_SHARE * np.minimum(rarity[known], MAX_RARITY)
    best = [place for place in np.argsort(-likeness, kind="stable") if likeness[place] >= MIN_LIKENESS]
    return snapshot.index.memories.ids.get(docs[best[:_CHECKED]])
