"""Who mentions whom, in memory: the edges of a namespace between entities and memories, and its relations.

Edges lie twice as one long array each, cut by entity and by memory, so that a walk takes what it needs in a few
numpy calls. What was added since is kept beside it, by entity and by memory, until the next load.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, LiteralString

import numpy as np
from numpy.typing import NDArray
from psycopg import AsyncConnection

from graph.arrays import array_text
from graph.chaining import Stated

Edges = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""Entities, memories and weights, one of each per edge."""

NarrowEdges = tuple[NDArray[np.int64], NDArray[np.integer[Any]], NDArray[np.floating[Any]]]
"""The same, of any precision: all edges of a namespace are many."""

_ALL: LiteralString = "where ns = %(ns)s"
_SOME: LiteralString = "where ns = %(ns)s and doc = any(%(docs)s::integer[])"

_MENTIONS: LiteralString = """
    select string_agg(int8send(entity), ''), string_agg(int4send(doc), ''), string_agg(float4send(weight), '')
    from mention
"""
_RELATIONS: LiteralString = "select source, type, target, doc from relation"

_NO_EDGES: Edges = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float64))


@dataclass(slots=True)
class Adjacency:
    """The graph of one namespace; memories that are gone stay in it, callers leave them out by a mask.

    Attributes:
        entities: numbers of the entities loaded, ascending, shape (n,): an entity's code is its place here.
    """

    entities: NDArray[np.int64]
    _of_entity: _Cut
    _of_memory: _Cut
    _loaded: NDArray[np.bool_]
    _outgoing: dict[int, list[Stated]] = field(default_factory=dict)
    _incoming: dict[int, list[Stated]] = field(default_factory=dict)
    _relations_of_memory: dict[int, list[Stated]] = field(default_factory=dict)
    _later_of_entity: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    _later_of_memory: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    _fewer: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, edges: NarrowEdges, relations: Iterable[Stated]) -> Adjacency:
        """Arrange edges, each entity's from its latest memory on and each memory's from its weightiest on."""
        numbers, docs, weights = edges
        entities, inverse = np.unique(numbers, return_inverse=True)
        codes = inverse.astype(np.int32)
        memories = int(docs.max(initial=-1)) + 1
        graph = cls(
            entities=entities,
            _of_entity=_Cut.by(codes, docs, weights, np.lexsort((-docs, codes)), len(entities)),
            _of_memory=_Cut.by(docs, codes, weights, np.lexsort((codes, -weights, docs)), memories),
            _loaded=np.ones(memories, np.bool_),
        )
        for relation in relations:
            graph._relate(relation)
        return graph

    @property
    def added(self) -> int:
        """Memories added since it was loaded."""
        return len(self._later_of_memory)

    @property
    def nbytes(self) -> int:
        """Memory that the edges take, about."""
        relations = sum(map(len, self._outgoing.values()))
        return self.entities.nbytes + self._of_entity.nbytes + self._of_memory.nbytes + 300 * relations

    def add(self, edges: NarrowEdges, relations: Iterable[Stated], docs: Collection[int]) -> None:
        """Take in all edges and relations of some memories, in the place of what was known of them."""
        self.remove(docs)
        for entity, doc, weight in zip(*(column.tolist() for column in edges), strict=True):
            self._later_of_entity.setdefault(entity, []).append((doc, weight))
            self._later_of_memory.setdefault(doc, []).append((entity, weight))
        for doc in docs:
            if doc in self._later_of_memory:
                self._later_of_memory[doc].sort(key=lambda way: (-way[1], way[0]))
        for relation in relations:
            self._relate(relation)

    def remove(self, docs: Collection[int]) -> None:
        """Forget memories that are gone or were altered."""
        for doc in docs:
            for entity, _ in self._later_of_memory.pop(doc, ()):
                self._later_of_entity[entity] = [way for way in self._later_of_entity[entity] if way[0] != doc]
            if doc < len(self._loaded) and self._loaded[doc]:
                self._loaded[doc] = False
                for entity in self.entities[self._of_memory.cut(doc)[0]].tolist():
                    self._fewer[entity] = self._fewer.get(entity, 0) + 1
            for relation in self._relations_of_memory.pop(doc, ()):
                self._outgoing[relation.source].remove(relation)
                self._incoming[relation.target].remove(relation)

    def mentions(self, entities: NDArray[np.int64], *, cap: int) -> NDArray[np.int64]:
        """How many memories mention each of some entities, counted up to `cap`; shape of `entities`."""
        codes = self._codes(entities)
        counts = np.where(codes >= 0, self._of_entity.sizes(np.maximum(codes, 0)), 0)
        if self._later_of_entity or self._fewer:
            later = [
                len(self._later_of_entity.get(entity, ())) - self._fewer.get(entity, 0) for entity in entities.tolist()
            ]
            counts = counts + np.array(later, np.int64)
        return np.asarray(np.minimum(counts, cap))

    def latest_of(self, entities: NDArray[np.int64], eligible: NDArray[np.bool_], *, scanned: int, most: int) -> Edges:
        """The edges of some entities to the latest eligible memories that mention them.

        Args:
            entities: numbers, none twice.
            eligible: by ordinal.
            scanned: most memories looked at of each entity.
            most: most taken of each.
        """
        codes = self._codes(entities)
        at, docs, weights = self._of_entity.first(np.maximum(codes, 0), np.where(codes >= 0, scanned, 0))
        if self._fewer:
            there = self._loaded[docs]
            at, docs, weights = at[there], docs[there], weights[there]
        if self._later_of_entity and (later := [e for e in entities.tolist() if self._later_of_entity.get(e)]):
            at, docs, weights = self._with_later(entities, later, at, docs, weights, scanned)
        kept = eligible[docs]
        at, docs, weights = at[kept], docs[kept], weights[kept]
        few = _place_in_run(at) < most
        return entities[at[few]], docs[few], weights[few]

    def weightiest_of(self, docs: NDArray[np.int64], *, most: int) -> Edges:
        """The edges of some memories, none twice, to the entities that they mention with most weight."""
        known = docs < len(self._loaded)
        known[known] = self._loaded[docs[known]]
        at, codes, weights = self._of_memory.first(np.where(known, docs, 0), np.where(known, most, 0))
        later = [
            (entity, doc, weight)
            for doc in (docs.tolist() if self._later_of_memory else ())
            for entity, weight in self._later_of_memory.get(doc, ())[:most]
        ]
        return _joined((self.entities[codes], docs[at], weights), later)

    def relations_of(self, entity: int) -> tuple[Sequence[Stated], Sequence[Stated]]:
        """The relations that an entity is the source of, and those that it is the target of."""
        return self._outgoing.get(entity, ()), self._incoming.get(entity, ())

    def _with_later(
        self,
        entities: NDArray[np.int64],
        later: Sequence[int],
        at: NDArray[np.int64],
        docs: NDArray[np.int64],
        weights: NDArray[np.float64],
        scanned: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        place = {entity: row for row, entity in enumerate(entities.tolist())}
        new = [(place[entity], doc, weight) for entity in later for doc, weight in self._later_of_entity[entity]]
        at, docs, weights = _joined((at, docs, weights), new)
        order = np.lexsort((-docs, at))
        at, docs, weights = at[order], docs[order], weights[order]
        first = _place_in_run(at) < scanned
        return at[first], docs[first], weights[first]

    def _codes(self, entities: NDArray[np.int64]) -> NDArray[np.int64]:
        """Codes of entities, -1 for those that were not loaded."""
        if not self.entities.size:
            return np.full(len(entities), -1, np.int64)
        at = np.minimum(np.searchsorted(self.entities, entities), len(self.entities) - 1)
        return np.where(self.entities[at] == entities, at, -1)

    def _relate(self, relation: Stated) -> None:
        insort(self._outgoing.setdefault(relation.source, []), relation)
        insort(self._incoming.setdefault(relation.target, []), relation)
        self._relations_of_memory.setdefault(relation.doc, []).append(relation)


@dataclass(frozen=True, slots=True)
class _Cut:
    """Values and weights, cut by a key in [0, keys)."""

    starts: NDArray[np.int64]
    values: NDArray[np.int32]
    weights: NDArray[np.float32]

    @classmethod
    def by(
        cls,
        keys: NDArray[np.integer[Any]],
        values: NDArray[np.integer[Any]],
        weights: NDArray[np.floating[Any]],
        order: NDArray[np.int64],
        count: int,
    ) -> _Cut:
        starts = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(keys, minlength=count), out=starts[1:])
        return cls(starts, values[order].astype(np.int32, copy=False), weights[order].astype(np.float32, copy=False))

    @property
    def nbytes(self) -> int:
        return self.starts.nbytes + self.values.nbytes + self.weights.nbytes

    def sizes(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        if len(self.starts) == 1:
            return np.zeros(len(keys), np.int64)
        return np.asarray(self.starts[keys + 1] - self.starts[keys])

    def cut(self, key: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        if not 0 <= key < len(self.starts) - 1:
            return self.values[:0], self.weights[:0]
        part = slice(self.starts[key], self.starts[key + 1])
        return self.values[part], self.weights[part]

    def first(
        self, keys: NDArray[np.int64], most: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """The first values of each key: places in `keys`, values, weights."""
        sizes = np.minimum(self.sizes(keys), most)
        places = np.repeat(np.arange(len(keys)), sizes)
        ends = np.cumsum(sizes)
        inside = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - sizes, sizes)
        if not len(inside):
            return _NO_EDGES
        where = self.starts[keys][places] + inside
        return places, self.values[where].astype(np.int64), self.weights[where].astype(np.float64)


async def read_edges(
    conn: AsyncConnection[Any], ns: int, docs: Collection[int] | None = None
) -> tuple[NarrowEdges, list[Stated]]:
    """All edges and relations of a namespace, or those of some memories."""
    only = _ALL if docs is None else _SOME
    params = {"ns": ns} if docs is None else {"ns": ns, "docs": array_text(docs)}
    row = await (await conn.execute(_MENTIONS + only, params, binary=True)).fetchone()
    relations = await (await conn.execute(_RELATIONS + " " + only, params, binary=True)).fetchall()
    if row is None:
        raise RuntimeError("an aggregate without groups gave no row")
    numbers, memories, weights = (part or b"" for part in row)
    edges = (
        np.frombuffer(numbers, ">i8").astype(np.int64),
        np.frombuffer(memories, ">i4").astype(np.int32),
        np.frombuffer(weights, ">f4").astype(np.float32),
    )
    return edges, [Stated(*relation) for relation in relations]


def _joined(edges: Edges, more: Sequence[tuple[int, int, float]]) -> Edges:
    if not more:
        return edges
    first, second, third = zip(*more, strict=True)
    return (
        np.concatenate([edges[0], np.array(first, np.int64)]),
        np.concatenate([edges[1], np.array(second, np.int64)]),
        np.concatenate([edges[2], np.array(third, np.float64)]),
    )


def _place_in_run(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each element of an array of runs of equal keys, its place in its run from 0."""
    if not len(keys):
        return np.empty(0, np.int64)
    begins = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=begins[1:])
    starts = np.flatnonzero(begins)
    places: NDArray[np.int64] = np.arange(len(keys)) - starts[np.cumsum(begins) - 1]
    return places
