"""Vectors of memories as far as they have been read: as they are stored, or in a byte per component.

There a component is rounded to 1/127 of the greatest of its vector, so that a cosine is off by about 0.0005: enough
to weigh candidates by, not to tell a caller how similar something is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from retrieval.mirror.growing import Growing

EXACT_UP_TO = 20_000
"""Ordinals of a namespace whose vectors are kept as they are stored, in two bytes per component."""

NOWHERE = -1

_AT_ONCE = 2_048  # rows that are floats at a time: as many as the processor's cache holds


class Quantised:
    """The stored vectors of memories by ordinal, and the own ones of turns.

    Attributes:
        version: counts up when vectors are forgotten; what was read before may be out of date then.
    """

    def __init__(self, ordinals: int, dimensions: int) -> None:
        """Have room for so many ordinals; memory is taken as it is used."""
        exact = ordinals <= EXACT_UP_TO
        self._stored = _Rows(ordinals, dimensions, exact=exact)
        self._own = _Rows(0, dimensions, exact=exact)
        self._own_row = Growing(np.int32, NOWHERE)
        self._known = Growing(np.bool_, False)
        self._own_rows = 0
        self.version = 0

    @property
    def nbytes(self) -> int:
        """Memory that they take, about."""
        return self._stored.nbytes + self._own.nbytes + self._own_row.nbytes + self._known.nbytes

    def knows(self, docs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Of which memories the vectors are here."""
        known = docs < len(self._known.values)
        known[known] = self._known.values[docs[known]]
        return known

    def put(
        self,
        docs: NDArray[np.int64],
        stored: NDArray[np.float32],
        turns: NDArray[np.int64],
        own: NDArray[np.float32],
        *,
        version: int,
    ) -> None:
        """Keep vectors that were read while `version` was current; nothing if it is no more."""
        if version != self.version or not docs.size:
            return
        self._stored.put(docs, stored)
        self._known.put(docs, True)
        self._own_row.put(docs, NOWHERE)
        if turns.size:
            rows = np.arange(self._own_rows, self._own_rows + turns.size)
            self._own.put(rows, own)
            self._own_row.put(turns, rows)
            self._own_rows += turns.size

    def forget(self, docs: NDArray[np.int64]) -> None:
        """Drop the vectors of memories that were altered."""
        self.version += 1
        self._known.values[docs[docs < len(self._known.values)]] = False

    def of(self, docs: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The stored and the own vectors of memories that are known, shape (n, dimensions) each."""
        stored = self._stored.of(docs)
        rows = self._own_row.values[docs]
        turns = np.flatnonzero(rows >= 0)
        own = stored
        if turns.size:
            own = stored.copy()
            own[turns] = self._own.of(rows[turns])
        return stored, own

    def likeliest(self, docs: NDArray[np.int64], embedding: NDArray[np.float32], count: int) -> NDArray[np.int64]:
        """Of some memories those that are about the nearest to an embedding, and all that are not known."""
        known = self.knows(docs)
        among = docs[known]
        if among.size <= count:
            return docs
        similarity = self._stored.products(among, embedding)
        best = np.argpartition(-similarity, count)[:count]
        return np.concatenate([among[best], docs[~known]])

    def rounded(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Vectors as they come back once they were kept: the same question has the same answer."""
        return self._stored.rounded(vectors) if len(vectors) else vectors


class _Rows:
    """Vectors as half floats, or as bytes with a scale each."""

    def __init__(self, rows: int, dimensions: int, *, exact: bool) -> None:
        self._exact = exact
        self._values: NDArray[np.float16 | np.int8] = np.zeros((rows, dimensions), np.float16 if exact else np.int8)
        self._scales = np.ones(rows, np.float32)

    @property
    def nbytes(self) -> int:
        return self._values.nbytes + self._scales.nbytes

    def put(self, rows: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        length = int(rows.max()) + 1
        if length > len(self._scales):
            grown = _Rows(length + length // 8, self._values.shape[1], exact=self._exact)
            grown._values[: len(self._scales)] = self._values
            grown._scales[: len(self._scales)] = self._scales
            self._values, self._scales = grown._values, grown._scales
        if not self._exact:
            greatest = np.abs(vectors).max(axis=1)
            self._scales[rows] = np.where(greatest > 0, greatest, 1) / 127
            vectors = np.rint(vectors / self._scales[rows][:, np.newaxis])
        self._values[rows] = vectors

    def rounded(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        if self._exact:
            return vectors
        rows, places = _Rows(*vectors.shape, exact=False), np.arange(len(vectors))
        rows.put(places, vectors)
        return rows.of(places)

    def products(self, rows: NDArray[np.integer], vector: NDArray[np.float32]) -> NDArray[np.float32]:
        parts = (rows[at : at + _AT_ONCE] for at in range(0, len(rows), _AT_ONCE))
        products: NDArray[np.float32] = np.concatenate(
            [self._values[part].astype(np.float32) @ vector for part in parts]
        )
        products *= self._scales[rows]
        return products

    def of(self, rows: NDArray[np.integer]) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = self._values[rows].astype(np.float32)
        if not self._exact:
            vectors *= self._scales[rows][:, np.newaxis]
        return vectors
