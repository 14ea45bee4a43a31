"""The intent model in numpy, the reference for the ONNX file: encoded queries, vocabularies, members, familiarity.

How similar a query is to the training queries shows in the distance to the nearest of their centroids, and in the share
of its n-grams that they have. Distances to the training data indicate unseen inputs (Lee et al., NeurIPS 2018,
arXiv:1807.03888); a logistic regression weights them against generated texts that are not queries (Hendrycks et al.,
"Deep Anomaly Detection with Outlier Exposure", ICLR 2019, arXiv:1812.04606). Held-out queries show which scores are
usual.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression

from classifier.features import BUCKETS, EMBEDDING_DIM, LEXICAL, QueryFeatures, query_features
from classifier.training.metrics import softmax

GRAM_SETS = QueryFeatures._fields[1:]
"""Names of the sets of n-grams, in order."""
FORM_SETS = ("skeleton",)
"""The n-grams of the form member; the word member uses all of `GRAM_SETS`."""
CENTROIDS = 192
USUAL_SHARE = 0.08
"""Share of the held-out queries that may score below `USUAL`."""
USUAL = 0.8


@dataclass(frozen=True, kw_only=True, slots=True)
class EncodedQueries:
    """The features of n queries."""

    rows: NDArray[np.float32]
    """Shape (n, FEATURE_DIM)."""
    grams: dict[str, csr_matrix]
    """By set of n-grams, shape (n, BUCKETS): 1 if the query has an n-gram in the bucket."""

    def __getitem__(self, chosen: NDArray[np.intp]) -> "EncodedQueries":
        """The chosen queries, in that order."""
        return EncodedQueries(rows=self.rows[chosen], grams={name: grams[chosen] for name, grams in self.grams.items()})


def encode(texts: Sequence[str], embeddings: NDArray[np.float32]) -> EncodedQueries:
    """Encode queries with their embeddings, shape (n, 384)."""
    features = [query_features(text, vector) for text, vector in zip(texts, embeddings, strict=True)]
    return EncodedQueries(
        rows=np.stack([each.row for each in features]),
        grams={name: _sparse([getattr(each, name) for each in features]) for name in GRAM_SETS},
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class GramVocabulary:
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


def vocabulary(grams: csr_matrix, originals: NDArray[np.bool_], at_least: int) -> GramVocabulary:
    """Collect the n-grams that occur in at least `at_least` originals."""
    counted = grams[np.flatnonzero(originals)]
    frequency = np.asarray(counted.sum(axis=0)).ravel()
    seen = np.flatnonzero(frequency >= at_least)
    slots = np.zeros(BUCKETS, dtype=np.int32)
    slots[seen] = np.arange(1, len(seen) + 1, dtype=np.int32)
    idf = np.log((1.0 + counted.shape[0]) / (1.0 + frequency[seen])) + 1.0
    return GramVocabulary(slots=slots, idf=np.concatenate([[0.0], idf]))


def _sparse(sets: Sequence[NDArray[np.int64]]) -> csr_matrix:
    """One row per set of buckets; bucket 0 means none."""
    kept = [buckets[buckets > 0] for buckets in sets]
    ends = np.cumsum([0, *(len(buckets) for buckets in kept)])
    columns = np.concatenate(kept) if kept else np.zeros(0, np.int64)
    return csr_matrix((np.ones(len(columns)), columns, ends), shape=(len(kept), BUCKETS))


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """A linear score and the piecewise linear function that maps it to in_domain."""

    weights: NDArray[np.float64]
    intercept: float
    strange: float
    """Median score of texts that are not queries; at or below it in_domain is 0."""
    usual: float
    """Score reached by all but `USUAL_SHARE` of the queries; in_domain is `USUAL` there."""
    best: float
    """Median score of queries; at or above it in_domain is 1."""

    def in_domain(self, evidence: NDArray[np.float64]) -> NDArray[np.float64]:
        """In [0, 1], shape (n,), for evidence of shape (n, weights)."""
        score = evidence @ self.weights + self.intercept
        below, above = (low + (high - low) * (score - start) / (end - start) for start, end, low, high in self.lines())
        return np.clip(np.where(score < self.usual, below, above), 0.0, 1.0)

    def lines(self) -> tuple[tuple[float, float, float, float], ...]:
        """The two linear pieces: (first score, last score, in_domain at the first, in_domain at the last)."""
        return (self.strange, self.usual, 0.0, USUAL), (self.usual, self.best, USUAL, 1.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class IntentDomain:
    """The parameters that determine a query's in_domain."""

    centroids: NDArray[np.float64]
    """Shape (k, 384), unit length."""
    embedded: Scale
    bare: Scale
    """For queries without an embedding: n-grams only."""


