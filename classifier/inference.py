"""Predicts a query's intent with ONNX Runtime: synchronous, single-threaded, a fraction of a millisecond."""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import msgspec
import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from classifier.features import FEATURE_DIM, FEATURES_VERSION, QueryFeatures, check_embedding, query_features
from classifier.intents import INTENTS, Intent

_CACHE_SIZE = 512
"""Size of the cache of predictions, at two kilobytes each."""


class ModelMismatch(ValueError):
    """A model file does not match this version of the features."""


class IntentPrediction(msgspec.Struct, frozen=True, kw_only=True):
    """The classifier's prediction for a query."""

    probabilities: dict[Intent, float]
    """By intent, in the order of `INTENTS`, summing to 1; calibrated by temperature scaling."""

    in_domain: float = 1.0
    """Similarity to the training queries, in [0, 1]: 1 like them, 0 unlike anything seen."""

    @property
    def label(self) -> Intent:
        """The most probable intent; of ties, the first in `INTENTS`."""
        return max(self.probabilities, key=self.probabilities.__getitem__)


class IntentClassifier:
    """Predicts the intent of queries; thread-safe."""

    def __init__(self, model_path: Path) -> None:
        """Load the model (a few milliseconds).

        It is an ONNX file with the fields of `QueryFeatures` as inputs, each with a leading dimension of 1; the outputs
        `probabilities`, float32 of shape (1, 4), and `familiarity`, float32 of shape (1, 1); and the metadata `intents`
        and `features_version`. Raises as `open_model` does, ModelMismatch also for other inputs.
        """
        expected = {"features_version": str(FEATURES_VERSION), "intents": json.dumps(INTENTS)}
        self._session = open_model(model_path, expected)
        widths = {node.name: node.shape[-1] for node in self._session.get_inputs()}
        if widths.get("row") != FEATURE_DIM or set(widths) != set(QueryFeatures._fields):
            raise ModelMismatch(f"{model_path}: takes {widths}, this version makes a row of {FEATURE_DIM}")
        self._cached_predict = lru_cache(maxsize=_CACHE_SIZE)(self._predict)

    def predict(self, text: str, embedding: NDArray[np.float32] | None = None) -> IntentPrediction:
        """Predict the intent of a query of any length; an empty one gets a prediction of low confidence.

        `embedding` is its vector from the bundled embedder, unit length, shape (384,); if None, only the words are
        used. Raises ValueError if it has another shape or is not finite.
        """
        if embedding is not None:
            embedding = np.ascontiguousarray(embedding, np.float32)
            check_embedding(embedding)
        return self._cached_predict(text, None if embedding is None else embedding.tobytes())

    def _predict(self, text: str, embedding: bytes | None) -> IntentPrediction:
        features = query_features(text, None if embedding is None else np.frombuffer(embedding, np.float32))
        inputs = {name: part[np.newaxis, :] for name, part in features._asdict().items()}
        (row,), ((in_domain,),) = self._session.run(["probabilities", "familiarity"], inputs)
        raw = row.tolist()
        total = sum(raw)
        probabilities = {intent: p / total for intent, p in zip(INTENTS, raw, strict=True)}
        return IntentPrediction(probabilities=probabilities, in_domain=min(1.0, max(0.0, float(in_domain))))


def open_session(model: Path | bytes) -> ort.InferenceSession:
    """Open a model, from a file or serialised: runs use the calling thread, and idle sessions no CPU."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    source = model if isinstance(model, bytes) else str(model)
    return ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def open_model(path: Path, expected: Mapping[str, str]) -> ort.InferenceSession:
    """Open a model; raises FileNotFoundError if there is none, ModelMismatch if its metadata are not as expected."""
    if not path.is_file():
        raise FileNotFoundError(f"no model at {path}")
    session = open_session(path)
    metadata: dict[str, str] = session.get_modelmeta().custom_metadata_map
    for key, value in expected.items():
        if metadata.get(key) != value:
            raise ModelMismatch(f"{path}: {key} is {metadata.get(key)}, this version needs {value}")
    return session
