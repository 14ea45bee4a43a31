"""The index of one namespace, exact as of a database snapshot: everything but texts; vectors are loaded later."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, LiteralString

import msgspec
import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from graph.adjacency import Adjacency, in_mask, read_edges
from graph.forward_chaining import StatedRelation
from graph.merges import moved, read_roots, unified
from graph.persistent import Persistent, part_of
from graph.resolution import EntityCandidate
from graph.segments import NarrowEdges
from graph.spellings import Spellings
from postgres.arrays import integers
from postgres.connection import Connection, fetch
from retrieval.errors import NamespaceNotFound
from retrieval.index import columns
from retrieval.index.columns import Columns
from retrieval.index.entity_names import EntityNames, read_names
from retrieval.index.packed_postings import PackedPostings
from retrieval.index.quantized_vectors import QuantizedVectors
from retrieval.index.rows import FEW_VECTORS, MemoryRows
from retrieval.index.slots import NO_SLOT, Slots, slotted
from retrieval.index.terms import TermCache
from retrieval.store.changes import ENTITIES, DatabaseSnapshot, one_snapshot, take_snapshot
from retrieval.store.entities import BY_HAND
from retrieval.store.namespaces import Namespace

MEMORIES_AT_ONCE = 5_000
"""Memories per statement while an index is loaded, also for reading edges."""

OLDEST_FILE_S = 86_400
"""Age above which a change makes a file be rewritten; if data were removed, which arrays keep, from the tables."""

OBJECTS_NBYTES = 30_000
"""Bytes of an index's objects besides its arrays: a quarter of an index of 50 memories."""

_METADATA_KEPT = 16

_ORDINALS: LiteralString = """
    select next_doc, generation, (select string_agg(int4send(doc), '' order by doc) from memory where ns = %(ns)s)
    from namespace where ns = %(ns)s
"""


class IndexState:
    """The state of a namespace between two removals; a search holds the state it began in until it is answered.

    Each state references the next, so holding one keeps all later ones alive. Once a state has been garbage collected,
    no search that began before the removal at its end is still running.
    """

    next: IndexState | None = None


