"""The vectors of the memories that one query looks at."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterable, Sequence
from itertools import compress, count, repeat

import numpy as np
from numpy.typing import NDArray

import native
from retrieval.embedding.onnx import DIMENSIONS
from retrieval.mirror.mirror import Mirror
from retrieval.store import vectors
from retrieval.store.pool import Pool

_ROOM = 256
"""Memories that there is room for at first: more than a search of the default breadth looks at."""

_NONE = np.empty((0, DIMENSIONS), np.float32)

_cosines = native.function(
    "trivet_cosines",
    ctypes.c_int64, native.Array, native.Array, ctypes.c_int64, native.Array, native.Array,
)  # fmt: skip


class Vectors:
    """Vectors of some memories of one namespace: from its mirror, or else from the database, and kept."""

    def __init__(self, pool: Pool, mirror: Mirror) -> None:
        """Start with none."""
        self._pool = pool
        self._mirror = mirror
        self._places: dict[int, int] = {}
        self._asked: set[int] = set()
        self._stored = self._own = _NONE  # most of the time of a query among many others is spent waiting

    @property
    def stored(self) -> NDArray[np.float32]:
        """By which memories are found, shape (n, dimensions)."""
        return self._stored[: len(self._places)]

    @property
    def own(self) -> NDArray[np.float32]:
        """Those of their own texts: of turns without those before them."""
        return self._own[: len(self._places)]

    async def read(self, docs: Iterable[int]) -> None:
        """Have those of some memories; one deleted meanwhile stays absent."""
        missing = self._take(docs)
        if missing:
            kept = self._mirror.vectors
            version = kept.version
            async with self._pool.connection() as conn:
                found = await vectors.read(conn, self._mirror.ns, missing)
            if found.docs.size:
                kept.put(*found, version=version)
                stored, own = self._room_for(found.docs.size)
                self._place(found.docs.tolist())
                stored[:] = own[:] = kept.rounded(found.vectors)
                if found.turns.size:
                    order = np.argsort(found.docs)
                    own[order[np.searchsorted(found.docs, found.turns, sorter=order)]] = kept.rounded(found.own)

    def take(self, docs: Iterable[int]) -> bool:
        """Have those of some memories that the mirror has; whether that is all of them."""
        return not self._take(docs)

    def _take(self, docs: Iterable[int]) -> list[int]:
        """Have those that the mirror has; which memories it has not."""
        wanted = [doc for doc in docs if doc not in self._places]
        if not wanted:
            return []
        self._asked.update(wanted)
        is_here = self._mirror.vectors.read(np.array(wanted, np.int64), *self._room_for(len(wanted)))
        if is_here.all():
            self._place(wanted)
            return []
        self._place(compress(wanted, is_here))
        return list(compress(wanted, ~is_here))

    def __contains__(self, doc: int) -> bool:
        """Whether the vectors of a memory are here."""
        return doc in self._places

    def unread(self, docs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of some memories that were not asked for; what was, and is not here, does not exist."""
        return np.array([doc for doc in docs.tolist() if doc not in self._asked], np.int64)

    def places(self, docs: Sequence[int]) -> NDArray[np.int64]:
        """The rows of memories in `stored` and `own`, -1 for those that are not there."""
        return np.frombuffer(array("q", map(self._places.get, docs, repeat(-1))), np.int64)

    def _room_for(self, count: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Where the stored and the own vectors of so many memories go, shape (count, dimensions) each."""
        first, end = len(self._places), len(self._places) + count
        if end > len(self._stored):
            grown = np.empty((2, max(2 * end, _ROOM), DIMENSIONS), np.float32)
            grown[0, :first], grown[1, :first] = self._stored[:first], self._own[:first]
            self._stored, self._own = grown
        return self._stored[first:end], self._own[first:end]

    def _place(self, docs: Iterable[int]) -> None:
        """Note that the vectors of these memories came next."""
        self._places.update(zip(docs, count(len(self._places)), strict=False))


def cosines(
    vectors: NDArray[np.float32], embedding: NDArray[np.float32], places: NDArray[np.int64] | None = None
) -> NDArray[np.float32]:
    """Of unit vectors and one more; equal ones have equal cosines wherever they stand.

    That is why it is no matrix product.

    Args:
        vectors: shape (n, dimensions).
        embedding: shape (dimensions,).
        places: of the vectors that are meant, in [0, n); None for all.
    """
    if embedding.shape != vectors.shape[1:]:
        raise ValueError(f"vectors of shape {vectors.shape} have no products with one of shape {embedding.shape}")
    vectors, embedding = np.ascontiguousarray(vectors, np.float32), np.ascontiguousarray(embedding, np.float32)
    products = np.empty(len(vectors) if places is None else len(places), np.float32)
    _cosines(
        len(products), native.at(vectors), None if places is None else native.at(places), vectors.shape[1],
        native.at(embedding), native.at(products),
    )  # fmt: skip
    return products
