"""Encodes queries as matrices with the serving code: rows of numbers and sparse sets of n-grams."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags

from classifier.features import BUCKETS, QueryFeatures, query_features

GRAM_SETS = QueryFeatures._fields[1:]
"""Names of the sets of n-grams, in order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Encoded:
    """The features of n queries."""

    rows: NDArray[np.float32]
    """Shape (n, FEATURE_DIM)."""
    grams: dict[str, csr_matrix]
    """By set of n-grams, shape (n, BUCKETS): 1 if the query has an n-gram in the bucket."""

    def __getitem__(self, chosen: NDArray[np.intp]) -> "Encoded":
        """The chosen queries, in that order."""
        return Encoded(rows=self.rows[chosen], grams={name: grams[chosen] for name, grams in self.grams.items()})


def encode(texts: Sequence[str], embeddings: NDArray[np.float32]) -> Encoded:
    """Encode queries with their embeddings, shape (n, 384)."""
    features = [query_features(text, vector) for text, vector in zip(texts, embeddings, strict=True)]
    return Encoded(
        rows=np.stack([each.row for each in features]),
        grams={name: _sparse([getattr(each, name) for each in features]) for name in GRAM_SETS},
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Vocabulary:
    """The n-grams of one set that are frequent enough in the training queries; others count as unseen."""

    slots: NDArray[np.int32]
    """Shape (BUCKETS,): row of the bucket in the vocabulary's tables; 0, a row of zeros, if unseen."""
    idf: NDArray[np.float64]
    """Shape (1 + seen,): inverse document frequency, log((1 + n) / (1 + df)) + 1; 0 for slot 0."""

    def scaled(self, grams: csr_matrix) -> csr_matrix:
        """tf-idf rows of unit length over the slots, shape (n, 1 + seen); zero rows if nothing was seen."""
        coo = grams.tocoo()
        slots = self.slots[coo.col]
        values = self.idf[slots]
        matrix = csr_matrix((values, (coo.row, slots)), shape=(grams.shape[0], len(self.idf)))
        norms = np.sqrt(np.bincount(coo.row, weights=values**2, minlength=grams.shape[0]))
        return (diags(1.0 / np.maximum(norms, 1e-6)) @ matrix).tocsr()

    def known(self, grams: csr_matrix) -> NDArray[np.float64]:
        """The share of each query's n-grams that was seen, shape (n,)."""
        seen = np.asarray(grams[:, np.flatnonzero(self.slots)].sum(axis=1)).ravel()
        found: NDArray[np.float64] = seen / np.maximum(np.asarray(grams.sum(axis=1)).ravel(), 1.0)
        return found


def vocabulary(grams: csr_matrix, originals: NDArray[np.bool_], at_least: int) -> Vocabulary:
    """Collect the n-grams that occur in at least `at_least` originals."""
    counted = grams[np.flatnonzero(originals)]
    frequency = np.asarray(counted.sum(axis=0)).ravel()
    seen = np.flatnonzero(frequency >= at_least)
    slots = np.zeros(BUCKETS, dtype=np.int32)
    slots[seen] = np.arange(1, len(seen) + 1, dtype=np.int32)
    idf = np.log((1.0 + counted.shape[0]) / (1.0 + frequency[seen])) + 1.0
    return Vocabulary(slots=slots, idf=np.concatenate([[0.0], idf]))


def _sparse(sets: Sequence[NDArray[np.int64]]) -> csr_matrix:
    """One row per set of buckets; bucket 0 means none."""
    kept = [buckets[buckets > 0] for buckets in sets]
    ends = np.cumsum([0, *(len(buckets) for buckets in kept)])
    columns = np.concatenate(kept) if kept else np.zeros(0, np.int64)
    return csr_matrix((np.ones(len(columns)), columns, ends), shape=(len(kept), BUCKETS))
