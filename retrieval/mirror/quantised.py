"""Vectors of memories as far as they have been read, in 12 bits a component, and the nearest of them.

A component is rounded to 1/2047 of the greatest of its vector, so that a cosine is off by some 0.00002: as much as the
half floats that are stored already are.
"""

from __future__ import annotations

import ctypes
from collections import deque
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from native import Array, at, function
from native.crew import Crew
from retrieval.embedding.onnx import DIMENSIONS
from retrieval.mirror.growing import Growing

NOWHERE = -1

_MASKS_KEPT = 4

_NONE = np.empty(0, np.int64)

_LAYOUT = Struct("5q")

_pack = function("trivet_pack", *[Array] * 3, ctypes.c_int64)
_read = function("trivet_read_vectors", *[Array] * 4, ctypes.c_int64, Array, ctypes.c_int64, *[Array] * 3)
_nearest = function(
    "trivet_nearest",
    Array, ctypes.c_int64, Array, Array, *[ctypes.c_int64] * 2, Array, *[ctypes.c_int64] * 2, *[Array] * 3,
    result=ctypes.c_int,
)  # fmt: skip


class Among(NamedTuple):
    """Some memories by ordinal.

    Attributes:
        known: a mask of those whose vectors are here.
        size: how many there are, whether their vectors are here or not.
        missing: those whose vectors are not here.
    """

    known: NDArray[np.bool_]
    size: int
    missing: NDArray[np.int64]


