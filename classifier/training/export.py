"""scikit-learn to ONNX, with the proof that both say the same."""

import json
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from skl2onnx import convert_sklearn
from skl2onnx.common.data_types import FloatTensorType
from sklearn.linear_model import LogisticRegression

from classifier.features import EMBEDDING_DIM, FEATURE_DIM, FEATURES_VERSION, feature_row
from classifier.inference import IntentClassifier
from classifier.intents import INTENTS

PARITY_TOLERANCE = 1e-5
GOLDEN_TEXTS = (
    "When did Caroline move into the flat above the bakery?",
    "Are Akira Kurosawa and Yasujiro Ozu both Japanese film directors?",
    "what kind of present would Maya like",
    "Summarise what happened with my kitchen renovation so far.",
    "",
)
_OPSET = 17


def golden_embedding() -> NDArray[np.float32]:
    """Make the unit vector, shape (384,), that the golden answers with an embedding were got by."""
    wave = np.sin(np.arange(EMBEDDING_DIM, dtype=np.float64))
    unit: NDArray[np.float32] = (wave / np.linalg.norm(wave)).astype(np.float32)
    return unit


def export(model: LogisticRegression, path: Path) -> None:
    """Write the model with its metadata: intents, features_version and golden answers.

    Args:
        model: over rows of FEATURE_DIM.
        path: where the ONNX file goes.

    Raises:
        ValueError: ONNX Runtime's probabilities differ from scikit-learn's by more than 1e-5.
    """
    converted = convert_sklearn(
        model,
        name="trivet_intent",
        initial_types=[("features", FloatTensorType([None, FEATURE_DIM]))],
        options={id(model): {"zipmap": False}},
        target_opset=_OPSET,
    )
    metadata = {
        "intents": json.dumps(INTENTS),
        "features_version": str(FEATURES_VERSION),
        "golden": json.dumps([_golden(model, text) for text in GOLDEN_TEXTS]),
    }
    onnx.helper.set_model_props(converted, metadata)
    path.write_bytes(converted.SerializeToString(deterministic=True))


def check_parity(model: LogisticRegression, path: Path, texts: list[str], embeddings: NDArray[np.float32]) -> float:
    """Compare scikit-learn with the exported file, through the very code that serves.

    Args:
        model: what was exported.
        path: the ONNX file.
        texts: n queries, each tried with and without its embedding.
        embeddings: shape (n, 384).

    Returns:
        The largest difference of a probability.

    Raises:
        ValueError: it is above 1e-5.
    """
    classifier = IntentClassifier(path)
    worst = 0.0
    for text, vector in zip(texts, embeddings, strict=True):
        for embedding in (vector, None):
            served = list(classifier.predict(text, embedding).probabilities.values())
            expected = model.predict_proba(feature_row(text, embedding)[np.newaxis, :])[0]
            worst = max(worst, float(np.abs(expected - served).max()))
    if worst > PARITY_TOLERANCE:
        raise ValueError(f"{path} differs from scikit-learn by {worst}")
    return worst


def _golden(model: LogisticRegression, text: str) -> dict[str, object]:
    rows = np.stack([feature_row(text, None), feature_row(text, golden_embedding())])
    without, with_embedding = model.predict_proba(rows)
    return {"text": text, "without": without.tolist(), "with": with_embedding.tolist()}
