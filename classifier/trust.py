"""From the legs' evidence to their weights, by a small ONNX model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnxruntime as ort

from classifier.evidence import EVIDENCE_VERSION, FEATURES, Evidence
from classifier.inference import ModelMismatch, open_session

LEGS = ("vector", "bm25", "graph")
"""Legs in the order of the model's output."""


class LegTrust:
    """Weighs the legs of one query by what they returned; safe to share between threads."""

    def __init__(self, model_path: Path) -> None:
        """Load the model (a millisecond or two).

        Args:
            model_path: ONNX file with the input `evidence`, float32 of shape (n, features), the output
                `weights`, float32 of shape (n, 3), and the metadata `features` and `evidence_version`.

        Raises:
            FileNotFoundError: there is no such file.
            ModelMismatch: the model was made for other features.
        """
        if not model_path.is_file():
            raise FileNotFoundError(f"no model of the legs' weights at {model_path}")
        self._session: ort.InferenceSession = open_session(model_path)
        metadata: dict[str, str] = self._session.get_modelmeta().custom_metadata_map
        expected = {"evidence_version": str(EVIDENCE_VERSION), "features": json.dumps(FEATURES)}
        for key, value in expected.items():
            if metadata.get(key) != value:
                raise ModelMismatch(f"{model_path}: {key} is {metadata.get(key)}, this version needs {value}")

    def weights(self, evidence: Evidence) -> dict[str, float]:
        """The weight of each leg, all >= 0 and summing to 1."""
        (rows,) = self._session.run(["weights"], {"evidence": evidence.row[np.newaxis, :]})
        return dict(zip(LEGS, rows[0].tolist(), strict=True))
