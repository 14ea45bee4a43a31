"""How like the training queries a query is: near one of their centroids, and made of n-grams that they have.

Distances to what was seen tell the unseen (Lee et al., NeurIPS 2018, arXiv:1807.03888); a logistic regression
weighs them against texts that are no queries, made up on the spot (Hendrycks et al., "Deep Anomaly Detection with
Outlier Exposure", ICLR 2019, arXiv:1812.04606). Held-out queries say what is usual.
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
"""Of held-out queries, the share that may lie below `USUAL`."""
USUAL = 0.8


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """A linear score and the straight lines that make a familiarity of it."""

    weights: NDArray[np.float64]
    intercept: float
    strange: float
    """The score of the middle one of texts that are no queries: familiarity 0 from there down."""
    usual: float
    """The score that all but `USUAL_SHARE` of queries reach: familiarity `USUAL`."""
    best: float
    """The score of the middle one of queries: familiarity 1 from there up."""

    def of(self, evidence: NDArray[np.float64]) -> NDArray[np.float64]:
        """Familiarity in [0, 1], shape (n,), of evidence of shape (n, weights)."""
        score = evidence @ self.weights + self.intercept
        below, above = (low + (high - low) * (score - start) / (end - start) for start, end, low, high in self.lines())
        return np.clip(np.where(score < self.usual, below, above), 0.0, 1.0)

    def lines(self) -> tuple[tuple[float, float, float, float], ...]:
        """The two straight lines: from which score to which they rise, and from which familiarity to which."""
        return (self.strange, self.usual, 0.0, USUAL), (self.usual, self.best, USUAL, 1.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Familiarity:
    """What is needed to tell how familiar a query is."""

    centroids: NDArray[np.float64]
    """Shape (k, 384), unit length."""
    embedded: Scale
    bare: Scale
    """For queries without an embedding: the n-grams alone."""


def centroids(embeddings: NDArray[np.float32], seed: int) -> NDArray[np.float64]:
    """The middles of the training queries' clusters, of unit length."""
    count = min(CENTROIDS, len(np.unique(embeddings, axis=0)))
    middles = KMeans(count, n_init=1, random_state=seed).fit(embeddings.astype(np.float64)).cluster_centers_
    unit: NDArray[np.float64] = middles / np.maximum(np.linalg.norm(middles, axis=1, keepdims=True), 1e-9)
    return unit


def evidence(
    encoded: Encoded, vocabularies: Mapping[str, Vocabulary], middles: NDArray[np.float64]
) -> NDArray[np.float64]:
    """What familiarity is read from, shape (n, 4): shares of seen n-grams, then the nearest centroid's cosine."""
    known = [vocabularies[name].known(encoded.grams[name]) for name in GRAM_SETS]
    nearest = (encoded.rows[:, :EMBEDDING_DIM] @ middles.T).max(axis=1)
    return np.column_stack([*known, nearest])


def fit_scale(queries: NDArray[np.float64], strange: NDArray[np.float64]) -> Scale:
    """Weigh the evidence of held-out queries against that of texts that are none."""
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
