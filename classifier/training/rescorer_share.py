"""Training: how far to follow the rescorer on a kind of memories, from its effect on sets that it did not see.

Each set is rescored by trees grown on the others and fused by leg weights learned from the others. A ridge regression
predicts nDCG@10 at every share of `LEVELS` from the corpus features; the share is the mean of the levels, weighted by
the softmax of their predicted quality. Features are clipped, so that memories of an unusual kind move the share no
further than the edge of the training data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import Ridge

from classifier.candidates import BLEND_K
from classifier.training.metrics import CUTOFF, ndcg, softmax

Floats = NDArray[np.float64]

LEVELS: Floats = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])

ALPHA = 4.0
"""Ridge penalty; features are standardised, and the weights of all queries sum to the number of sets."""
TEMPERATURE = 0.01
"""The difference in predicted nDCG by which a level has e times the weight."""
REACH = 3.0
"""Standard deviations at which features are clipped."""


@dataclass(frozen=True, slots=True)
class FittedShare:
    """share = softmax((clip((corpus - mean) / scale) @ linear + intercept) / TEMPERATURE) @ LEVELS."""

    mean: Floats
    scale: Floats
    linear: Floats
    intercept: Floats

    def shares(self, corpora: Floats) -> Floats:
        """The rescorer's share in the order, shape (n,), for corpora of shape (n, features)."""
        standard = np.clip((corpora - self.mean) / self.scale, -REACH, REACH)
        return softmax(standard @ self.linear + self.intercept, TEMPERATURE) @ LEVELS


def fit_share(corpora: Floats, quality: Floats, sets: Sequence[str]) -> FittedShare:
    """Fit on the corpora of queries and their quality at each level, shape (n, levels); all sets have equal weight."""
    share = np.array([1 / sets.count(name) for name in sets])
    mean = np.average(corpora, axis=0, weights=share)
    scale = np.sqrt(np.average((corpora - mean) ** 2, axis=0, weights=share)) + 1e-4
    standard = np.clip((corpora - mean) / scale, -REACH, REACH)
    # Only differences between levels matter, not the difficulty of the query.
    ridge = Ridge(alpha=ALPHA).fit(standard, quality - quality.mean(axis=1, keepdims=True), sample_weight=share)
    return FittedShare(mean, scale, ridge.coef_.T, ridge.intercept_)


def blend_qualities(fused: Sequence[str], rescored: Sequence[str], relevant: frozenset[str]) -> Floats:
    """nDCG@10 at each of `LEVELS`, for ids in the order of the fusion and all of them in that of the rescorer."""
    place = {memory_id: rank for rank, memory_id in enumerate(rescored, 1)}
    in_fusion = BLEND_K + 1 + np.arange(len(fused))
    in_rescorer = BLEND_K + np.array([place[memory_id] for memory_id in fused], np.float64)
    levels = LEVELS[:, np.newaxis]
    blended = (1 - levels) / in_fusion + levels / in_rescorer  # rounded as in serving, so that ties break alike
    best = np.argsort(-blended, axis=1, kind="stable")[:, :CUTOFF]
    return ndcg(np.array([memory_id in relevant for memory_id in fused])[best], len(relevant))
