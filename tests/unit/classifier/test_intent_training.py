"""How the intent model is learned."""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from zlib import crc32

import numpy as np
import pytest
from numpy.typing import NDArray

from classifier.features import EMBEDDING_DIM
from classifier.inference import IntentClassifier
from classifier.intents import Intent
from classifier.training import custom
from classifier.training.data import LabelledQuery, read_training
from classifier.training.export import check_parity, export
from classifier.training.fit import HeldOut, TrainingSet, learn, prepare
from classifier.training.metrics import reliability
from classifier.training.model import USUAL, IntentModel, Scale, encode
from classifier.training.out_of_domain import out_of_domain_texts
from retrieval.installation import models_dir


def embed(texts: Sequence[str]) -> NDArray[np.float32]:
    """A stand-in for the embedder: a unit vector per text, determined by its characters."""
    rows = np.stack([np.random.default_rng(crc32(text.encode())).normal(size=EMBEDDING_DIM) for text in texts])
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def few(number: int) -> list[LabelledQuery]:
    return Random(4).sample(read_training(), number)


@pytest.fixture(scope="module")
def learned() -> tuple[TrainingSet, IntentModel, HeldOut]:
    data = prepare(few(160), embed, 3)
    return data, *learn(data, embed, 3)


def test_the_file_says_what_was_learned(learned: tuple[TrainingSet, IntentModel, HeldOut], tmp_path: Path) -> None:
    """Seen and unseen texts, with and without embedding, one that has no words at all among them."""
    data, model, _ = learned
    export(model, tmp_path / "intent.onnx")
    texts = [*data.texts[:30], *out_of_domain_texts(20, Random(1)), "", "?"]
    assert check_parity(model, tmp_path / "intent.onnx", texts, embed(texts)) < 1e-5


def test_a_file_that_says_something_else_is_found_out(
    learned: tuple[TrainingSet, IntentModel, HeldOut], tmp_path: Path
) -> None:
    data, model, _ = learned
    other, _ = learn(prepare(few(120), embed, 3), embed, 3)
    export(other, tmp_path / "intent.onnx")
    with pytest.raises(ValueError, match="differs"):
        check_parity(model, tmp_path / "intent.onnx", data.texts[:10], data.embeddings[:10])


def test_every_original_is_held_out_once(learned: tuple[TrainingSet, IntentModel, HeldOut]) -> None:
    data, _, held = learned
    assert sorted(held.rows.tolist()) == np.flatnonzero(data.originals).tolist()
    assert len(held.averaged) == len(held.bare) == len(held.evidence) == len(held.rows)


def test_what_it_learned_from_is_familiar(learned: tuple[TrainingSet, IntentModel, HeldOut], tmp_path: Path) -> None:
    data, model, _ = learned
    export(model, tmp_path / "intent.onnx")
    classifier = IntentClassifier(tmp_path / "intent.onnx")
    seen = [
        classifier.predict(text, vector).in_domain for text, vector in zip(data.texts, data.embeddings, strict=True)
    ]
    unseen = [classifier.predict(text).in_domain for text in out_of_domain_texts(40, Random(8))]
    assert np.mean([value >= USUAL for value in seen]) > 0.9
    assert np.mean(unseen) < 0.5


def test_copies_have_another_text_and_the_label_of_their_original(
    learned: tuple[TrainingSet, IntentModel, HeldOut],
) -> None:
    data = learned[0]
    copies = np.flatnonzero(~data.originals)
    assert len(copies)
    assert data.labels[copies].tolist() == data.labels[data.original[copies]].tolist()
    assert all(data.texts[row] != data.texts[data.original[row]] for row in copies)


def test_a_heavier_query_decides() -> None:
    """The same text with two labels: the one that counts more prevails."""
    labelled = few(80)
    intents = (Intent.PREFERENCE, Intent.OPEN_ENDED)
    torn = [LabelledQuery(text="zyx zyx zyx", intent=intent, source="written") for intent in intents]
    weights = [1.0] * len(labelled) + [1.0, 12.0]
    model, _ = learn(prepare([*labelled, *torn], embed, 3, weights=weights), embed, 3)
    answer = model.probabilities(encode(["zyx zyx zyx"], embed(["zyx zyx zyx"])), embedded=True)
    assert answer[0].argmax() == 3


def test_familiarity_rises_from_strange_to_usual_to_best() -> None:
    scale = Scale(weights=np.array([1.0]), intercept=0.0, strange=-2.0, usual=0.0, best=4.0)
    found = scale.in_domain(np.array([[-9.0], [-2.0], [-1.0], [0.0], [2.0], [4.0], [9.0]]))
    assert found == pytest.approx([0.0, 0.0, 0.4, 0.8, 0.9, 1.0, 1.0])


def test_reliability_by_hand() -> None:
    rows = np.array([[0.75, 0.25], [0.7, 0.3], [0.55, 0.45]])
    low, high = reliability(rows, np.array([0, 1, 0]), bins=5)
    assert (low.count, low.accuracy) == (1, 1.0)
    assert (high.count, high.accuracy) == (2, 0.5)
    assert (low.confidence, high.confidence) == pytest.approx((0.55, 0.725))


def test_strange_texts_are_of_many_kinds_and_the_same_for_a_seed() -> None:
    made = out_of_domain_texts(90, Random(2))
    assert made == out_of_domain_texts(90, Random(2))
    assert len(set(made)) > 80


def test_given_queries_count_more_beside_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Together half the weight of ours; a given text replaces the same text of ours."""
    ours = few(121)
    monkeypatch.setattr(custom, "read_training", lambda: ours)
    shipped = IntentClassifier(models_dir() / "intent.onnx")
    given = [LabelledQuery(text=query.text + "!", intent=query.intent, source="given") for query in few(29)]
    trained = custom.train_custom([*given, ours[0]], tmp_path / "out", embed, shipped=shipped, base=True, seed=3)
    assert (trained.queries, trained.base, trained.weight) == (30, 120, 2.0)
    assert (trained.with_embedding.n, trained.shipped.n) == (30, 30)
    assert IntentClassifier(tmp_path / "out" / "intent.onnx").predict("when did it open").probabilities
