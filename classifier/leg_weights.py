"""Predicts leg weights from the legs' results, by a small quadratic function."""

from __future__ import annotations

import json
from pathlib import Path

from classifier.model_arrays import read_arrays
from classifier.query_performance import EVIDENCE_VERSION, FEATURES, QueryPerformanceFeatures
from classifier.softmax_mean import SoftmaxMean

LEGS = ("vector", "bm25", "graph")
"""The order of the legs in the model's output."""


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
        model = read_arrays(model_path, {"evidence_version": str(EVIDENCE_VERSION), "features": json.dumps(FEATURES)})
        n, grid = len(FEATURES), model.floats("grid", -1, len(LEGS))
        self._mean = SoftmaxMean(
            mean=model.floats("mean", n),
            scale=model.floats("scale", n),
            clip=(model.floats("low").item(), model.floats("high").item()),
            intercept=model.floats("intercept", len(grid)),
            linear=model.floats("linear", n, len(grid)),
            quadratic=model.floats("quadratic", n * (n + 1) // 2, len(grid)),
            grid=grid,
        )

    def weights(self, evidence: QueryPerformanceFeatures) -> dict[str, float]:
        """The weight of each leg: all >= 0, summing to 1."""
        return dict(zip(LEGS, self._mean.of(evidence.row), strict=True))
