"""Ordering the fused candidates of a query anew by what is known of each, with a small ONNX model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime as ort

from classifier.candidates import (
    CANDIDATE_FEATURES,
    CANDIDATES_VERSION,
    KIND_FEATURES,
    Particulars,
    describe,
)
from classifier.evidence import Evidence
from classifier.inference import ModelMismatch, open_session


@dataclass(frozen=True, kw_only=True, slots=True)
class Rescored:
    """What the rescorer makes of the candidates of one query.

    Attributes:
        scores: of the foremost candidates, by id; only their order means something, and only within the query.
        familiarity: in [0, 1], how like the memories are to those it was trained on; 0: unlike all of them.
        confidence: in [0, 1], how far its order is to be followed: `familiarity` above a floor.
    """

    scores: dict[str, float]
    familiarity: float
    confidence: float


class Rescorer:
    """Scores candidates; safe to share between threads."""

    def __init__(self, model_path: Path) -> None:
        """Load the model (some milliseconds).

        Args:
            model_path: ONNX file with the inputs `candidates`, float32 of shape (n, candidate features), and
                `kind`, float32 of shape (1, kind features), the outputs `scores`, float32 of shape (n, 1), and
                `familiarity`, float32 of shape (1,), and the metadata `candidate_features`, `kind_features`,
                `candidates_version` and `floor`.

        Raises:
            FileNotFoundError: there is no such file.
            ModelMismatch: the model was made for other features.
        """
        if not model_path.is_file():
            raise FileNotFoundError(f"no rescorer at {model_path}")
        self._session: ort.InferenceSession = open_session(model_path)
        metadata: dict[str, str] = self._session.get_modelmeta().custom_metadata_map
        expected = {
            "candidates_version": str(CANDIDATES_VERSION),
            "candidate_features": json.dumps(CANDIDATE_FEATURES),
            "kind_features": json.dumps(KIND_FEATURES),
        }
        for key, value in expected.items():
            if metadata.get(key) != value:
                raise ModelMismatch(f"{model_path}: {key} is {metadata.get(key)}, this version needs {value}")
        self._floor = float(metadata["floor"])

    def score(self, evidence: Evidence, known: Particulars) -> Rescored:
        """Score the candidates of one query; there must be at least one."""
        described = describe(evidence, known)
        foremost = described.foremost
        inputs = {"candidates": described.rows[foremost], "kind": described.kind[np.newaxis, :]}
        scores, familiarity = self._session.run(["scores", "familiarity"], inputs)
        familiar = float(familiarity[0])
        return Rescored(
            scores={known.ids[at]: score for at, score in zip(foremost.tolist(), scores[:, 0].tolist(), strict=True)},
            familiarity=familiar,
            confidence=self._floor + (1 - self._floor) * familiar,
        )
