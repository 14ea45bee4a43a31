"""The vectors of the memories that one query looks at."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

import native
from retrieval.mirror.mirror import Mirror
from retrieval.store import vectors
from retrieval.store.pool import Pool

_cosines = native.function(
    "trivet_cosines",
    ctypes.c_int64, native.Array, native.Array, ctypes.c_int64, native.Array, native.Array,
)  # fmt: skip


class Vectors:
    """Vectors of some memories of one namespace: from its mirror, or else from the database, and kept.

    Attributes:
        stored: by which the memory is found, float32 of shape (n, dimensions).
        own: of its own text: for a turn without those before it.
    """

    def __init__(self, pool: Pool, mirror: Mirror) -> None:
        """Start with none."""
        self._pool = pool
        self._mirror = mirror
        self._places: dict[int, int] = {}
        self._asked: set[int] = set()
        self.stored: NDArray[np.float32] = np.empty((0, 0), np.float32)
        self.own: NDArray[np.float32] = np.empty((0, 0), np.float32)

    async def read(self, docs: Iterable[int]) -> None:
        """Have those of some memories; one deleted meanwhile stays absent."""
        wanted = np.array([doc for doc in docs if doc not in self._places], np.int64)
        if not wanted.size:
            return
        self._asked.update(wanted.tolist())
        kept = self._mirror.vectors
        known = kept.knows(wanted)
        if known.any():
            self._add(wanted[known], *kept.of(wanted[known]))
        missing = wanted[~known].tolist()
        if missing:
            version = kept.version
            async with self._pool.connection() as conn:
                found = await vectors.read(conn, self._mirror.ns, missing)
            if found.docs.size:
                kept.put(*found, version=version)
                found = found._replace(vectors=kept.rounded(found.vectors), own=kept.rounded(found.own))
                own = found.vectors
                if found.turns.size:
                    order = np.argsort(found.docs)
                    own = found.vectors.copy()
                    own[order[np.searchsorted(found.docs, found.turns, sorter=order)]] = found.own
                self._add(found.docs, found.vectors, own)

    def __contains__(self, doc: int) -> bool:
        """Whether the vectors of a memory are here."""
        return doc in self._places

    def unread(self, docs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of some memories that were not asked for; what was, and is not here, does not exist."""
        return np.array([doc for doc in docs.tolist() if doc not in self._asked], np.int64)

    def places(self, docs: Sequence[int]) -> NDArray[np.intp]:
        """The rows of memories in `stored` and `own`, -1 for those that are not there."""
        places = self._places
        return np.array([places.get(doc, -1) for doc in docs], np.intp)

    def _add(self, docs: NDArray[np.int64], stored: NDArray[np.float32], own: NDArray[np.float32]) -> None:
        first = len(self._places)
        self._places.update(zip(docs.tolist(), range(first, first + docs.size), strict=True))
        self.stored = np.concatenate([self.stored, stored]) if first else stored
        self.own = np.concatenate([self.own, own]) if first else own


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
