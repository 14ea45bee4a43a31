"""Who mentions whom, in memory: the edges of a namespace between entities and memories, and its relations.

What was loaded is one segment of edges. What was added since lies in further ones, of which the last are made into one
again and again, so that there are few; a memory's edges count in the segment where it is at home.
"""

from __future__ import annotations

import ctypes
from bisect import insort
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, LiteralString

import numpy as np
from numpy.typing import NDArray
from psycopg import AsyncConnection

from graph.arrays import array_text
from graph.chaining import Stated
from graph.segments import MOST_SEGMENTS, NOWHERE, Chart, NarrowEdges, Segment
from native import Array, at, function

Edges = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""Entities, memories and weights, one of each per edge."""

MERGED_EDGES = 65_536
"""Edges that are arranged anew at once to have fewer segments, or a part of those loaded if that is more."""

MERGED_PART = 32

_ALL: LiteralString = "where ns = %(ns)s"
_SOME: LiteralString = "where ns = %(ns)s and doc = any(%(docs)s::integer[])"
_BETWEEN: LiteralString = " and entity >= %(least)s::bigint and entity <= %(most)s::bigint"

MENTIONS: LiteralString = (
    "string_agg(int8send(entity), ''), string_agg(int4send(doc), ''), string_agg(float4send(weight), '')"
)
"""What `edges_of` makes edges of, of the table `mention`."""

_RELATIONS: LiteralString = "select source, type, target, doc from relation"

_COUNT = ctypes.c_int64
_mentions = function("trivet_graph_mentions", Array, Array, _COUNT, _COUNT, Array)
_latest = function(
    "trivet_graph_latest", Array, Array, _COUNT, Array, _COUNT, _COUNT, _COUNT, Array, Array, Array, result=_COUNT
)
_weightiest = function(
    "trivet_graph_weightiest", Array, Array, _COUNT, _COUNT, Array, Array, Array, result=_COUNT
)  # fmt: skip


class Adjacency:
    """The graph of one namespace; memories that are gone stay in it, callers leave them out by a mask."""

    def __init__(self, edges: NarrowEdges, relations: Iterable[Stated]) -> None:
        """Arrange all there is to begin with."""
        loaded = Segment(edges)
        self._segments = [loaded]
        self._home = np.full(int(loaded.memories.max(initial=-1)) + 1, NOWHERE, np.uint8)
        self._home[loaded.memories] = 0
        self._chart: Chart | None = None
        self._outgoing: dict[int, list[Stated]] = {}
        self._incoming: dict[int, list[Stated]] = {}
        self._relations_of_memory: dict[int, list[Stated]] = {}
        for relation in relations:
            self._relate(relation)

    @classmethod
    def of(cls, edges: NarrowEdges, relations: Iterable[Stated]) -> Adjacency:
        """The graph that has these."""
        return cls(edges, relations)

    @property
    def nbytes(self) -> int:
        """Memory that the edges take, about."""
        relations = sum(map(len, self._outgoing.values()))
        return self._home.nbytes + sum(segment.nbytes for segment in self._segments) + 300 * relations

    @property
    def chart(self) -> int:
        """Where C finds it; good until memories come or go."""
        if self._chart is None:
            self._chart = Chart.of(self._segments, self._home)
        return ctypes.addressof(self._chart)

    def add(self, edges: NarrowEdges, relations: Iterable[Stated], docs: Collection[int]) -> None:
        """Take in all edges and relations of some memories, in the place of what was known of them."""
        self.remove(docs)
        if len(edges[1]):
            self._put(Segment(edges))
            self._merge()
        for relation in relations:
            self._relate(relation)

    def remove(self, docs: Collection[int]) -> None:
        """Forget memories that are gone or were altered."""
        self._chart = None
        for doc in docs:
            if doc < len(self._home) and self._home[doc] != NOWHERE:
                self._segments[self._home[doc]].remove(doc)
                self._home[doc] = NOWHERE
            for relation in self._relations_of_memory.pop(doc, ()):
                self._outgoing[relation.source].remove(relation)
                self._incoming[relation.target].remove(relation)

    def mentions(self, entities: NDArray[np.int64], *, cap: int) -> NDArray[np.int64]:
        """How many memories mention each of some entities, counted up to `cap`; shape of `entities`."""
        counts = np.empty(len(entities), np.int64)
        _mentions(self.chart, at(entities), len(entities), cap, at(counts))
        return counts

    def latest_of(self, entities: NDArray[np.int64], eligible: NDArray[np.bool_], *, scanned: int, most: int) -> Edges:
        """The edges of some entities to the latest eligible memories that mention them.

        Args:
            entities: numbers, none twice.
            eligible: by ordinal.
            scanned: most memories looked at of each entity.
            most: most taken of each.
        """
        count = len(entities)
        room = _room(count * most)
        found = _latest(
            self.chart, at(eligible), len(eligible), at(entities), count, scanned, most, *map(at, room)
        )  # fmt: skip
        return room[0][:found], room[1][:found], room[2][:found]

    def weightiest_of(self, docs: NDArray[np.int64], *, most: int) -> Edges:
        """The edges of some memories, none twice, to the entities that they mention with most weight."""
        room = _room(len(docs) * most)
        found = _weightiest(self.chart, at(docs), len(docs), most, *map(at, room))
        return room[0][:found], room[1][:found], room[2][:found]

    def has_relations(self, entity: int) -> bool:
        """Whether there is any relation of an entity."""
        return bool(self._outgoing.get(entity) or self._incoming.get(entity))

    def relations_of(self, entity: int) -> tuple[Sequence[Stated], Sequence[Stated]]:
        """The relations that an entity is the source of, and those that it is the target of."""
        return self._outgoing.get(entity, ()), self._incoming.get(entity, ())

    def _put(self, segment: Segment) -> None:
        """Add a segment, which is its memories' home from now on."""
        length = int(segment.memories[-1]) + 1
        if length > len(self._home):
            grown = np.full(length + length // 8, NOWHERE, np.uint8)
            grown[: len(self._home)] = self._home
            self._home = grown
        self._home[segment.memories] = len(self._segments)
        self._segments.append(segment)

    def _merge(self) -> None:
        """Make one of the last segments while they are about as long as each other, but for that which was loaded."""
        most = max(MERGED_EDGES, len(self._segments[0]) // MERGED_PART)
        while len(self._segments) > 2:
            one, other = len(self._segments[-2]), len(self._segments[-1])
            if len(self._segments) < MOST_SEGMENTS and (one > 2 * other or one + other > most):
                break
            parts = []
            for number in (len(self._segments) - 1, len(self._segments) - 2):
                segment = self._segments.pop()
                parts.append(segment.edges(self._home[segment.memories] == number))
            numbers, docs, weights = (np.concatenate(columns) for columns in zip(*parts, strict=True))
            if len(docs):
                self._put(Segment((numbers, docs, weights)))

    def _relate(self, relation: Stated) -> None:
        insort(self._outgoing.setdefault(relation.source, []), relation)
        insort(self._incoming.setdefault(relation.target, []), relation)
        self._relations_of_memory.setdefault(relation.doc, []).append(relation)


async def read_edges(
    conn: AsyncConnection[Any], ns: int, docs: Collection[int] | None = None, *, parts: int = 1
) -> tuple[NarrowEdges, list[Stated]]:
    """All edges and relations of a namespace, or those of some memories.

    Args:
        conn: to read by several statements.
        ns: the namespace's number.
        docs: the memories; None for all.
        parts: statements by which all edges are read. A connection keeps room for the largest answer it ever had.
    """
    params: dict[str, Any] = {"ns": ns} if docs is None else {"ns": ns, "docs": array_text(docs)}
    only, ranges = (_ALL, _ranges(parts)) if docs is None else (_SOME, [(0, 0)])
    mentions: LiteralString = "select " + MENTIONS + " from mention " + only + (_BETWEEN if docs is None else "")
    read = []
    for least, most in ranges:
        row = await (await conn.execute(mentions, params | {"least": least, "most": most}, binary=True)).fetchone()
        if row is None:
            raise RuntimeError("an aggregate without groups gave no row")
        read.append(edges_of(*row))
    relations = await (await conn.execute(_RELATIONS + " " + only, params, binary=True)).fetchall()
    numbers, memories, weights = (np.concatenate(columns) for columns in zip(*read, strict=True))
    return (numbers, memories, weights), [Stated(*relation) for relation in relations]


def _ranges(parts: int) -> Iterator[tuple[int, int]]:
    """Ranges of entities, ends included, in each of which there are about as many: their numbers are hashes."""
    starts = [-(2**63) + part * 2**64 // parts for part in range(parts + 1)]
    return ((start, end - 1) for start, end in pairwise(starts))


def edges_of(entities: bytes | None, docs: bytes | None, weights: bytes | None) -> NarrowEdges:
    """Edges as PostgreSQL sends them."""
    return (
        np.frombuffer(entities or b"", ">i8").astype(np.int64),
        np.frombuffer(docs or b"", ">i4").astype(np.int32),
        np.frombuffer(weights or b"", ">f4").astype(np.float32),
    )


def _room(edges: int) -> Edges:
    return np.empty(edges, np.int64), np.empty(edges, np.int64), np.empty(edges, np.float64)
