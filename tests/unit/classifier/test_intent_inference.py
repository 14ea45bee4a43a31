"""The shipped intent model, as served."""

import json
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifier import inference
from classifier.features import EMBEDDING_DIM
from classifier.inference import IntentClassifier, ModelMismatch
from classifier.intents import INTENTS, Intent
from classifier.training.checksums import file_sha256, record_checksum
from classifier.training.metrics import expected_calibration_error, fit_temperature, softmax

MODELS = Path(__file__).resolve().parents[3] / "models"
CLASSIFIER = IntentClassifier(MODELS / "intent.onnx")


def golden_embedding() -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    wave = np.sin(np.arange(EMBEDDING_DIM, dtype=np.float64))
    return np.asarray(wave / np.linalg.norm(wave), dtype=np.float32)


def test_onnx_says_what_scikit_learn_said() -> None:
    """The file carries scikit-learn's probabilities of a few queries."""
    session = ort.InferenceSession(str(MODELS / "intent.onnx"))
    answers = json.loads(session.get_modelmeta().custom_metadata_map["golden"])
    assert len(answers) >= 5
    for answer in answers:
        without = CLASSIFIER.predict(answer["text"]).probabilities
        with_embedding = CLASSIFIER.predict(answer["text"], golden_embedding()).probabilities
        assert list(without.values()) == pytest.approx(answer["without"], abs=1e-5)
        assert list(with_embedding.values()) == pytest.approx(answer["with"], abs=1e-5)


@given(st.text(max_size=200), st.booleans())
def test_probabilities_are_a_distribution(text: str, embedded: bool) -> None:
    prediction = CLASSIFIER.predict(text, golden_embedding() if embedded else None)
    assert tuple(prediction.probabilities) == INTENTS
    assert sum(prediction.probabilities.values()) == pytest.approx(1.0, abs=1e-9)
    assert all(0 <= p <= 1 for p in prediction.probabilities.values())
    assert prediction.probabilities[prediction.label] == max(prediction.probabilities.values())
    assert 0 <= prediction.in_domain <= 1


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("When did Caroline go to the support group?", Intent.FACT_LOOKUP),
        ("how tall is the matterhorn", Intent.FACT_LOOKUP),
        ("Who is the wife of the director of Jurassic Park?", Intent.RELATIONSHIP),
        ("What do Melanie and Caroline have in common?", Intent.RELATIONSHIP),
        ("can you suggest a place for dinner in Milan?", Intent.PREFERENCE),
        ("What kind of present would Melanie like?", Intent.PREFERENCE),
        ("Summarise how the move went.", Intent.OPEN_ENDED),
        ("why do rivers meander", Intent.OPEN_ENDED),
    ],
)
def test_clear_queries_without_embedding(text: str, intent: Intent) -> None:
    assert CLASSIFIER.predict(text).label is intent


@pytest.mark.parametrize(
    ("strange", "usual"),
    [
        ("xqzv kjhgw plmnb trfdx", "when did anna move"),
        ("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822c", "How does a heat pump work?"),
        ("ᐊᐃᓐᖓᐃ ᖃᓄᐃᑉᐱᑦ ᑎᑭᑉᐸᑦ", "Wann hat Jonas Geburtstag?"),
        ("12 47 93 8841 0.331 77", "any ideas for a present?"),
    ],
)
def test_what_is_like_no_query_is_unfamiliar(strange: str, usual: str) -> None:
    assert CLASSIFIER.predict(strange).in_domain < 0.5 < 0.8 <= CLASSIFIER.predict(usual).in_domain


def test_a_wrong_embedding_is_refused() -> None:
    with pytest.raises(ValueError, match="shape"):
        CLASSIFIER.predict("x", np.zeros(10, dtype=np.float32))


def test_a_model_for_other_features_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "FEATURES_VERSION", -1)
    with pytest.raises(ModelMismatch, match="features_version"):
        IntentClassifier(MODELS / "intent.onnx")


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no model at"):
        IntentClassifier(tmp_path / "intent.onnx")


def test_the_checksum_is_recorded() -> None:
    line = f"{file_sha256(MODELS / 'intent.onnx')}  intent.onnx"
    assert line in (MODELS / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    assert file_sha256(MODELS / "intent.onnx") in (MODELS / "intent.md").read_text(encoding="utf-8")


def test_recording_a_checksum_keeps_other_lines(tmp_path: Path) -> None:
    other = f"{'0' * 64}  embedder.onnx"
    (tmp_path / "SHA256SUMS").write_text(f"{other}\n{'1' * 64}  intent.onnx\n")
    (tmp_path / "intent.onnx").write_bytes(b"model")
    record_checksum(tmp_path / "intent.onnx")
    assert (tmp_path / "SHA256SUMS").read_text().splitlines() == [
        other,
        f"{file_sha256(tmp_path / 'intent.onnx')}  intent.onnx",
    ]


def test_temperature_undoes_overconfidence() -> None:
    """Logits twice too large ask for a temperature of 2, which makes them calibrated."""
    rng = np.random.default_rng(5)
    logits = rng.normal(size=(20_000, 4)) * 1.5
    labels = np.array([rng.choice(4, p=row) for row in softmax(logits)], dtype=np.intp)
    assert fit_temperature(logits * 2, labels) == pytest.approx(2.0, rel=0.05)
    right = logits.argmax(axis=1) == labels
    assert expected_calibration_error(softmax(logits).max(axis=1), right) < 0.02
    assert expected_calibration_error(softmax(logits * 4).max(axis=1), right) > 0.1


def test_calibration_error_by_hand() -> None:
    """Two rows of confidence .75 in one bin, one right: |1 - 1.5| / 2."""
    assert expected_calibration_error(np.array([0.75, 0.75]), np.array([True, False])) == pytest.approx(0.25)


def test_a_prediction_that_is_kept_is_of_the_same_text_and_embedding() -> None:
    """In whatever order they are asked for."""
    kept = IntentClassifier(MODELS / "intent.onnx")
    texts = ["When did Ana leave Rome?", "What would Maya like for dinner?"]
    vectors = [None, *np.eye(EMBEDDING_DIM, dtype=np.float32)[:2]]
    for _ in range(2):
        for text in texts:
            for vector in vectors:
                alone = IntentClassifier(MODELS / "intent.onnx").predict(text, vector)
                assert kept.predict(text, None if vector is None else vector.copy()) == alone
    assert len({max(kept.predict(texts[0], vector).probabilities.values()) for vector in vectors}) == len(vectors)
