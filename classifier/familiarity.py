"""How like the memories of a query are to those that a rescorer was trained on, as it is served."""

from __future__ import annotations

import ctypes

import numpy as np
from numpy.typing import NDArray

import native
from classifier.inference import ModelMismatch
from classifier.onnx_file import ModelFile

_distance = native.function(
    "trivet_distance",
    ctypes.c_int64, native.Array, native.Array, native.Array, native.Array, ctypes.c_int64, native.Array,
    ctypes.c_int64,
    result=ctypes.c_float,
)  # fmt: skip


class Familiarity:
    """familiarity = clip((far - d) / span, 0, 1), d the mean distance to the nearest of the training queries.

    `classifier.training.kinds` learns it. Safe to share between threads.
    """

    def __init__(self, model: ModelFile, features: int) -> None:
        """Take the numbers of a model of kinds of memories that have so many features.

        Raises:
            ModelMismatch: it has none, or others.
        """
        known = model.floats("known", -1, features)
        neighbours = model.constants.get("neighbours")
        if neighbours is None or neighbours.size != 1 or not 1 <= (count := int(neighbours.item())) <= len(known):
            raise ModelMismatch("it does not say how many neighbours count, or has fewer")
        self._features = features
        self._place = [
            model.floats("mean", features),
            model.floats("scale", features),
            model.floats("directions", features, features),
        ]
        self._known = np.ascontiguousarray(known.T)
        self._arguments = (
            *map(native.at, self._place), len(known), native.at(self._known), count,
        )  # fmt: skip
        self._far, self._span = model.floats("far", 1).item(), model.floats("span", 1).item()

    def of(self, kind: NDArray[np.float32]) -> float:
        """The familiarity of a kind of memories, contiguous, shape (features,)."""
        distance: float = _distance(self._features, native.at(kind), *self._arguments)
        if distance < 0:
            raise MemoryError
        return min(1.0, max(0.0, (self._far - distance) / self._span))
