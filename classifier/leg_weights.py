"""Predicts leg weights from the legs' results, by a small quadratic function."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from classifier.inference import open_model
from classifier.query_performance import EVIDENCE_VERSION, FEATURES, QueryPerformanceFeatures

LEGS = ("vector", "bm25", "graph")
"""The order of the legs in the model's output."""


class LegWeightModel:
    """Predicts the leg weights of a query from what the legs returned; thread-safe."""

    def __init__(self, model_path: Path) -> None:
        """Load an ONNX file written by `classifier.training.leg_weights` (a millisecond or two).

        Raises FileNotFoundError if there is none, ModelMismatch if it is for other features, or of another kind.
        """
        expected = {"evidence_version": str(EVIDENCE_VERSION), "features": json.dumps(FEATURES)}
        self._session = open_model(model_path, expected)

    def weights(self, evidence: QueryPerformanceFeatures) -> dict[str, float]:
        """The weight of each leg: all >= 0, summing to 1."""
        [[weights]] = self._session.run(["weights"], {"evidence": evidence.row[np.newaxis, :]})
        return dict(zip(LEGS, weights.tolist(), strict=True))
