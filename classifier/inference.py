"""Reading a query's intent with ONNX Runtime: synchronous, one thread, a fraction of a millisecond."""

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from classifier.features import (
    FEATURE_DIM,
    FEATURES_VERSION,
    QueryFeatures,
    check_embedding,
    query_features,
    read_ahead,
)
from classifier.intents import INTENTS, Intent

_MOST_KEPT = 512
"""Predictions that are kept: two kilobytes each, and the same for the same query."""


class ModelMismatch(ValueError):
    """The ONNX file is not an intent model for this version of the features."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IntentPrediction:
    """What the classifier makes of one query."""

    label: Intent
    """The likeliest intent; of equals, the first in `INTENTS`."""

    probabilities: dict[Intent, float]
    """One per intent, in the order of `INTENTS`, summing to 1; calibrated by temperature."""

    confidence: float
    """The probability of `label`, in [0.25, 1]."""

    familiarity: float = 1.0
    """How like the training queries it is, in [0, 1]: 1 as they are, 0 far from anything seen."""


class IntentClassifier:
    """Predicts the intent of queries; safe to share between threads."""

    def __init__(self, model_path: Path) -> None:
        """Load the model (some milliseconds).

        Args:
            model_path: ONNX file that takes the parts of `QueryFeatures` by their names, each with a leading
                dimension of 1, and gives `probabilities`, float32 of shape (1, 4), and `familiarity`, float32 of
                shape (1, 1); with the metadata `intents` and `features_version`.

        Raises:
            FileNotFoundError: there is no such file.
            ModelMismatch: the model was made for other features or intents.
        """
        if not model_path.is_file():
            raise FileNotFoundError(f"no intent model at {model_path}")
        self._session = open_session(model_path)
        _check(self._session, model_path)
        self._kept = lru_cache(maxsize=_MOST_KEPT)(self._predict)

    def predict(self, text: str, embedding: NDArray[np.float32] | None = None) -> IntentPrediction:
        """Predict the intent of one query.

        Args:
            text: the query, of any length; an empty one is answered too, without confidence.
            embedding: its vector from the bundled embedder, unit length, shape (384,); None when
                there is none, and the words alone decide.

        Returns:
            The intent with its probabilities, and how familiar the query is.

        Raises:
            ValueError: the embedding has another shape or is not finite.
        """
        if embedding is not None:
            embedding = np.ascontiguousarray(embedding, np.float32)
            check_embedding(embedding)
        return self._kept(text, None if embedding is None else embedding.tobytes())

    def read_ahead(self, text: str) -> None:
        """Do what `predict` will need for a text and what does not depend on its embedding."""
        read_ahead(text)

    def _predict(self, text: str, embedding: bytes | None) -> IntentPrediction:
        features = query_features(text, None if embedding is None else np.frombuffer(embedding, np.float32))
        (row,), ((familiarity,),) = self._session.run(["probabilities", "familiarity"], feed(features))
        raw = row.tolist()
        total = sum(raw)
        probabilities = {intent: p / total for intent, p in zip(INTENTS, raw, strict=True)}
        label = max(INTENTS, key=probabilities.__getitem__)
        return IntentPrediction(
            label=label,
            probabilities=probabilities,
            confidence=probabilities[label],
            familiarity=min(1.0, max(0.0, float(familiarity))),
        )


def feed(features: QueryFeatures) -> dict[str, NDArray[np.float32] | NDArray[np.int64]]:
    """The model's inputs for one query."""
    return {name: part[np.newaxis, :] for name, part in features._asdict().items()}


def open_session(model_path: Path) -> ort.InferenceSession:
    """Open a small model on one thread that sleeps between runs."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    return ort.InferenceSession(str(model_path), options, providers=["CPUExecutionProvider"])


def _check(session: ort.InferenceSession, model_path: Path) -> None:
    metadata: dict[str, str] = session.get_modelmeta().custom_metadata_map
    expected = {"features_version": str(FEATURES_VERSION), "intents": json.dumps(INTENTS)}
    for key, value in expected.items():
        if metadata.get(key) != value:
            raise ModelMismatch(f"{model_path}: {key} is {metadata.get(key)}, this version needs {value}")
    widths = {node.name: node.shape[-1] for node in session.get_inputs()}
    if widths.get("row") != FEATURE_DIM or set(widths) != set(QueryFeatures._fields):
        raise ModelMismatch(f"{model_path}: takes {widths}, this version makes a row of {FEATURE_DIM}")