class Quantised:
    """The stored vectors of memories by ordinal, and the own ones of turns.

    Attributes:
        version: counts up when vectors are forgotten; what was read before may be out of date then.
        count: of memories whose vectors are here.
    """

    def __init__(self, ordinals: int) -> None:
        """Have room for so many ordinals; memory is taken as it is used."""
        self._stored = _Rows(ordinals, is_searched=True)
        self._own = _Rows(0, is_searched=False)
        self._own_row = Growing(np.int32, NOWHERE)
        self._known = Growing(np.bool_, False)
        self._forgotten_in = Growing(np.int32, 0)
        self._own_rows = 0
        self._masks: deque[tuple[NDArray[np.bool_], Among]] = deque(maxlen=_MASKS_KEPT)
        self.version = 0
        self.count = 0

    @property
    def nbytes(self) -> int:
        """Memory that they take, about."""
        by_ordinal = self._own_row.nbytes + self._known.nbytes + self._forgotten_in.nbytes
        return self._stored.nbytes + self._own.nbytes + by_ordinal

    def knows(self, docs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Of which memories the vectors are here."""
        known = docs < len(self._known.values)
        known[known] = self._known.values[docs[known]]
        return known

    def among(self, mask: NDArray[np.bool_]) -> Among:
        """The memories of a mask by ordinal; the mask is not to be changed afterwards."""
        for kept in self._masks:
            if kept[0] is mask:
                return kept[1]
        self._known.reach(len(mask))
        known = self._known.values[: len(mask)]
        unknown = mask > known
        among = Among(mask, int(np.count_nonzero(mask)), _NONE)
        if unknown.any():
            among = Among(mask & known, among.size, np.flatnonzero(unknown))
        self._masks.append((mask, among))
        return among

    def put(
        self,
        docs: NDArray[np.int64],
        stored: NDArray[np.float32],
        turns: NDArray[np.int64],
        own: NDArray[np.float32],
        *,
        version: int,
    ) -> None:
        """Keep vectors that were read while `version` was current, but for those forgotten since."""
        fresh = self._is_fresh(docs, version)
        docs, stored = docs[fresh], stored[fresh]
        if not docs.size:
            return
        self._masks.clear()
        self.count += docs.size - int(np.count_nonzero(self.knows(docs)))
        self._stored.put(docs, stored)
        self._known.put(docs, True)
        self._own_row.put(docs, NOWHERE)
        fresh = self._is_fresh(turns, version)
        turns, own = turns[fresh], own[fresh]
        if turns.size:
            rows = np.arange(self._own_rows, self._own_rows + turns.size)
            self._own.put(rows, own)
            self._own_row.put(turns, rows)
            self._own_rows += turns.size

    def _is_fresh(self, docs: NDArray[np.int64], version: int) -> NDArray[np.bool_]:
        self._forgotten_in.reach(int(docs.max(initial=-1)) + 1)
        fresh: NDArray[np.bool_] = self._forgotten_in.values[docs] <= version
        return fresh

    def forget(self, docs: NDArray[np.int64]) -> None:
        """Drop the vectors of memories that were altered."""
        self.version += 1
        self._masks.clear()
        self._forgotten_in.put(docs, self.version)
        known = docs[self.knows(docs)]
        self._known.values[known] = False
        self.count -= known.size

    def read(self, docs: NDArray[np.int64], stored: NDArray[np.float32], own: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Write the stored and the own vectors of memories into two arrays, those that are here one after another.

        Args:
            docs: ordinals.
            stored: room for all, shape (n, dimensions).
            own: the same.

        Returns:
            Which memories' vectors are here.
        """
        docs = np.ascontiguousarray(docs, np.int64)
        for out in (stored, own):
            if out.shape != (len(docs), DIMENSIONS) or out.dtype != np.float32 or not out.flags.c_contiguous:
                raise ValueError(f"{out.dtype} of shape {out.shape} has no room for {len(docs)} vectors")
        is_here = np.empty(len(docs), np.bool_)
        known, own_rows = self._known.values, self._own_row.values
        _read(
            self._stored.layout, self._own.layout, at(known), at(own_rows), min(len(known), len(own_rows)),
            at(docs), len(docs), at(stored), at(own), at(is_here),
        )  # fmt: skip
        return is_here

    async def nearest(
        self,
        mask: NDArray[np.bool_],
        embedding: NDArray[np.float32],
        count: int,
        *,
        breadth: int,
        crew: Crew | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The memories of a mask by ordinal that are nearest to an embedding, best first, and their cosines.

        Those of which no vector is here are left out.

        Args:
            mask: not to be changed afterwards.
            embedding: a unit vector.
            count: most memories.
            breadth: how many are compared by more than the signs of their components; with as many as the mask has,
                what is found is exact.
            crew: computes it, if given, while others go on.
        """
        search = self._stored.search(self.among(mask), embedding, count, max(breadth, count))
        if crew is None:
            search.begin(None, 0)
        else:
            await crew(search.begin, search)
        return search.found()

    @staticmethod
    def rounded(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Vectors as they come back once they were kept: the same question has the same answer."""
        kept, docs, rounded = Quantised(len(vectors)), np.arange(len(vectors)), np.empty_like(vectors)
        kept.put(docs, vectors, docs[:0], vectors[:0], version=0)
        kept.read(docs, rounded, np.empty_like(vectors))
        return rounded


class _Rows:
    """Vectors by row; `native/vectors.c` says how they are kept."""

    def __init__(self, rows: int, *, is_searched: bool) -> None:
        self._is_searched = is_searched
        signs = np.zeros((rows, DIMENSIONS // 64), np.uint64) if is_searched else None  # nothing else asks for them
        self._keep(
            np.zeros((rows, DIMENSIONS), np.int8), np.zeros((rows, DIMENSIONS // 2), np.uint8), signs,
            np.ones(rows, np.float32),
        )  # fmt: skip

    def _keep(
        self,
        high: NDArray[np.int8],
        low: NDArray[np.uint8],
        signs: NDArray[np.uint64] | None,
        scales: NDArray[np.float32],
    ) -> None:
        """Have these arrays, laid out as `struct kept` of native/vectors.c, which is good as long as they are."""
        self.arrays, self.rows = (high, low, signs, scales), len(scales)
        self.layout = _LAYOUT.pack(*[0 if array is None else at(array) for array in self.arrays], self.rows)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays if array is not None)

    def put(self, rows: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Keep vectors; what was in their rows is gone."""
        length, before = int(rows.max()) + 1, self.rows
        if length > before:
            grown = _Rows(length + length // 8, is_searched=self._is_searched)
            for array, larger in zip(self.arrays, grown.arrays, strict=True):
                if array is not None and larger is not None:
                    larger[:before] = array
            self._keep(*grown.arrays)
        rows, vectors = _checked(rows, self.rows), np.ascontiguousarray(vectors, np.float32)
        if vectors.shape != (len(rows), DIMENSIONS):
            raise ValueError(f"{len(rows)} vectors of {DIMENSIONS} numbers are wanted, not {vectors.shape}")
        _pack(self.layout, at(vectors), at(rows), len(rows))

    def search(self, among: Among, embedding: NDArray[np.float32], count: int, breadth: int) -> _Search:
        """See `Quantised.nearest`; the mask says nothing of rows that there are not."""
        query = np.ascontiguousarray(embedding, np.float32)
        mask = np.ascontiguousarray(among.known[: self.rows])
        return _Search(self.layout, self.arrays, mask, among.size, query, count, breadth)


class _Search:
    """A search for the nearest rows, and all arrays that it needs."""

    def __init__(
        self,
        layout: bytes,
        arrays: tuple[NDArray[Any] | None, ...],
        mask: NDArray[np.bool_],
        among: int,
        query: NDArray[np.float32],
        count: int,
        breadth: int,
    ) -> None:
        self._layout, self._query, self._breadth = layout, query, breadth
        self._arrays = arrays  # larger ones may take their place meanwhile
        self._mask, self._among = mask, among
        self._rows, self._products = np.empty(count, np.int64), np.empty(count, np.float32)
        self._size = np.zeros(1, np.int64)

    def begin(self, crew: int | None, ticket: int) -> None:
        """Hand it to a crew, or do it here and now.

        Raises:
            MemoryError: there is not enough.
        """
        failed = _nearest(
            crew, ticket, self._layout, at(self._mask), len(self._mask), self._among, at(self._query), self._breadth,
            len(self._rows), at(self._rows), at(self._products), at(self._size),
        )  # fmt: skip
        if failed:
            raise MemoryError

    def found(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The rows, best first, and their products."""
        size = int(self._size[0])
        return self._rows[:size], self._products[:size]


def _checked(rows: NDArray[np.int64], room: int) -> NDArray[np.int64]:
    rows = np.ascontiguousarray(rows, np.int64)
    if rows.size and not (rows.min() >= 0 and rows.max() < room):
        raise IndexError(f"a row beyond {room}")
    return rows
