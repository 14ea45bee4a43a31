"""The rescorer as served: a small one trained here, and the shipped ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from msgspec import structs
from onnx import helper

from classifier.candidates import CANDIDATE_FEATURES, CANDIDATES_VERSION, CORPUS_FEATURES, MOST_RESCORED, describe
from classifier.inference import ModelMismatch, open_session
from classifier.model_arrays import ModelArrays, read_arrays
from classifier.query_performance import LegScores
from classifier.rescorer import Rescorer
from classifier.training.checksums import file_sha256
from classifier.training.examples import Example
from classifier.traits import pack_traits
from tests.rescorable import example, examples, learned, require_training

MODELS = Path(__file__).resolve().parents[3] / "models"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model."""
    require_training()
    from classifier.training.rescorer import export

    path = tmp_path_factory.mktemp("rescorer") / "small.onnx"
    export(learned(), path)
    return path


def test_the_gold_comes_first(model: Path) -> None:
    """Of queries that it was not trained on, mostly; by chance it is first in an eighth."""
    rescorer = Rescorer(model)
    unseen = examples(60, first=1_000)
    first = 0
    for each in unseen:
        scores = rescorer.score(each.evidence, each.known).scores
        assert set(scores) == set(each.known.ids)
        first += max(scores, key=scores.__getitem__) in each.relevant
    assert first / len(unseen) > 0.8


@pytest.mark.parametrize("candidates", [1, 3, MOST_RESCORED, MOST_RESCORED + 20])
@pytest.mark.parametrize("shipped", [True, False])
def test_it_says_what_onnx_runtime_says_of_the_features_of_the_foremost_candidates_and_of_their_kind(
    model: Path, shipped: bool, candidates: int
) -> None:
    path = MODELS / "rescorer.onnx" if shipped else model
    rescorer, session, some = Rescorer(path), open_session(path), example(7, candidates=candidates)
    rescored, described = rescorer.score(some.evidence, some.known), describe(some.evidence, some.known)
    assert described.top_rows.size == min(candidates, MOST_RESCORED)
    inputs = {"candidates": described.rows[described.top_rows], "kind": described.corpus[np.newaxis, :]}
    scores, in_domain, share = session.run(["scores", "familiarity", "share"], inputs)
    assert rescored.scores == {
        some.known.ids[at]: float(score) for at, score in zip(described.top_rows, scores[:, 0], strict=True)
    }
    [relevance] = session.run(["relevance"], inputs | {"candidates": described.rows})
    assert rescored.relevance(some.known.ids) == pytest.approx(relevance[:, 0].tolist(), abs=1e-6)
    assert rescored.relevance([some.known.ids[-1], "unknown"]) == pytest.approx([relevance[-1, 0], 0.0], abs=1e-6)
    assert rescored.in_domain == pytest.approx(float(in_domain[0]), abs=1e-5)
    assert rescored.share == pytest.approx(float(share[0]), abs=1e-5)


def test_the_share_is_a_share_however_strange_the_memories(model: Path) -> None:
    rescorer = Rescorer(model)
    for each in (*examples(30), strange_kind(example(1))):
        rescored = rescorer.score(each.evidence, each.known)
        assert 0 <= rescored.in_domain <= rescored.share <= 1
    assert rescored.in_domain == 0.0


def strange_kind(some: Example) -> Example:
    """The same candidates, as if each had 60,000 words and no speaker."""
    n = len(some.known.ids)
    known = structs.replace(some.known, traits=[pack_traits("a " * 60_000)] * n, speakers=[-1] * n, sessions=[-1] * n)
    return structs.replace(some, known=known)


def test_one_candidate_that_one_leg_found(model: Path) -> None:
    some = example(11, candidates=1)
    evidence = structs.replace(some.evidence, vector=LegScores(), graph=LegScores(), bm25=LegScores(["m000"], [1.0]))
    known = structs.replace(some.known, vectors=None)
    scores = Rescorer(model).score(evidence, known).scores
    assert list(scores) == ["m000"]
    assert np.isfinite(scores["m000"])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("candidates_version", str(CANDIDATES_VERSION + 1)),
        ("candidate_features", json.dumps(CANDIDATE_FEATURES[::-1])),
        ("kind_features", json.dumps(CORPUS_FEATURES[1:])),
        ("kind_features", None),
    ],
)
def test_a_model_for_other_features_is_refused(model: Path, tmp_path: Path, key: str, value: str | None) -> None:
    changed = onnx.load(model)
    metadata = {each.key: each.value for each in changed.metadata_props if each.key != key}
    del changed.metadata_props[:]
    helper.set_model_props(changed, metadata if value is None else metadata | {key: value})
    path = tmp_path / "other.onnx"
    path.write_bytes(changed.SerializeToString())
    with pytest.raises(ModelMismatch, match=rf"other\.onnx: {key} is"):
        Rescorer(path)


def test_another_kind_of_model_is_refused() -> None:
    with pytest.raises(ModelMismatch, match=r"weights\.onnx: candidates_version is None"):
        Rescorer(MODELS / "weights.onnx")


@pytest.mark.parametrize(
    "name",
    ["known", "directions", "far", "neighbours", "share_mean", "linear", "levels", "tree_leaves", "relevance_leaves"],
)
def test_a_model_without_one_of_its_arrays_is_refused(model: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    whole = read_arrays(model, {})
    arrays = {each: array for each, array in whole.arrays.items() if each != name}
    monkeypatch.setattr("classifier.rescorer.read_arrays", lambda *_: ModelArrays(arrays))
    with pytest.raises(ModelMismatch, match=name):
        Rescorer(model)


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nothing\.onnx"):
        Rescorer(tmp_path / "nothing.onnx")


@pytest.mark.parametrize("name", ["rescorer.onnx", "rescorer-research.onnx"])
def test_the_shipped_models_score_the_foremost_of_a_search_s_candidates(name: str) -> None:
    """They are of this version, the ones that SHA256SUMS names, and not the same for all."""
    path = MODELS / name
    assert f"{file_sha256(path)}  {name}" in (MODELS / "SHA256SUMS").read_text("utf-8").splitlines()
    assert file_sha256(path) in path.with_suffix(".md").read_text("utf-8")
    some = example(5, candidates=150)
    rescored = Rescorer(path).score(some.evidence, some.known)
    assert len(rescored.scores) == MOST_RESCORED
    values = list(rescored.scores.values())
    assert np.isfinite(values).all()
    assert len(set(values)) > MOST_RESCORED / 2
    assert 0 <= rescored.share <= 1
