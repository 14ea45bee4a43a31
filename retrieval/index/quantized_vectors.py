"""The memories' vectors in memory, quantized to 12 bits per component, and the search for the nearest.

A component is rounded to 1/2047 of the largest in its vector, so that a cosine is off by about 0.00002, the same error
that the stored half-precision floats already have.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from classifier.features import EMBEDDING_DIM
from graph.adjacency import in_mask
from graph.persistent import Persistent
from native import address, function, structure
from native.worker_pool import WorkerPool
from retrieval.index.slots import GrowableArray

NO_ROW = -1

_MASKS_KEPT = 4

_pack = function("trivet_pack", "PPPq")
_read = function("trivet_read_vectors", "PPPPqPqPPP")
_nearest = function("trivet_nearest", "PqPPqqPqqPPP", "i")


class EligibleRows(NamedTuple):
    """The eligible memories, by slot.

    Attributes:
        known: a mask of those whose vectors are in memory.
        size: the number of eligible memories, whether their vectors are in memory or not.
        missing: slots of those whose vectors are not in memory.
    """

    known: NDArray[np.bool_]
    size: int
    missing: NDArray[np.int64]


class QuantizedVectors(Persistent):
    """The context vectors of memories by slot, and the text vectors of turns.

    Attributes:
        version: incremented when vectors are dropped; vectors read from the database before that may be outdated.
        count: memories whose vectors are in memory.
    """

    PARTS = ("_context", "_text", "_text_row", "_known", "count")
    COPIED = ("_text_row.values", "_known.values")

    def __init__(self, slots: int, dimensions: int = EMBEDDING_DIM) -> None:
        """Reserve address space for an expected number of slots and some more; pages are allocated on use.

        `dimensions` is even.
        """
        self._context = _Rows(slots, dimensions, is_searched=True)
        self._text = _Rows(slots, dimensions, is_searched=False)
        self._text_row = GrowableArray(np.int32, NO_ROW)
        self._known = GrowableArray(np.bool_, False)
        self._removed_in = GrowableArray(np.int32, 0)
        self._masks: deque[tuple[NDArray[np.bool_], EligibleRows]] = deque(maxlen=_MASKS_KEPT)
        self.version = 0
        self.count = 0

    @property
    def nbytes(self) -> int:
        """Their approximate size in bytes."""
        return super().nbytes + self._removed_in.nbytes

    def knows(self, docs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """A mask of the memories whose vectors are in memory."""
        return in_mask(docs, self._known.values)

    def eligible_rows(self, mask: NDArray[np.bool_]) -> EligibleRows:
        """The eligible memories of a mask by slot; the mask must not change afterwards."""
        for kept in self._masks:
            if kept[0] is mask:
                return kept[1]
        self._known.ensure(len(mask))
        known = self._known.values[: len(mask)]
        rows = EligibleRows(mask & known, int(np.count_nonzero(mask)), np.flatnonzero(mask > known))
        self._masks.append((mask, rows))
        return rows

    def put(
        self,
        docs: NDArray[np.int64],
        context_vectors: NDArray[np.float32],
        turns: NDArray[np.int64],
        text_vectors: NDArray[np.float32],
        *,
        version: int,
    ) -> None:
        """Store vectors that were read while `version` was current, except those dropped since."""
        fresh, fresh_turns = self._is_fresh(docs, version), self._is_fresh(turns, version)
        self._context.put(docs[fresh], context_vectors[fresh])
        text_rows = self._admit(docs[fresh], turns[fresh_turns])
        self._text.put(text_rows, text_vectors[fresh_turns])

    def take_over(self, docs: NDArray[np.int64], former: QuantizedVectors, former_docs: NDArray[np.int64]) -> None:
        """Copy the vectors of the same memories from another index, which may lack some; none is stored here yet."""
        known = former.knows(former_docs)
        docs, former_docs = docs[known], former_docs[known]
        former_rows = former._text_row.values[former_docs]
        is_turn = former_rows != NO_ROW
        self._context.copy(docs, former._context, former_docs)
        text_rows = self._admit(docs, docs[is_turn])
        self._text.copy(text_rows, former._text, former_rows[is_turn])

    def _admit(self, docs: NDArray[np.int64], turns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count memories as known; returns the rows for the text vectors of the turns among them, new for new ones."""
        self._masks.clear()
        self.count += docs.size - int(np.count_nonzero(self.knows(docs)))
        self._known.put(docs, True)
        self._text_row.put(np.setdiff1d(docs, turns), NO_ROW)
        self._text_row.ensure(int(turns.max(initial=-1)) + 1)
        rows = self._text_row.values[turns].astype(np.int64)
        new = np.flatnonzero(rows == NO_ROW)
        rows[new] = self._text.high.needed + np.arange(new.size)
        self._text_row.put(turns, rows)
        return rows

    def _is_fresh(self, docs: NDArray[np.int64], version: int) -> NDArray[np.bool_]:
        self._removed_in.ensure(int(docs.max(initial=-1)) + 1)
        fresh: NDArray[np.bool_] = self._removed_in.values[docs] <= version
        return fresh

    def remove(self, docs: NDArray[np.int64]) -> None:
        """Drop the vectors of changed memories."""
        self.version += 1
        self._masks.clear()
        self._removed_in.put(docs, self.version)
        known = docs[self.knows(docs)]
        self._known.values[known] = False
        self.count -= known.size

    def read(
        self, docs: NDArray[np.int64], context_vectors: NDArray[np.float32], text_vectors: NDArray[np.float32]
    ) -> NDArray[np.bool_]:
        """Copy the context and text vectors of memories into two arrays, without gaps if some are missing.

        Each array has shape (n, dimensions), for n slots. Returns a mask of the memories whose vectors are in memory,
        shape (n,).
        """
        docs = np.ascontiguousarray(docs, np.int64)
        for out in (context_vectors, text_vectors):
            has_room = out.shape == (len(docs), self._context.shape[1])
            if not has_room or out.dtype != np.float32 or not out.flags.c_contiguous:
                raise ValueError(f"{out.dtype} of shape {out.shape} has no room for {len(docs)} vectors")
        is_here = np.empty(len(docs), np.bool_)
        known, text_rows = self._known.values, self._text_row.values
        _read(
            self._context.layout, self._text.layout, address(known), address(text_rows),
            min(len(known), len(text_rows)), address(docs), len(docs), address(context_vectors), address(text_vectors),
            address(is_here),
        )  # fmt: skip
        return is_here

    async def nearest(
        self,
        mask: NDArray[np.bool_],
        embedding: NDArray[np.float32],
        count: int,
        *,
        breadth: int,
        workers: WorkerPool | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The memories of a mask by slot that are nearest to an embedding, best first, and their cosines.

        Memories whose vectors are not in memory are left out. The `embedding` is a unit vector, shape (dimensions,),
        and the mask must not change afterwards. After a first pass by the signs of the components, `breadth` memories
        are compared by the upper 8 of 12 bits, and the best `count` of those (or fewer) are ordered by all bits. With
        `workers` the search runs in these threads without blocking the event loop. Raises MemoryError if an allocation
        failed.
        """
        searched, context = self.eligible_rows(mask), self._context
        query = np.ascontiguousarray(embedding, np.float32)
        if query.shape != context.shape[1:]:
            raise ValueError(f"expected a query of {context.shape[1]} numbers, got shape {query.shape}")
        eligible = np.ascontiguousarray(searched.known[: context.shape[0]])  # may be shorter
        rows, products, size = np.empty(count, np.int64), np.empty(count, np.float32), np.zeros(1, np.int64)

        def submit(pool: int | None, ticket: int) -> None:
            _nearest(
                pool, ticket, context.layout, address(eligible), len(eligible), searched.size, address(query),
                max(breadth, count), count, address(rows), address(products), address(size),
            )  # fmt: skip

        if workers is None:
            submit(None, 0)
        else:  # keep the arrays alive, as larger ones may replace them meanwhile
            await workers.run(submit, (context.in_use, eligible, rows, products, size))
        found = int(size[0])
        return rows[:found], products[:found]


class _Rows(Persistent):
    """Quantized vectors by row, in the format of native/vectors.c; without signs if they are not searched."""

    PARTS = ("high", "low", "signs", "scales")

    def __init__(self, rows: int, dimensions: int, *, is_searched: bool) -> None:
        self.high, self.low = GrowableArray(np.int8, 0, dimensions), GrowableArray(np.uint8, 0, dimensions // 2)
        self.signs = GrowableArray(np.uint64, 0, -(-dimensions // 64) if is_searched else 0)
        self.scales = GrowableArray(np.float32, 0)
        self._arrays = self.high, self.low, self.signs, self.scales
        for array in self._arrays:
            array.reserve(rows)

    @property
    def shape(self) -> tuple[int, ...]:
        """The capacity in vectors, and their dimensions."""
        return self.high.values.shape

    @property
    def in_use(self) -> list[NDArray[Any]]:
        """The arrays; growing replaces them by larger ones."""
        return [array.values for array in self._arrays]

    @property
    def layout(self) -> bytes:
        """The `struct quantized` of native/vectors.c, valid as long as `in_use` is."""
        return structure(*(array if array.size else None for array in self.in_use), *self.shape)

    def put(self, rows: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Store vectors, replacing those in the same rows."""
        if not rows.size:
            return
        for array in self._arrays:
            array.ensure(int(rows.max()) + 1)
        rows, vectors = np.ascontiguousarray(rows, np.int64), np.ascontiguousarray(vectors, np.float32)
        if rows.min() < 0:
            raise IndexError("a row below 0")
        if vectors.shape != (len(rows), self.shape[1]):
            raise ValueError(f"expected {len(rows)} vectors of {self.shape[1]} numbers, got shape {vectors.shape}")
        _pack(self.layout, address(vectors), address(rows), len(rows))

    def copy(self, rows: NDArray[np.int64], other: _Rows, other_rows: NDArray[np.int64]) -> None:
        """Copy rows of another instance."""
        for array, source in zip(self._arrays, other._arrays, strict=True):
            array.put(rows, source[other_rows])
