"""Edges between entities and memories in arrays, as `native/graph.h` reads them: ten bytes per edge."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from native import at

NarrowEdges = tuple[NDArray[np.int64], NDArray[np.integer[Any]], NDArray[np.floating[Any]]]
"""Entities, memories and weights, one of each per edge, of any precision: all edges of a namespace are many."""

LEVELS = 256
"""Different weights that are kept exactly; extraction gives a dozen. Where there are more, the nearest of as many."""

NOWHERE = 255
"""The home of a memory that is in no segment."""

MOST_SEGMENTS = 250


class Segment:
    """Some memories' edges, by entity with the latest memory first and by memory with the weightiest entity first.

    It stays as it is made; memories that are gone from it, or whose edges a later segment has, are left out by
    whoever reads it.
    """

    def __init__(self, edges: NarrowEdges) -> None:
        """Arrange edges, each pair of entity and memory once."""
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

    @property
    def nbytes(self) -> int:
        """Memory that it takes."""
        return sum(array.nbytes for array in self._arrays()) + (0 if self.gone is None else self.gone.nbytes)

    def __len__(self) -> int:
        """Edges."""
        return len(self.docs)

    def remove(self, doc: int) -> None:
        """Note that a memory of it is here no more."""
        place = int(np.searchsorted(self.memories, doc))
        if self.gone is None:
            self.gone = np.zeros(len(self.entities), np.int32)
        self.gone[self.codes[self.memory_starts[place] : self.memory_starts[place + 1]]] += 1

    def edges(self, there: NDArray[np.bool_]) -> NarrowEdges:
        """Its edges, without those of memories that are not `there`, one truth value for each of `memories`."""
        kept = np.repeat(there, np.diff(self.memory_starts))
        docs = np.repeat(self.memories, np.diff(self.memory_starts))
        return self.entities[self.codes[kept]], docs[kept], self.levels[self.code_weights[kept]]

    def described(self) -> Described:
        """Where its arrays are; good for as long as it lives and nothing more is removed."""
        gone = None if self.gone is None else at(self.gone)
        return Described(*map(at, self._arrays()), gone, len(self.entities), len(self.memories), len(self))

    def _arrays(self) -> tuple[NDArray[Any], ...]:
        return (self.entities, self.entity_starts, self.docs, self.doc_weights, self.memories, self.memory_starts,
                self.codes, self.code_weights, self.levels)  # fmt: skip


class Described(ctypes.Structure):
    """A segment for C."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("entities", "entity_starts", "docs", "doc_weights", "memories",
                                               "memory_starts", "codes", "code_weights", "levels", "gone")),
        *((name, ctypes.c_int64) for name in ("n_entities", "n_memories", "n_edges")),
    )  # fmt: skip


class Chart(ctypes.Structure):
    """All segments of a graph and where each memory is at home, for C."""

    _fields_ = (
        ("segments", ctypes.c_void_p),
        ("home", ctypes.c_void_p),
        ("n_segments", ctypes.c_int64),
        ("n_home", ctypes.c_int64),
    )

    @classmethod
    def of(cls, segments: Sequence[Segment], home: NDArray[np.uint8]) -> Chart:
        """Good for as long as these live and none of them changes."""
        described = (Described * len(segments))(*(segment.described() for segment in segments))
        chart = cls(ctypes.addressof(described), at(home), len(segments), len(home))
        chart.kept = described
        return chart


def _starts(keys: NDArray[np.integer[Any]], count: int) -> NDArray[np.int32]:
    """Where the run of each key in [0, count) begins once they are sorted, and where the last one ends.

    The database hands out at most a gigabyte at once: there are fewer edges than 32 bits count.
    """
    starts = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(keys, minlength=count), out=starts[1:])
    return starts