@dataclass
class NamespaceIndex(Persistent):
    """The in-memory index of a namespace.

    Attributes:
        ns: the namespace's number.
        snapshot: the database snapshot as of which it is exact.
        generation: of the namespace's vectors; once they are replaced the index is useless.
        terms: postings of the terms that queries have used.
        vectors: those read so far.
        names: of the graph's entities.
        roots: by merged entity, the root that replaces it in the graph.
        changed: memories added, removed or altered since it was read from the tables.
        removed: memories removed since then, whose slots stay empty.
        file: the token of the file that it is mapped from; empty if it was read from the tables.
        changed_in_file: `changed` as of that file.
        replaces: the token of the file that the index before it was mapped from, which is out of date; empty if none.
        filed_at: when that file was written, Unix time.
        read_at: when it was read from the tables, Unix time.
        serial: unique within the process.
    """

    PARTS = ("memories", "graph", "vectors", "names", "changed", "removed")

    ns: int
    snapshot: DatabaseSnapshot
    generation: int
    memories: Columns = field(default_factory=Columns)
    graph: Adjacency = field(default_factory=Adjacency)
    vectors: QuantizedVectors = field(default_factory=lambda: QuantizedVectors(0))
    names: EntityNames = field(default_factory=EntityNames)
    roots: Mapping[int, int] = field(default_factory=dict)
    terms: TermCache = field(init=False)
    changed: int = 0
    removed: int = 0
    file: str = ""
    changed_in_file: int = 0
    filed_at: float = 0.0
    read_at: float = field(default_factory=time.time)
    replaces: str = ""
    serial: int = field(default_factory=count().__next__)
    state: IndexState = field(default_factory=IndexState)
    _leaving: deque[tuple[weakref.ref[IndexState], list[int]]] = field(default_factory=deque)
    _with_metadata: LRUCache[bytes, tuple[int, NDArray[np.int64]]] = field(
        default_factory=lambda: LRUCache(_METADATA_KEPT)
    )

    def __post_init__(self) -> None:
        self.terms = TermCache(self.memories)

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], ns: int, snapshot: DatabaseSnapshot, generation: int
    ) -> NamespaceIndex:
        """The index with these `arrays` and packed `postings`, which it uses without copying."""
        index = cls(ns, snapshot, generation, roots=dict(arrays["roots"].tolist()))
        index.restore(arrays)
        index.graph.remove(arrays["leaving"].tolist())
        index.vectors.remove(arrays["leaving"])
        index.terms = TermCache(index.memories, PackedPostings(**part_of(arrays, "postings")))
        return index

    def arrays(self) -> dict[str, Any]:
        """All its arrays except postings.

        Large arrays are not copied: a memory that changes while they are written may be written in part, so the
        reader calls `withdraw` for all memories changed since `snapshot`.
        """
        return super().arrays() | {
            "leaving": np.array([doc for _, docs in self._leaving for doc in docs], np.int64),
            "roots": np.array([*self.roots.items()], np.int64).reshape(-1, 2),
        }

    def withdraw(self, ordinals: Sequence[int]) -> None:
        """Drop all data of some memories; no search may be running."""
        slots = self.memories.slots.from_ordinals(np.array(ordinals, np.int64))
        docs = slots[(slots != NO_SLOT) & (slots < len(self.memories.alive.values))]
        self.memories.remove(docs.tolist())
        self.graph.remove(docs.tolist())
        self.vectors.remove(docs)

    @property
    def nbytes(self) -> int:
        """Its approximate size in bytes."""
        return super().nbytes + self.terms.nbytes + OBJECTS_NBYTES

    def with_metadata(self, metadata: Mapping[str, Any]) -> NDArray[np.int64] | None:
        """Slots of the memories with this metadata; None if not looked up since the last change."""
        changed, docs = self._with_metadata.get(metadata_key(metadata), (-1, None))
        return docs if changed == self.changed else None

    def keep_metadata(self, metadata: Mapping[str, Any], docs: NDArray[np.int64], *, changed: int) -> None:
        """Cache the database's answer as of that value of `changed`."""
        self._with_metadata[metadata_key(metadata)] = changed, docs

    def remove(self, docs: list[int]) -> None:
        """Mark memories as deleted; their edges and vectors stay until all searches that may see them have ended."""
        self.memories.remove(docs)
        self.terms.remove(docs)
        before, self.state = self.state, IndexState()
        before.next = self.state
        self._leaving.append((weakref.ref(before), docs))
        self.removed += len(docs)

    def drop_removed(self) -> None:
        """Drop the edges and vectors of removed memories that no running search can see."""
        while self._leaving and self._leaving[0][0]() is None:
            _, docs = self._leaving.popleft()
            self.graph.remove(docs)
            self.vectors.remove(np.array(docs, np.int64))

    def mentions(self, entities: NDArray[np.int64], *, cap: int) -> NDArray[np.int64]:
        """The number of memories that mention each entity, at most `cap`, without removed ones."""
        leaving = np.array([doc for _, docs in self._leaving for doc in docs], np.int64)
        if not leaving.size:
            return self.graph.mentions(entities, cap=cap)
        counts = self.graph.mentions(entities, cap=cap + leaving.size)
        mentioned = np.sort(self.graph.mentions_in(leaving)[0])
        counts -= mentioned.searchsorted(entities, "right") - mentioned.searchsorted(entities)
        return np.minimum(counts, cap)

    def named_in(self, spelled: Spellings) -> list[EntityCandidate]:
        """The entities that a query may mention, by the names that it may contain."""
        return self.names.find(spelled, partial(self.mentions, cap=1), self.roots, self.memories.alive.values)

    @property
    def needs_reload(self) -> bool:
        """Whether it has so many empty slots, or so fragmented a graph, that loading it again is better.

        Also if its file has held deleted data for long.
        """
        holds_deleted = self.file and self.removed and _is_old(self.read_at)
        return bool(holds_deleted) or self.removed > self.max_incremental or self.graph.is_fragmented

    @property
    def needs_saving(self) -> bool:
        """Whether a new file would save the next process much work."""
        if self.needs_reload or self.snapshot.on_standby or self.memories.count - self.vectors.count > FEW_VECTORS:
            return False
        since = self.changed - self.changed_in_file
        return not self.file or (since > 0 and _is_old(self.filed_at)) or since > 1_000 + self.memories.count // 32

    @property
    def max_incremental(self) -> int:
        """Most changes to apply at once, and most slots to leave empty, before the index is loaded again."""
        return 2_000 + self.memories.count // 4


def _is_old(at: float) -> bool:
    return abs(time.time() - at) > OLDEST_FILE_S  # the clock may have been set back


def metadata_key(metadata: Mapping[str, Any]) -> bytes:
    """A cache key that does not depend on the order of the fields."""
    return msgspec.json.encode(metadata, order="deterministic")


async def read(conn: Connection, namespace: Namespace) -> NamespaceIndex:
    """Load a namespace in one snapshot; raises NotFound if it was deleted."""
    ns, snapshot = namespace.ns, await take_snapshot(conn)
    async with one_snapshot(conn):
        slots, generation, ordinals = await read_slots(conn, namespace)
        memories = Columns(slots)
        for some in np.split(ordinals, range(MEMORIES_AT_ONCE, ordinals.size, MEMORIES_AT_ONCE)):
            if some.size:
                await columns.read(conn, ns, memories, some.tolist())
        roots = await read_roots(conn, ns)
        parts = 1 + ordinals.size // MEMORIES_AT_ONCE
        edges = await read_edges(conn, ns, parts=parts, roots=roots)
        names = await read_names(conn, ns, slots, roots=roots.values(), parts=parts)
        graph = await asyncio.to_thread(Adjacency, *by_slot(memories.slots, *edges))
        vectors = QuantizedVectors(memories.slots.count)
        return NamespaceIndex(ns, snapshot, generation, memories, graph, vectors, names, roots)


