"""The vectors of the memories that one query needs, as float32."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Iterable, Sequence
from itertools import compress, count, repeat

import numpy as np
from numpy.typing import NDArray

import native
from classifier.features import EMBEDDING_DIM
from retrieval.index.namespace_index import NamespaceIndex
from retrieval.index.quantized_vectors import QuantizedVectors
from retrieval.index.slots import slotted
from retrieval.store import vectors
from retrieval.store.pool import Pool
from retrieval.store.vectors import StoredVectors

_ROOM = 256
"""Initial capacity in memories: more than a search with the default fan-out needs."""

_cosines = native.function("trivet_cosines", "qPPqPP")


class QueryVectors:
    """Vectors of memories of one namespace, from its index or else from the database, kept for the query.

    Reading raises VectorsReplaced if the namespace got new ones since its index was brought up to date.
    """

    def __init__(self, pool: Pool, index: NamespaceIndex) -> None:
        self._pool = pool
        self._index = index
        self._row_of: dict[int, int] = {}
        self._absent: set[int] = set()
        self._reading = asyncio.Lock()
        # Allocated when needed: under load a query spends most of its time waiting.
        self._vectors = np.empty((2, 0, EMBEDDING_DIM), np.float32)

    @property
    def context_vectors(self) -> NDArray[np.float32]:
        """The vectors by which memories are found, shape (n, dimensions)."""
        return self._vectors[0, : len(self._row_of)]

    @property
    def text_vectors(self) -> NDArray[np.float32]:
        """The vectors of the texts alone, for turns without the turns before them, shape (n, dimensions)."""
        return self._vectors[1, : len(self._row_of)]

    async def read(self, docs: Sequence[int]) -> None:
        """Read the vectors of memories: the new ones of a memory updated meanwhile, none of a deleted one."""
        if not self.take(docs):
            return
        async with self._reading:  # another leg may be reading the same
            if missing := self.take(docs):
                await self._read_from_database(missing)

    async def _read_from_database(self, missing: Sequence[int]) -> None:
        kept, ns, slots = self._index.vectors, self._index.ns, self._index.memories.slots
        version, generation = kept.version, self._index.generation
        async with self._pool.connection() as conn:
            found = slotted(slots, await vectors.read(conn, ns, slots.to_ordinal_list(missing), generation=generation))
            gone = sorted(set(missing).difference(found.docs.tolist()))
            ids = self._index.memories.ids.get(np.array(gone, np.int64))
            moved = await vectors.read_moved(conn, ns, gone, ids, generation=generation) if gone else None
        kept.put(*found, version=version)
        self._add(found)
        if moved is not None:
            self._add(moved)
        self._absent.update(doc for doc in gone if doc not in self._row_of)

    def _add(self, found: StoredVectors) -> None:
        """Add vectors read from the database, rounded as the index would store them."""
        rows = {doc: row for row, doc in enumerate(found.docs.tolist())}
        new = self.unread(rows)  # another leg may have taken some from the index meanwhile
        if not new:
            return
        turns, wanted = (np.array([rows[doc] for doc in each], np.int64) for each in (found.turns.tolist(), new))
        rounding = QuantizedVectors(*found.context_vectors.shape)
        rounding.put(np.arange(len(rows)), found.context_vectors, turns, found.text_vectors, version=rounding.version)
        rounding.read(wanted, *self._room_for(len(new)))
        self._assign_rows(new)

    def take(self, docs: Iterable[int]) -> list[int]:
        """Copy the vectors the index holds; returns the memories whose vectors are missing."""
        wanted = self.unread(docs)
        if not wanted:
            return []
        here = self._index.vectors.read(np.array(wanted, np.int64), *self._room_for(len(wanted))).tolist()
        self._assign_rows(compress(wanted, here))
        return [doc for doc, is_here in zip(wanted, here, strict=True) if not is_here]

    def unread(self, docs: Iterable[int]) -> list[int]:
        """The memories that have not been read and are not known to be deleted."""
        return [doc for doc in docs if doc not in self._row_of and doc not in self._absent]

    def rows_of(self, docs: Sequence[int]) -> NDArray[np.int64]:
        """The memories' rows in `context_vectors` and `text_vectors`, -1 for missing ones."""
        return np.frombuffer(array("q", map(self._row_of.get, docs, repeat(-1))), np.int64)

    def _room_for(self, count: int) -> NDArray[np.float32]:
        """A view for the context and text vectors of the next memories, shape (2, count, dimensions)."""
        first, end = len(self._row_of), len(self._row_of) + count
        if end > self._vectors.shape[1]:
            grown = np.empty((2, max(2 * end, _ROOM), EMBEDDING_DIM), np.float32)
            grown[:, :first] = self._vectors[:, :first]
            self._vectors = grown
        return self._vectors[:, first:end]

    def _assign_rows(self, docs: Iterable[int]) -> None:
        """Assign the next rows to these memories."""
        self._row_of.update(zip(docs, count(len(self._row_of)), strict=False))


def cosines(
    vectors: NDArray[np.float32], embedding: NDArray[np.float32], rows: NDArray[np.int64] | None = None
) -> NDArray[np.float32]:
    """Cosines of unit vectors with an embedding; equal vectors get equal cosines wherever they are stored.

    A matrix product does not guarantee that. `vectors` has shape (n, dimensions); `rows` are the indices of those
    to compare, in [0, n); None for all.
    """
    if embedding.shape != vectors.shape[1:]:
        raise ValueError(f"vectors of shape {vectors.shape} do not match an embedding of shape {embedding.shape}")
    vectors, embedding = np.ascontiguousarray(vectors, np.float32), np.ascontiguousarray(embedding, np.float32)
    products = np.empty(len(vectors) if rows is None else len(rows), np.float32)
    _cosines(
        len(products), native.address(vectors), None if rows is None else native.address(rows), vectors.shape[1],
        native.address(embedding), native.address(products),
    )  # fmt: skip
    return products
