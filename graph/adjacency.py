"""The in-memory entity graph of a namespace: mention edges between entities and memories, and relations.

The edges loaded first form one segment; later ones go to further segments, the last of which are merged so that
there are few. A memory's edges count only in its home segment. Memories are given by their slot in the index.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, LiteralString

import numpy as np
from numpy.typing import NDArray

from graph.forward_chaining import StatedRelation
from graph.merges import Roots, unified
from graph.persistent import Persistent, named, part_of
from graph.relation_index import RelationIndex
from graph.segments import MOST_SEGMENTS, NO_EDGES, NO_SEGMENT, EdgeSegment, NarrowEdges
from native import address, function, structure
from postgres.arrays import array_text, integers
from postgres.connection import Connection, fetch

MERGED_SEGMENTS = 4
"""Number of segments of similar length that are merged: building one takes longer than searching a few more."""

MERGED_EDGES = 65_536
"""Most edges that one merge of segments rewrites, or 1/`MERGED_PART` of the edges loaded if that is more."""

MERGED_PART = 32

_SOME: LiteralString = " and doc = any(%(docs)s::integer[])"
_BETWEEN: LiteralString = " and entity >= %(least)s::bigint and entity <= %(most)s::bigint"

MENTIONS: LiteralString = (
    "string_agg(int8send(entity), ''), string_agg(int4send(doc), ''), string_agg(float4send(weight), '')"
)
"""The select list of table `mention` whose row `edges_of` decodes."""

_MENTIONS: LiteralString = "select " + MENTIONS + " from mention where ns = %(ns)s"
_RELATIONS: LiteralString = "select source, type, target, doc from relation where ns = %(ns)s"

_mentions = function("trivet_graph_mentions", "PPqqP")


class Adjacency(Persistent):
    """The graph of one namespace. Removed memories stay in it; callers mask them out.

    Attributes:
        relations: stated by the memories; without those of removed ones.
    """

    PARTS = ("_home", "relations")
    COPIED = ("_home",)

    def __init__(self, edges: NarrowEdges = NO_EDGES, relations: Iterable[StatedRelation] = ()) -> None:
        """Load the initial edges and relations."""
        loaded = EdgeSegment(edges)
        self._segments = [loaded]
        self._home = np.full(int(loaded.memories.max(initial=-1)) + 1, NO_SEGMENT, np.uint8)
        self._home[loaded.memories] = 0
        self._layout: bytes | None = None
        self.relations = RelationIndex()
        self.relations.add(relations)

    def arrays(self) -> dict[str, Any]:
        """All arrays, those of segments by the segment's number."""
        segments = [named(segment.arrays(), str(number)) for number, segment in enumerate(self._segments)]
        return super().arrays() | {name: array for each in segments for name, array in each.items()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Use the `arrays` of another graph."""
        super().restore(arrays)
        self._segments.clear()
        while part := part_of(arrays, str(len(self._segments))):
            self._segments.append(EdgeSegment())
            self._segments[-1].restore(part)

    @property
    def nbytes(self) -> int:
        """Approximate memory of the graph, in bytes."""
        return super().nbytes + sum(segment.nbytes for segment in self._segments)

    @property
    def is_fragmented(self) -> bool:
        """Whether it has so many segments that rebuilding it is better."""
        return len(self._segments) > MOST_SEGMENTS // 2

    @property
    def layout(self) -> bytes:
        """The graph as `trivet_graph` of `native/graph.h`, valid until the next `add` or `remove`."""
        if self._layout is None:
            head = structure(self._home, len(self._home), len(self._segments))
            self._layout = head + b"".join(segment.layout for segment in self._segments)
        return self._layout

    def add(self, edges: NarrowEdges, relations: Iterable[StatedRelation], docs: Collection[int]) -> None:
        """Add all edges and relations of the memories `docs`, replacing what was stored for them."""
        self.remove(docs)
        if len(edges[1]):
            self._put(EdgeSegment(edges))
            self._merge()
        self.relations.add(relations)

    def remove(self, docs: Collection[int]) -> None:
        """Drop memories that were deleted or changed."""
        self._layout = None
        for doc in docs:
            if doc < len(self._home) and self._home[doc] != NO_SEGMENT:
                self._segments[self._home[doc]].remove(doc)
                self._home[doc] = NO_SEGMENT
        self.relations.remove(docs)

    def mentions(self, entities: NDArray[np.int64], *, cap: int) -> NDArray[np.int64]:
        """The number of memories that mention each entity, at most `cap`; same shape as `entities`."""
        counts = np.empty(len(entities), np.int64)
        _mentions(self.layout, address(entities), len(entities), cap, address(counts))
        return counts

    def docs_of(self, entity: int) -> NDArray[np.int64]:
        """The memories that mention an entity, latest first."""
        parts = []
        for number, segment in enumerate(self._segments):
            docs = segment.docs_of(entity)
            parts.append(docs[self._home[docs] == number])
        return np.sort(np.concatenate(parts)).astype(np.int64)[::-1]

    def mentions_in(self, docs: NDArray[np.int64]) -> NarrowEdges:
        """The edges of some memories."""
        home = np.full(len(docs), NO_SEGMENT, np.uint8)
        known = docs < len(self._home)
        home[known] = self._home[docs[known]]
        parts = [segment.mentions_in(docs[home == number]) for number, segment in enumerate(self._segments)]
        entities, mentioned_in, weights = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return entities, mentioned_in, weights

    def mention_counts(self, eligible: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All entities that eligible memories mention, and how many mention each, most first, ties by id."""
        parts = []
        for number, segment in enumerate(self._segments):
            there = (self._home[segment.memories] == number) & in_mask(segment.memories, eligible)
            codes = segment.codes[np.repeat(there, np.diff(segment.memory_starts))]
            parts.append((segment.entities, np.bincount(codes, minlength=len(segment.entities))))
        numbers, counts = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        entities, codes = np.unique(numbers, return_inverse=True)
        totals = np.bincount(codes, counts, len(entities)).astype(np.int64)
        order = np.lexsort((entities, -totals))[: int(np.count_nonzero(totals))]
        return entities[order], totals[order]

    @property
    def is_consistent(self) -> bool:
        """Whether its indexes by entity and by memory agree."""
        return self.relations.is_consistent and all(segment.is_consistent for segment in self._segments)

    def _put(self, segment: EdgeSegment) -> None:
        """Append a segment and make it the home of its memories."""
        length = int(segment.memories[-1]) + 1
        if length > len(self._home):
            grown = np.full(length + length // 8, NO_SEGMENT, np.uint8)
            grown[: len(self._home)] = self._home
            self._home = grown
        self._home[segment.memories] = len(self._segments)
        self._segments.append(segment)

    def _merge(self) -> None:
        """Merge the last segments if enough are of similar length; the initial one is never merged."""
        most = max(MERGED_EDGES, len(self._segments[0]) // MERGED_PART)
        merged, edges = 1, len(self._segments[-1])
        while merged < len(self._segments) - 1:
            before = len(self._segments[-1 - merged])
            if before > 2 * edges or before + edges > most:
                break
            merged, edges = merged + 1, edges + before
        if len(self._segments) >= MOST_SEGMENTS:
            merged = max(merged, 2)
        elif merged < MERGED_SEGMENTS:
            return
        parts = []
        for _ in range(merged):
            segment = self._segments.pop()
            parts.append(segment.mentions_in(segment.memories[self._home[segment.memories] == len(self._segments)]))
        numbers, docs, weights = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        if len(docs):
            self._put(EdgeSegment((numbers, docs, weights)))


def in_mask(docs: NDArray[Any], mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which memories are in a mask: none added after it was made, nor -1 if its last value is unset, as in an index."""
    found: NDArray[np.bool_] = mask[np.minimum(docs, len(mask) - 1)] & (docs < len(mask))
    return found


def is_in_mask(doc: int, mask: NDArray[np.bool_]) -> bool:
    """Whether a memory is in a mask; one added after it was made is not."""
    return doc < len(mask) and bool(mask[doc])


async def read_edges(
    conn: Connection, ns: int, docs: Collection[int] | None = None, *, parts: int = 1, roots: Roots
) -> tuple[NarrowEdges, list[StatedRelation]]:
    """Read the edges and relations of a namespace, or of some memories by ordinal, with roots for merged entities.

    All edges are read in `parts` statements, as a connection's buffer stays as large as its largest result.
    """
    params: dict[str, Any] = {"ns": ns} if docs is None else {"ns": ns, "docs": array_text(docs)}
    read = []
    mentions: LiteralString = _MENTIONS + (_BETWEEN if docs is None else _SOME)
    for least, most in id_ranges(parts):
        [row] = await fetch(conn, mentions, params | {"least": least, "most": most}, binary=True)
        read.append(edges_of(*row))
    relations: LiteralString = _RELATIONS if docs is None else _RELATIONS + _SOME
    stated = await fetch(conn, relations, params, binary=True)
    numbers, memories, weights = (np.concatenate(columns) for columns in zip(*read, strict=True))
    return unified((numbers, memories, weights), [StatedRelation(*relation) for relation in stated], roots)


def id_ranges(parts: int) -> Iterator[tuple[int, int]]:
    """Closed ranges of 64-bit hashes, of equal size and so with about equally many entities or terms each."""
    for start, end in pairwise(-(2**63) + part * 2**64 // parts for part in range(parts + 1)):
        yield start, end - 1


def edges_of(entities: bytes | None, docs: bytes | None, weights: bytes | None) -> NarrowEdges:
    """Decode the row that `MENTIONS` selects."""
    return (
        integers(entities, ">i8"),
        np.frombuffer(docs or b"", ">i4").astype(np.int32),
        np.frombuffer(weights or b"", ">f4").astype(np.float32),
    )
