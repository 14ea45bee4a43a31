"""Predicts leg weights from the legs' results, by a small quadratic function."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path

import numpy as np

import native
from classifier.model_arrays import read_arrays
from classifier.query_performance import EVIDENCE_VERSION, FEATURES, QueryPerformanceFeatures

LEGS = ("vector", "bm25", "graph")
"""The order of the legs in the model's output."""

_weights = native.function(
    "trivet_trust",
    ctypes.c_int64, native.Array, native.Array, native.Array, ctypes.c_float, ctypes.c_float, ctypes.c_int64,
    native.Array, native.Array, native.Array, native.Array, native.Array,
    result=ctypes.c_int32,
)  # fmt: skip


class LegWeightModel:
    """Predicts the leg weights of a query from what the legs returned; thread-safe."""

    def __init__(self, model_path: Path) -> None:
        """Load the model (a millisecond or two).

        Args:
            model_path: ONNX file written by `classifier.training.leg_weights`, with the metadata `features` and
                `evidence_version`.

        Raises:
            FileNotFoundError: there is no such file.
            ModelMismatch: the model is for other features, or of another kind.
        """
        if not model_path.is_file():
            raise FileNotFoundError(f"no model of the legs' weights at {model_path}")
        model = read_arrays(model_path, {"evidence_version": str(EVIDENCE_VERSION), "features": json.dumps(FEATURES)})
        n, grid = len(FEATURES), model.floats("grid", -1, len(LEGS))
        choices = len(grid)
        standard = [model.floats("mean", n), model.floats("scale", n)]
        promises = [
            model.floats("intercept", choices),
            model.floats("linear", n, choices),
            model.floats("quadratic", n * (n + 1) // 2, choices),
            grid,
        ]
        self._arrays = standard + promises
        self._arguments = (
            *map(native.address, standard), model.floats("low").item(), model.floats("high").item(), choices,
            *map(native.address, promises),
        )  # fmt: skip

    def weights(self, evidence: QueryPerformanceFeatures) -> dict[str, float]:
        """The weight of each leg: all >= 0, summing to 1."""
        weights = np.empty(len(LEGS), np.float32)
        if _weights(len(FEATURES), native.address(evidence.row), *self._arguments, native.address(weights)):
            raise MemoryError
        return dict(zip(LEGS, weights.tolist(), strict=True))
