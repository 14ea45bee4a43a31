"""Mention edges in arrays, in the layout of `native/graph.h`: ten bytes per edge."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.persistent import Persistent
from native import structure

NarrowEdges = tuple[NDArray[np.int64], NDArray[np.integer[Any]], NDArray[np.floating[Any]]]
"""Entities, memories and weights, one each per edge; any precision, as a namespace has many edges."""

NO_EDGES: NarrowEdges = (np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))

LEVELS = 256
"""Most distinct weights stored exactly (extraction produces a dozen); others are rounded to the nearest of these."""

NO_SEGMENT = 255
"""The home of a memory without a segment."""

MOST_SEGMENTS = 250


class EdgeSegment(Persistent):
    """Edges of some memories, indexed by entity (latest memory first) and by memory (greatest weight first).

    Immutable except for the count of removed edges: readers skip memories that are removed or in a later segment.
    """

    PARTS = ("entities", "entity_starts", "docs", "doc_weights", "memories", "memory_starts", "codes", "code_weights",
             "levels", "gone")  # fmt: skip
    """In the order of `trivet_segment` of `native/graph.h`."""
    COPIED = ("gone",)

    def __init__(self, edges: NarrowEdges = NO_EDGES) -> None:
        """Index the edges; each (entity, memory) pair occurs once."""
        numbers, docs, weights = edges
        self.entities, codes = np.unique(numbers, return_inverse=True)
        self.memories, places = np.unique(docs.astype(np.int32, copy=False), return_inverse=True)
        codes = codes.astype(np.int32)
        levels = np.unique(weights).astype(np.float64)
        levels = levels[np.linspace(0, len(levels) - 1, min(len(levels), LEVELS)).round().astype(np.intp)]
        level = np.searchsorted((levels[1:] + levels[:-1]) / 2, weights).astype(np.uint8)
        self.levels = np.zeros(LEVELS, np.float64)
        self.levels[: len(levels)] = levels
        order = np.lexsort((-docs, codes))
        self.entity_starts = _starts(codes, len(self.entities))
        self.docs, self.doc_weights = docs[order].astype(np.int32, copy=False), level[order]
        order = np.lexsort((codes, -weights, places))
        self.memory_starts = _starts(places, len(self.memories))
        self.codes, self.code_weights = codes[order], level[order]
        self.gone: NDArray[np.int32] | None = None

    def __len__(self) -> int:
        """The number of edges."""
        return len(self.docs)

    def remove(self, doc: int) -> None:
        """Count the edges of a removed memory per entity."""
        place = int(np.searchsorted(self.memories, doc))
        if self.gone is None:
            self.gone = np.zeros(len(self.entities), np.int32)
            self.__dict__.pop("layout", None)
        self.gone[self.codes[self.memory_starts[place] : self.memory_starts[place + 1]]] += 1

    def docs_of(self, entity: int) -> NDArray[np.int32]:
        """The memories that mention an entity, latest first, removed ones included."""
        place = int(np.searchsorted(self.entities, entity))
        if place == len(self.entities) or self.entities[place] != entity:
            return np.empty(0, np.int32)
        return self.docs[self.entity_starts[place] : self.entity_starts[place + 1]]

    def mentions_in(self, docs: NDArray[np.integer[Any]]) -> NarrowEdges:
        """The edges of some of its memories; takes time for these alone."""
        places = np.searchsorted(self.memories, docs)
        counts = self.memory_starts[places + 1] - self.memory_starts[places]
        ends = np.cumsum(counts)
        edges = np.arange(int(counts.sum())) + np.repeat(self.memory_starts[places] - ends + counts, counts)
        return self.entities[self.codes[edges]], np.repeat(docs, counts), self.levels[self.code_weights[edges]]

    @property
    def is_consistent(self) -> bool:
        """Whether the edges by entity match those by memory."""
        docs = np.repeat(self.memories, np.diff(self.memory_starts))
        order = np.lexsort((-docs, self.codes))
        return (
            np.array_equal(self.entity_starts, _starts(self.codes, len(self.entities)))
            and np.array_equal(self.docs, docs[order])
            and np.array_equal(self.doc_weights, self.code_weights[order])
        )

    @cached_property
    def layout(self) -> bytes:
        """The segment as `trivet_segment` of `native/graph.h`, valid during its life until the first removal."""
        arrays = (getattr(self, name) for name in self.PARTS)
        return structure(*arrays, len(self.entities), len(self.memories), len(self))


def _starts(keys: NDArray[np.integer[Any]], count: int) -> NDArray[np.int32]:
    """Where the run of each key in [0, count) starts in the sorted keys, and where the last one ends.

    32 bits suffice, as the database returns at most a gigabyte at once.
    """
    starts = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(keys, minlength=count), out=starts[1:])
    return starts
