"""How like the memories of a query are to those that the rescorer was trained on, by the kinds they are of.

The distance to the nearest training queries, in numbers that are scaled and made independent of each other. What is
near is measured on the training data: how far a query of one user or conversation is from those of the others.
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
"""Added to the variance of each independent direction, of which the greatest is some units."""

_NEAR, _FAR = 0.8, 0.95
"""Shares of the training queries that are nearer than what counts as wholly familiar, and as not at all."""

_MOST_PER_SET = 300


@dataclass(frozen=True, slots=True)
class Kinds:
    """familiarity = clip((far - d) / (far - near), 0, 1), d the mean distance to the nearest of `known`.

    Attributes:
        mean, scale: of each number, shape (features,).
        directions: shape (features, features); a query is at (kind - mean) / scale @ directions.
        known: training queries there, shape (queries, features).
        near, far: distances.
    """

    mean: Floats
    scale: Floats
    directions: Floats
    known: Floats
    near: float
    far: float

    def familiarity(self, kinds: Floats) -> Floats:
        """Of queries, shape (n,), for kinds of shape (n, features)."""
        placed = (kinds - self.mean) / self.scale @ self.directions
        away = _nearest(_distances(placed, self.known))
        return np.asarray(np.clip((self.far - away) / (self.far - self.near), 0.0, 1.0))


def fit_kinds(kinds: Floats, sets: Sequence[str], namespaces: Sequence[str], *, seed: int) -> Kinds:
    """Learn what is familiar; every set counts alike.

    Args:
        kinds: shape (n, features).
        sets: of each query.
        namespaces: of each query; a query is compared with those of other namespaces where its set has several.
        seed: chooses the queries of large sets that are kept.
    """
    counts = Counter(sets)
    share = np.array([1 / counts[name] for name in sets]) / len(counts)
    mean = share @ kinds
    scale = np.sqrt(share @ (kinds - mean) ** 2) + 1e-4
    standard = (kinds - mean) / scale
    variances, axes = np.linalg.eigh((standard * share[:, np.newaxis]).T @ standard + _RIDGE * np.eye(len(mean)))
    directions = axes / np.sqrt(variances)
    placed = standard @ directions
    kept = _sample(sets, np.random.default_rng(seed))
    distances = _distances(placed, placed[kept])
    distances[_together(sets, namespaces)[:, kept]] = np.inf
    away = _nearest(distances)
    compared = np.isfinite(away)
    near, far = _quantiles(away[compared], share[compared])
    return Kinds(mean, scale, directions, placed[kept], near, far)


def _sample(sets: Sequence[str], rng: np.random.Generator) -> NDArray[np.intp]:
    of_set: dict[str, list[int]] = {}
    for at, name in enumerate(sets):
        of_set.setdefault(name, []).append(at)
    kept = [rng.permutation(places)[:_MOST_PER_SET] for places in of_set.values()]
    return np.sort(np.concatenate(kept))


def _together(sets: Sequence[str], namespaces: Sequence[str]) -> NDArray[np.bool_]:
    """Which queries are of the same user or conversation; of a set that is one corpus, each is alone."""
    spaces = Counter(name for name, _ in set(zip(sets, namespaces, strict=True)))
    groups = [
        f"{name}/{namespace}" if spaces[name] > 2 else str(at)
        for at, (name, namespace) in enumerate(zip(sets, namespaces, strict=True))
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
