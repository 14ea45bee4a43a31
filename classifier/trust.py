"""From the legs' evidence to their weights, by a small quadratic function."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import native
from classifier.evidence import EVIDENCE_VERSION, FEATURES, Evidence
from classifier.inference import ModelMismatch
from classifier.onnx_file import read_model

LEGS = ("vector", "bm25", "graph")
"""Legs in the order of the model's output."""

_OPERATORS = ("Sub", "Div", "Clip", "Gemm", "Unsqueeze", "Unsqueeze", "Mul", "Reshape", "Gemm", "Softmax", "MatMul")
"""What a model computes, as `classifier.training.trust` writes it."""

_weights = native.function(
    "trivet_trust",
    ctypes.c_int64, native.Array, native.Array, native.Array, ctypes.c_float, ctypes.c_float, ctypes.c_int64,
    native.Array, native.Array, native.Array, native.Array, native.Array,
    result=ctypes.c_int32,
)  # fmt: skip


class LegTrust:
    """Weighs the legs of one query by what they returned; safe to share between threads."""

    def __init__(self, model_path: Path) -> None:
        """Load the model (a millisecond or two).

        Args:
            model_path: ONNX file as `classifier.training.trust` writes it, with the metadata `features` and
                `evidence_version`.

        Raises:
            FileNotFoundError: there is no such file.
            ModelMismatch: the model was made for other features, or is another one.
        """
        if not model_path.is_file():
            raise FileNotFoundError(f"no model of the legs' weights at {model_path}")
        model = read_model(model_path)
        model.check_metadata({"evidence_version": str(EVIDENCE_VERSION), "features": json.dumps(FEATURES)}, model_path)
        if model.operators != _OPERATORS:
            raise ModelMismatch(f"{model_path} does not compute weights")
        n, grid = len(FEATURES), model.floats("grid", -1, len(LEGS))
        choices = len(grid)
        standard = [model.floats("mean", n), model.floats("scale", n)]
        promises = [
            model.floats("intercept", choices),
            model.floats("linear", n, choices),
            _once(model.floats("quadratic", n * n, choices).reshape(n, n, choices)),
            grid,
        ]
        self._arrays = standard + promises
        self._arguments = (
            *map(native.at, standard), model.floats("low").item(), model.floats("high").item(), choices,
            *map(native.at, promises),
        )  # fmt: skip

    def weights(self, evidence: Evidence) -> dict[str, float]:
        """The weight of each leg, all >= 0 and summing to 1."""
        weights = np.empty(len(LEGS), np.float32)
        if _weights(len(FEATURES), native.at(evidence.row), *self._arguments, native.at(weights)):
            raise MemoryError
        return dict(zip(LEGS, weights.tolist(), strict=True))


def _once(quadratic: NDArray[np.float32]) -> NDArray[np.float32]:
    """Coefficients of each pair of features once, the first of a pair never behind the second."""
    one, other = np.triu_indices(len(quadratic))
    both = quadratic[one, other] + np.where((one != other)[:, np.newaxis], quadratic[other, one], np.float32(0))
    return np.ascontiguousarray(both, np.float32)