async def read_slots(conn: Connection, namespace: Namespace) -> tuple[Slots, int, NDArray[np.int64]]:
    """A namespace's slots, vector generation and ascending ordinals; raises NotFound if it was deleted."""
    found = await fetch(conn, _ORDINALS, {"ns": namespace.ns}, binary=True)
    if not found:
        raise NamespaceNotFound(namespace.name)
    [(next_doc, generation, sent)] = found
    ordinals = integers(sent)
    return Slots(ordinals, given_out=next_doc), generation, ordinals


def by_slot(
    slots: Slots, edges: NarrowEdges, relations: Sequence[StatedRelation]
) -> tuple[NarrowEdges, Iterable[StatedRelation]]:
    """Edges and relations with slots instead of ordinals."""
    entities, docs, weights = edges
    stated_in = slots.from_ordinals(np.array([relation.doc for relation in relations], np.int64)).tolist()
    placed = (relation._replace(doc=doc) for relation, doc in zip(relations, stated_in, strict=True))
    return (entities, slots.from_ordinals(docs), weights), placed


async def apply_changes(conn: Connection, index: NamespaceIndex, changed: Sequence[int], read: MemoryRows) -> bool:
    """Bring an index up to date; the caller then sets its snapshot.

    `changed` are the ordinals of memories added, removed or altered by transactions after the index's snapshot, and
    `ENTITIES` if entities changed; `read` are their rows, from one snapshot. With `ENTITIES`, `conn` must be in a
    transaction with that snapshot. Returns False if the index must be loaded again, because a memory was added for
    which it has no slot, or too many memories mention merged entities.
    """
    memories, ordinals = index.memories, np.array([doc for doc in changed if doc != ENTITIES], np.int64)
    slots = memories.slots.from_ordinals(ordinals)
    if slots.max(initial=NO_SLOT) > len(memories.alive.values) + index.max_incremental:
        return False
    existing = memories.slots.from_ordinals(integers(read.columns[0]))
    if (existing == NO_SLOT).any():
        return False
    roots = read.roots if ENTITIES in changed else index.roots
    # All awaits come before the first change: neither a search nor a file may see only part of the changes.
    removed = np.setdiff1d(slots[slots != NO_SLOT], existing)
    mentioning = _mentioning(index, moved(index.roots, roots), but=removed)
    if mentioning.size > index.max_incremental:
        return False
    moved_edges = None
    if mentioning.size:
        moved_edges = await read_edges(conn, index.ns, memories.slots.to_ordinal_list(mentioning.tolist()), roots=roots)
    index.roots = roots
    if ENTITIES in changed:
        index.names.put_by_hand(read.aliases.given_by([BY_HAND]), memories.slots)
    new = {*existing[~in_mask(existing, memories.alive.values)].tolist()}
    memories.take(read.columns, read.links)
    index.names.put(read.names, read.roots.values())
    index.names.put_aliases(read.aliases.given_by(memories.slots.to_ordinal_list([*new])), memories.slots)
    linked = {*existing.tolist()} if ENTITIES in changed else new  # known memories may now mention other entities
    if linked:
        edges, relations = by_slot(memories.slots, *unified(read.edges, read.relations, index.roots))
        wanted = np.isin(edges[1], [*linked])
        edges = edges[0][wanted], edges[1][wanted], edges[2][wanted]
        index.graph.add(edges, (each for each in relations if each.doc in linked), linked)
    if new:
        unpacked = [doc for doc in sorted(new) if not index.terms.knows(doc)]
        bags = [read.bags[doc] for doc in memories.slots.to_ordinal_list(unpacked) if doc in read.bags]
        if len(bags) == len(unpacked):
            index.terms.add(unpacked, bags)
        else:  # compacted meanwhile
            index.terms.clear()
    if removed.size:
        index.remove(removed.tolist())
    if moved_edges is not None:
        index.graph.add(*by_slot(memories.slots, *moved_edges), mentioning.tolist())
    index.drop_removed()
    index.vectors.remove(existing)
    if read.vectors is not None:
        index.vectors.put(*slotted(memories.slots, read.vectors), version=index.vectors.version)
    index.changed += len(changed)
    return True


def _mentioning(index: NamespaceIndex, entities: Collection[int], *, but: NDArray[np.int64]) -> NDArray[np.int64]:
    """The memories, by slot, that mention some entities, except those in `but`."""
    if not entities:
        return np.empty(0, np.int64)
    docs = np.unique(np.concatenate([index.graph.docs_of(entity) for entity in entities]))
    return np.setdiff1d(docs[index.memories.alive[docs]], but)