def centroids(embeddings: NDArray[np.float32], seed: int) -> NDArray[np.float64]:
    """The centroids of the training queries' clusters, normalised to unit length."""
    count = min(CENTROIDS, len(np.unique(embeddings, axis=0)))
    middles = KMeans(count, n_init=1, random_state=seed).fit(embeddings.astype(np.float64)).cluster_centers_
    unit: NDArray[np.float64] = middles / np.maximum(np.linalg.norm(middles, axis=1, keepdims=True), 1e-9)
    return unit


def evidence(
    encoded: EncodedQueries, vocabularies: Mapping[str, GramVocabulary], middles: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The evidence of in_domain, shape (n, 4): shares of seen n-grams, and the cosine of the nearest centroid."""
    known = [vocabularies[name].known(encoded.grams[name]) for name in GRAM_SETS]
    nearest = (encoded.rows[:, :EMBEDDING_DIM] @ middles.T).max(axis=1)
    return np.column_stack([*known, nearest])


def fit_scale(queries: NDArray[np.float64], strange: NDArray[np.float64]) -> Scale:
    """Fit the score on held-out queries against texts that are not queries."""
    rows = np.vstack([queries, strange])
    labels = np.r_[np.ones(len(queries)), np.zeros(len(strange))]
    model = LogisticRegression(class_weight="balanced", C=1.0, max_iter=1000).fit(rows, labels)
    score = model.decision_function(queries)
    usual, best = np.quantile(score, [USUAL_SHARE, 0.5])
    middle = min(float(np.median(model.decision_function(strange))), float(usual) - 1e-3)
    return Scale(
        weights=model.coef_[0],
        intercept=float(model.intercept_[0]),
        strange=middle,
        usual=float(usual),
        best=max(float(best), float(usual) + 1e-3),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """A linear model over one view of a query."""

    dense: NDArray[np.float64]
    """Shape (columns, 4), over the member's part of the row; possibly no columns."""
    tables: dict[str, NDArray[np.float64]]
    """By set of n-grams, shape (slots, 4); row 0 is zeros."""
    intercept: NDArray[np.float64]
    """Shape (4,)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IntentModel:
    """Two members, for form and for words, whose probabilities are averaged, with their calibration."""

    vocabularies: dict[str, GramVocabulary]
    form: Member
    """Over the embedding, the lexical numbers and the skeleton."""
    bare_form: Member
    """For queries without an embedding: over the lexical numbers and the skeleton."""
    words: Member
    """Over all n-grams, with or without an embedding."""
    temperature: float
    """Of the averaged probabilities, with an embedding."""
    bare_temperature: float
    """The same without an embedding."""
    in_domain: IntentDomain

    def averaged(self, encoded: EncodedQueries, *, embedded: bool) -> NDArray[np.float64]:
        """Logarithms of the members' mean probabilities before temperature, shape (n, 4)."""
        scaled = {name: self.vocabularies[name].scaled(encoded.grams[name]) for name in GRAM_SETS}
        form = self.form if embedded else self.bare_form
        dense = dense_view(encoded, embedded=embedded)
        logits = [
            member.intercept + view @ member.dense + sum(scaled[name] @ table for name, table in member.tables.items())
            for member, view in ((form, dense), (self.words, dense[:, :0]))
        ]
        mean = np.mean([softmax(each) for each in logits], axis=0)
        result: NDArray[np.float64] = np.log(mean)
        return result

    def probabilities(self, encoded: EncodedQueries, *, embedded: bool) -> NDArray[np.float64]:
        """Calibrated, shape (n, 4), rows summing to 1."""
        temperature = self.temperature if embedded else self.bare_temperature
        return softmax(self.averaged(encoded, embedded=embedded), temperature)


def dense_view(encoded: EncodedQueries, *, embedded: bool) -> NDArray[np.float64]:
    """The part of the rows that the form member reads."""
    first = 0 if embedded else EMBEDDING_DIM
    return encoded.rows[:, first : LEXICAL.stop].astype(np.float64)
