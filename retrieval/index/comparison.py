"""Comparing index files with the tables, for `trivet doctor`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from graph.merges import unified
from graph.segments import LEVELS, NarrowEdges
from postgres.arrays import integers
from postgres.connection import Connection
from retrieval.index import namespace_index, rows
from retrieval.index.columns import CATEGORIES, Columns
from retrieval.index.entity_rows import read_kept
from retrieval.index.files import IndexFiles
from retrieval.index.namespace_index import NamespaceIndex, by_slot
from retrieval.index.packed_postings import of_known
from retrieval.index.quantized_vectors import QuantizedVectors
from retrieval.index.rows import FEW_VECTORS, MemoryRows
from retrieval.index.slots import NO_SLOT, Slots, slotted
from retrieval.index.strings import NONE, CategoryColumn
from retrieval.store import index_files, namespaces
from retrieval.store.bm25.blocks import PostingTable
from retrieval.store.bm25.segments import read_all
from retrieval.store.changes import ENTITIES, one_snapshot
from retrieval.store.entities import BY_HAND
from retrieval.store.namespaces import Namespace
from retrieval.store.vectors import StoredVectors
from retrieval.types.state import Finding

Mask = NDArray[np.bool_]

_NUMBERS = ("length", "created", "expires", "superseded", "traits", "asks")
_ABSENT = NONE - 1
"""The code of a string that the index does not have."""


async def check_files(conn: Connection, cache: Path | None) -> list[Finding]:
    """Compare the index files in a folder with the tables, some memories at a time; changes nothing."""
    if cache is None:
        return [Finding("indexes", True, "not kept in files")]
    files = IndexFiles(cache, await index_files.origin(conn))
    findings = []
    for described in await namespaces.describe(conn):
        namespace = await namespaces.find(conn, described.name)
        path = files.path(namespace.ns)
        if path is not None:
            findings.append(await _check(conn, files, path, namespace))
    return findings or [Finding("indexes", True, f"no files in {cache}")]


async def _check(conn: Connection, files: IndexFiles, path: Path, namespace: Namespace) -> Finding:
    name, what_to_do = f"index {namespace.name}", f"stop the server and delete {path}; it will be rebuilt"
    try:
        index = await files.map(path, namespace.ns, namespace.generation)
        async with one_snapshot(conn):
            if index is None or not await files.catch_up(conn, index):
                return Finding(name, True, f"{path} is no longer used; the next server rebuilds it")
            differing = await differences(conn, index, namespace)
    except (IndexError, ValueError, msgspec.MsgspecError) as exc:  # from arrays that do not fit together
        return Finding(name, False, f"its file cannot be read ({exc}): {what_to_do}")
    if differing:
        parts = ", ".join(f"{part} ({count})" for part, count in sorted(differing.items()))
        return Finding(name, False, f"differs from the tables in {parts}: {what_to_do}")
    return Finding(name, True, f"{index.memories.count} memories are as in the tables")


async def differences(conn: Connection, index: NamespaceIndex, namespace: Namespace) -> Counter[str]:
    """The parts in which an index differs from the tables, and for how many memories; `conn` is in its snapshot.

    Takes memory for `FEW_VECTORS` memories, and a few bytes for each of the others. Vectors that the index has not yet
    read are ignored.
    """
    _, _, ordinals = await namespace_index.read_slots(conn, namespace)
    held = index.memories.slots.to_ordinals(np.flatnonzero(index.memories.alive.values))
    by_hand = await rows.read(conn, index.ns, [ENTITIES], since=None)
    differing = Counter(
        {
            "memories": len(np.setxor1d(held, ordinals)),
            "merged entities": len(dict(index.roots).items() ^ by_hand.roots.items()),
            "indexes of names": int(not index.names.is_consistent),
            "aliases by hand": len(index.names.aliases_of([BY_HAND]) ^ by_hand.aliases.rows(index.memories.slots)),
            "names of speakers": int(not index.memories.names.is_complete),
            "indexes of the graph": int(not index.graph.is_consistent),
            "names of entities": await _misnamed(conn, index),
            "postings": await _postings(conn, index),
        }
    )
    both = np.intersect1d(held, ordinals)
    for first in range(0, both.size, FEW_VECTORS):
        some = both[first : first + FEW_VECTORS]
        read = await rows.read(conn, index.ns, some.tolist(), since=None)
        differing.update({part: int(np.count_nonzero(mask)) for part, mask in _masks(index, some, read, by_hand.roots)})
    return +differing


async def _misnamed(conn: Connection, index: NamespaceIndex) -> int:
    """The number of mentioned entities whose names differ; an entity that is not kept is a common phrase."""
    differing = index.names.shown_otherwise()
    async for some in read_kept(conn, index.ns, parts=1 + index.memories.count // namespace_index.MEMORIES_AT_ONCE):
        for entity, row in some.rows().items():
            if differing.get(entity) == row:
                del differing[entity]
            elif row.is_shown_otherwise:
                differing[entity] = row
    return int(np.count_nonzero(index.graph.mentions(np.array([*differing], np.int64), cap=1)))


async def _postings(conn: Connection, index: NamespaceIndex) -> int:
    """The number of memories whose postings differ, all if out of order; 0 if searches read them from the tables.

    A memory's postings are compared by a checksum.
    """
    packed, alive = index.terms.packed, index.memories.alive.values
    if packed is None:
        return 0
    if not packed.is_consistent:
        return index.memories.count
    held, stored = (np.zeros(len(alive), np.uint64) for _ in range(2))
    for table in index.terms.tables():
        _add_up(held, table)
    async for table in read_all(conn, index.ns, memories=index.memories.count):
        _add_up(stored, of_known(table, index.memories.slots, alive))
    return int(np.count_nonzero((held != stored)[alive]))


def _add_up(sums: NDArray[np.uint64], postings: PostingTable) -> None:
    """Add each posting to the checksum of its memory; terms are hashes."""
    np.add.at(sums, postings.docs, postings.terms.astype(np.uint64) * (2 * postings.tfs.astype(np.uint64) + 1))


def _masks(
    index: NamespaceIndex, ordinals: NDArray[np.int64], read: MemoryRows, roots: Mapping[int, int]
) -> Iterator[tuple[str, Mask]]:
    """For each part of an index, a mask of the memories, by ascending ordinals, that differ from what was read."""
    slots = index.memories.slots
    docs = slots.from_ordinals(ordinals)
    expected = Columns(Slots(ordinals, given_out=int(ordinals[-1]) + 1))
    expected_docs = expected.put(read.columns)
    yield "columns", _columns(index.memories, docs, expected, expected_docs)
    yield "neighbours", _neighbours(index.memories, docs, ordinals, read.links)
    if read.vectors is not None:
        yield "vectors", _vectors(index.vectors, docs, slotted(expected.slots, read.vectors), expected_docs)
    aliases = index.names.aliases_of(docs.tolist()) ^ read.aliases.rows(slots)
    yield "aliases", np.isin(docs, [doc for _, _, doc in aliases])
    edges, relations = by_slot(slots, *unified(read.edges, read.relations, roots))
    yield "edges", np.isin(docs, list(_edges(index.graph.mentions_in(docs), edges)))
    stated = set(relations) ^ set(index.graph.relations.of_memories(docs.tolist()))
    yield "relations", np.isin(docs, [relation.doc for relation in stated])


def _columns(memories: Columns, docs: NDArray[np.int64], expected: Columns, expected_docs: NDArray[np.int64]) -> Mask:
    differs: Mask = np.array(memories.ids.get(docs)) != np.array(expected.ids.get(expected_docs))
    for name in _NUMBERS:
        differs |= getattr(memories, name)[docs] != getattr(expected, name)[expected_docs]
    for name in CATEGORIES:
        column: CategoryColumn = getattr(memories, name)
        strings: Sequence[str | None] = getattr(expected, name).get(expected_docs)
        code_of: dict[str | None, int] = {None: NONE}
        code_of.update(column.values.find({each for each in strings if each is not None}).items())
        differs |= column.codes[docs] != np.array([code_of.get(each, _ABSENT) for each in strings])
    return differs


def _neighbours(
    memories: Columns, docs: NDArray[np.int64], ordinals: NDArray[np.int64], links: Sequence[bytes | None]
) -> Mask:
    differs, turns = np.zeros(len(docs), np.bool_), np.searchsorted(ordinals, integers(links[0]))
    for column, linked in zip((memories.previous, memories.next), links[1:], strict=True):
        neighbours = np.full(len(docs), NO_SLOT, np.int64)
        neighbours[turns] = memories.slots.from_ordinals(integers(linked))
        differs |= column[docs] != neighbours
    return differs


def _vectors(
    vectors: QuantizedVectors, docs: NDArray[np.int64], stored: StoredVectors, expected_docs: NDArray[np.int64]
) -> Mask:
    """Compares only vectors that the index has read, rounded as in the index."""
    differs, known = np.zeros(len(docs), np.bool_), vectors.knows(docs)
    expected = QuantizedVectors(len(docs), stored.context_vectors.shape[1])
    expected.put(*stored, version=0)
    both = []
    for source, of in ((vectors, docs[known]), (expected, expected_docs[known])):
        read = np.empty((2, len(of), stored.context_vectors.shape[1]), np.float32)
        source.read(of, *read)
        both.append(read)
    differs[known] = (both[0] != both[1]).any(axis=(0, 2))
    return differs


def _edges(mine: NarrowEdges, others: NarrowEdges) -> set[int]:
    """The memories whose edges differ; weights may be rounded to the nearest level."""
    former, latter = (
        {(doc, entity): weight for entity, doc, weight in zip(*(column.tolist() for column in edges), strict=True)}
        for edges in (mine, others)
    )
    every = former.keys() | latter.keys()
    return {edge[0] for edge in every if abs(former.get(edge, inf) - latter.get(edge, inf)) > 1 / LEVELS}
