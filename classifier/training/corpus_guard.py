"""Training: how similar the memories of a query are to those the rescorer was trained on, by their corpus features.

The distance to the nearest training queries, after standardising and decorrelating the features. Distances are scaled
by those in the training data, between a query and the queries of other users or conversations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NEIGHBOURS = 10

_RIDGE = 0.3
"""Added to the variance of each principal direction; the greatest variance is a few units."""

_NEAR, _FAR = 0.8, 0.95
"""Quantiles of the training queries' distances with in_domain 1 and 0."""

_MOST_PER_SET = 300


@dataclass(frozen=True, slots=True)
class FittedCorpusGuard:
    """in_domain = clip((far - d) / (far - near), 0, 1), with d the mean distance to the nearest of `known`.

    Attributes:
        mean, scale: per feature, shape (features,).
        directions: shape (features, features); a query is at (corpus - mean) / scale @ directions.
        known: training queries in these coordinates, shape (queries, features).
        near, far: distances.
    """

    mean: Floats
    scale: Floats
    directions: Floats
    known: Floats
    near: float
    far: float

    def in_domain(self, corpora: Floats) -> Floats:
        """For corpora of shape (n, features): shape (n,), in [0, 1]."""
        placed = (corpora - self.mean) / self.scale @ self.directions
        away = _nearest(_distances(placed, self.known))
        return np.asarray(np.clip((self.far - away) / (self.far - self.near), 0.0, 1.0))


def fit_corpus_guard(
    corpora: Floats, sets: Sequence[str], namespaces: Sequence[str], *, seed: int
) -> FittedCorpusGuard:
    """Fit on the training queries' corpora of shape (n, features), all sets having equal weight.

    Queries are compared with those of other namespaces if their set has several; the seed samples large sets.
    """
    counts = Counter(sets)
    share = np.array([1 / counts[name] for name in sets]) / len(counts)
    mean = share @ corpora
    scale = np.sqrt(share @ (corpora - mean) ** 2) + 1e-4
    standard = (corpora - mean) / scale
    variances, axes = np.linalg.eigh((standard * share[:, np.newaxis]).T @ standard + _RIDGE * np.eye(len(mean)))
    directions = axes / np.sqrt(variances)
    placed = standard @ directions
    kept = _sample(sets, np.random.default_rng(seed))
    distances = _distances(placed, placed[kept])
    distances[_together(sets, namespaces)[:, kept]] = np.inf
    away = _nearest(distances)
    compared = np.isfinite(away)
    near, far = _quantiles(away[compared], share[compared])
    return FittedCorpusGuard(mean, scale, directions, placed[kept], near, far)


def _sample(sets: Sequence[str], rng: np.random.Generator) -> NDArray[np.intp]:
    names = np.array(sets)
    kept = [rng.permutation(np.flatnonzero(names == name))[:_MOST_PER_SET] for name in dict.fromkeys(sets)]
    return np.sort(np.concatenate(kept))


def _together(sets: Sequence[str], namespaces: Sequence[str]) -> NDArray[np.bool_]:
    """Mask of the pairs of queries from the same user or conversation; queries of a single namespace are alone."""
    spaces = Counter(name for name, _ in set(zip(sets, namespaces, strict=True)))
    groups = [
        f"{name}/{namespace}" if spaces[name] > 2 else str(row)
        for row, (name, namespace) in enumerate(zip(sets, namespaces, strict=True))
    ]
    _, number = np.unique(groups, return_inverse=True)
    return np.asarray(number[:, np.newaxis] == number[np.newaxis, :])


def _distances(ones: Floats, others: Floats) -> Floats:
    squares = (ones**2).sum(axis=1)[:, np.newaxis] + (others**2).sum(axis=1) - 2 * ones @ others.T
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


def _nearest(distances: Floats) -> Floats:
    return np.asarray(np.sort(distances, axis=1)[:, :NEIGHBOURS].mean(axis=1))


def _quantiles(values: Floats, share: Floats) -> tuple[float, float]:
    order = np.argsort(values)
    reached = np.cumsum(share[order]) / share.sum()
    near, far = (float(values[order][np.searchsorted(reached, wanted)]) for wanted in (_NEAR, _FAR))
    return near, max(far, near + 1e-3)
