"""Inference: how similar the memories of a query are to those the rescorer was trained on."""

from __future__ import annotations

import ctypes

import numpy as np
from numpy.typing import NDArray

import native
from classifier.inference import ModelMismatch
from classifier.model_arrays import ModelArrays

_distance = native.function(
    "trivet_distance",
    ctypes.c_int64, native.Array, native.Array, native.Array, native.Array, ctypes.c_int64, native.Array,
    ctypes.c_int64,
    result=ctypes.c_float,
)  # fmt: skip


class CorpusGuard:
    """in_domain = clip((far - d) / span, 0, 1), with d the mean distance to the nearest training queries.

    Fitted by `classifier.training.corpus_guard`. Thread-safe.
    """

    def __init__(self, model: ModelArrays, features: int) -> None:
        """Read the arrays of a model with this number of corpus features.

        Raises:
            ModelMismatch: arrays are missing or have other shapes.
        """
        known = model.floats("known", -1, features)
        count = int(model.array("neighbours", np.int64, 1).item())
        if not 1 <= count <= len(known):
            raise ModelMismatch(f"it has {len(known)} neighbours, of which {count} should count")
        self._features = features
        self._place = [
            model.floats("mean", features),
            model.floats("scale", features),
            model.floats("directions", features, features),
        ]
        self._known = np.ascontiguousarray(known.T)
        self._arguments = (
            *map(native.address, self._place), len(known), native.address(self._known), count,
        )  # fmt: skip
        self._far, self._span = model.floats("far", 1).item(), model.floats("span", 1).item()

    def in_domain(self, corpus: NDArray[np.float32]) -> float:
        """In [0, 1] for the corpus features of a query: contiguous, shape (features,)."""
        distance: float = _distance(self._features, native.address(corpus), *self._arguments)
        if distance < 0:
            raise MemoryError
        return min(1.0, max(0.0, (self._far - distance) / self._span))
