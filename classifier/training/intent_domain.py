"""How similar a query is to the training queries: close to one of their centroids, and with n-grams that they have.

Distances to the training data indicate unseen inputs (Lee et al., NeurIPS 2018, arXiv:1807.03888); a logistic
regression weights them against generated texts that are not queries (Hendrycks et al., "Deep Anomaly Detection with
Outlier Exposure", ICLR 2019, arXiv:1812.04606). Held-out queries show which scores are usual.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression

from classifier.features import EMBEDDING_DIM
from classifier.training.encoding import GRAM_SETS, Encoded, Vocabulary

CENTROIDS = 192
USUAL_SHARE = 0.08
"""Share of the held-out queries that may score below `USUAL`."""
USUAL = 0.8


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
    encoded: Encoded, vocabularies: Mapping[str, Vocabulary], middles: NDArray[np.float64]
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
