"""Learning leg weights: the quality of mixtures, the fit, the exported model."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise, permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import helper

from classifier.inference import ModelMismatch
from classifier.intents import INTENTS
from classifier.leg_weights import LEGS, LegWeightModel
from classifier.query_performance import FEATURES, LegScores, QueryPerformanceFeatures
from classifier.training import leg_weights
from classifier.training.leg_weights import REACH, FittedLegWeights, export, fit, folds, held_out
from classifier.training.mixtures import GRID, LabelledRankings, qualities, quality_of, read_rows
from retrieval.evaluation.metrics import ndcg
from retrieval.types.search import Leg
from tests.rankings import Fused, weighted_rrf

COSINE = FEATURES.index("cosine")


def row(
    evidence: Sequence[float],
    rankings: Mapping[str, Sequence[str]],
    relevant: Collection[str] = ("gold",),
    *,
    set_: str = "s",
    namespace: str = "n",
    rrf_k: int = 5,
) -> LabelledRankings:
    fields = {"set": set_, "namespace": namespace, "evidence": evidence, "rankings": rankings}
    return msgspec.convert(fields | {"relevant": relevant, "rrf_k": rrf_k}, LabelledRankings)


def toy(count: int, seed: int = 0, set_: str = "s") -> list[LabelledRankings]:
    """Where the cosine is high the vector leg alone has the gold, elsewhere BM25 alone."""
    random = np.random.default_rng(seed)
    rows = []
    for at in range(count):
        evidence = random.random(len(FEATURES))
        right, wrong = ["gold", *"hijklm"], list("abcdefg")
        high = evidence[COSINE] > 0.5
        rankings = {"vector": right if high else wrong, "bm25": wrong if high else right, "graph": list("pqrst")}
        rows.append(row(evidence.tolist(), rankings, set_=set_, namespace=f"n{at % 7}"))
    return rows


@pytest.fixture(scope="module")
def rows() -> list[LabelledRankings]:
    return toy(2_000)


@pytest.fixture(scope="module")
def fitted(rows: list[LabelledRankings]) -> FittedLegWeights:
    return fit(rows, qualities(rows))


def test_the_grid_is_all_mixtures_in_tenths() -> None:
    assert GRID.shape == (66, len(LEGS)) == (len({tuple(mixture) for mixture in GRID.tolist()}), 3)
    np.testing.assert_allclose(GRID.sum(axis=1), 1.0)
    assert GRID.min() == 0.0
    assert np.allclose(GRID * 10, np.round(GRID * 10))


RANKINGS = st.dictionaries(
    st.sampled_from(LEGS), st.lists(st.sampled_from([f"m{at:02}" for at in range(25)]), unique=True, max_size=25)
).filter(lambda rankings: any(rankings.values()))


@given(RANKINGS, st.sets(st.sampled_from([f"m{at:02}" for at in range(30)]), min_size=1), st.sampled_from([1, 5, 60]))
def test_the_quality_of_a_mixture_is_that_of_its_fusion(
    rankings: dict[str, list[str]], relevant: set[str], rrf_k: int
) -> None:
    """nDCG@10 of what the server would answer."""
    query = row([0.0] * len(FEATURES), rankings, relevant, rrf_k=rrf_k)
    [got] = qualities([query])
    for mixture, quality in zip(GRID, got, strict=True):
        fused = served(query, mixture)
        scores = [each.score for each in fused]
        if all(abs(one - other) > 1e-12 for one, other in pairwise(scores)):
            expected = ndcg([each.id for each in fused], dict.fromkeys(relevant, 1), cutoff=10)
            assert quality == pytest.approx(expected)
            assert quality_of(query, mixture) == pytest.approx(expected)


def served(query: LabelledRankings, mixture: NDArray[np.float64]) -> list[Fused]:
    weights = {Leg(leg): float(share) for leg, share in zip(LEGS, mixture, strict=True)}
    return weighted_rrf({Leg(leg): ids for leg, ids in query.rankings.items()}, weights, rrf_k=query.rrf_k)


@pytest.mark.parametrize("bm25", list(permutations("abc")))
def test_ties_go_by_id_as_the_server_breaks_them(bm25: tuple[str, ...]) -> None:
    """If the server's scores are equal, despite rounding in any order of the legs."""
    for graph in permutations("abc"):
        rankings = {"vector": list("acb"), "bm25": list(bm25), "graph": list(graph)}
        query = row([0.0] * len(FEATURES), rankings, {"a"})
        for mixture, quality in zip(GRID, qualities([query])[0], strict=True):
            fused = served(query, mixture)
            if len({each.score for each in fused}) < len(fused):
                expected = ndcg([each.id for each in fused], {"a": 1}, cutoff=10)
                assert quality == pytest.approx(expected), (graph, mixture)


def test_quality_by_hand() -> None:
    query = row([0.0] * len(FEATURES), {"vector": ["x", "gold"], "bm25": ["gold"], "graph": []})
    assert quality_of(query, np.array([1.0, 0.0, 0.0])) == pytest.approx(1 / np.log2(3))
    assert quality_of(query, np.array([0.0, 1.0, 0.0])) == 1.0
    assert quality_of(query, np.array([0.0, 0.0, 1.0])) == 0.0


def test_it_learns_which_leg_to_trust(fitted: FittedLegWeights) -> None:
    """On unseen queries, with rankings that are nearly optimal."""
    unseen = toy(200, seed=1)
    evidence = np.array([each.evidence for each in unseen])
    weights = fitted.weights(evidence)
    sure = np.abs(evidence[:, COSINE] - 0.5) > 0.1
    vector_first = weights[:, 0] > weights[:, 1]
    assert (vector_first == (evidence[:, COSINE] > 0.5))[sure].mean() > 0.9
    learned = np.mean([quality_of(each, w) for each, w in zip(unseen, weights, strict=True)])
    best_fixed = qualities(unseen).mean(axis=0).max()
    assert learned > best_fixed + 0.1
    assert weights[:, 2].mean() < 0.2  # the graph leg is never right


def test_a_leg_that_alone_is_right_gets_nearly_all_the_weight() -> None:
    random = np.random.default_rng(3)
    rankings = {"vector": list("zyxwvutsrq"), "bm25": list("abcdefghij"), "graph": ["gold"]}
    queries = [row(random.random(len(FEATURES)).tolist(), rankings) for _ in range(40)]
    weights = fit(queries, qualities(queries)).weights(np.array([each.evidence for each in queries]))
    assert weights[:, 2].min() > 0.5


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32 - 1), spread=st.floats(0.1, 100))
def test_weights_are_shares(fitted: FittedLegWeights, seed: int, spread: float) -> None:
    """Also for evidence unlike all training data."""
    weights = fitted.weights(np.random.default_rng(seed).normal(0, spread, (20, len(FEATURES))))
    assert np.isfinite(weights).all()
    assert weights.min() >= 0
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)


def test_evidence_beyond_all_that_was_seen_counts_as_its_edge(fitted: FittedLegWeights) -> None:
    evidence = np.array([each.evidence for each in toy(20, seed=5)])
    for far in (10.0, 1e6):
        beyond = evidence.copy()
        beyond[:, COSINE] = far
        edge = evidence.copy()
        edge[:, COSINE] = fitted.mean[COSINE] + REACH * fitted.scale[COSINE]
        np.testing.assert_allclose(fitted.weights(beyond), fitted.weights(edge))


def test_every_set_counts_alike() -> None:
    """Twenty queries of one set weigh as much as two hundred of another."""
    few, many = toy(20, seed=7, set_="few"), toy(200, seed=8, set_="many")
    doubled = [*many, *many]
    once, twice = [*few, *many], [*few, *doubled]
    evidence = np.array([each.evidence for each in toy(30, seed=9)])
    np.testing.assert_allclose(
        fit(once, qualities(once)).weights(evidence),
        fit(twice, qualities(twice)).weights(evidence),
        atol=1e-6,
    )


def test_the_exported_model_gives_the_fitted_weights(
    fitted: FittedLegWeights, rows: list[LabelledRankings], tmp_path: Path
) -> None:
    """On training rows, other rows and distant ones."""
    path = tmp_path / "weights.onnx"
    export(fitted, path)
    served = LegWeightModel(path)
    random = np.random.default_rng(4)
    near, far = random.random((500, len(FEATURES))), random.normal(0, 5, (500, len(FEATURES)))
    for evidence in (np.array([each.evidence for each in rows]), near, far, near[:1]):
        single = evidence.astype(np.float32)
        got = np.array([[*served.weights(SimpleNamespace(row=row)).values()] for row in single])  # type: ignore[arg-type]
        np.testing.assert_allclose(got, fitted.weights(single.astype(np.float64)), atol=1e-5)
        np.testing.assert_allclose(got.sum(axis=1), 1.0, atol=1e-5)


def test_the_same_rows_give_the_same_bytes(rows: list[LabelledRankings], tmp_path: Path) -> None:
    for name in ("one", "two"):
        export(fit(rows, qualities(rows)), tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def some_evidence() -> QueryPerformanceFeatures:
    return QueryPerformanceFeatures(
        vector=LegScores(["a", "b"], [0.8, 0.3]),
        bm25=LegScores(["b"], [4.0]),
        graph=LegScores(["a"], [0.6]),
        score_upper_bound=9.0,
        entity_idfs=(0.7,),
        words=5,
        probabilities=dict.fromkeys(INTENTS, 0.25),
    )


def test_the_server_weighs_one_query_as_the_model_was_fitted(fitted: FittedLegWeights, tmp_path: Path) -> None:
    path = tmp_path / "weights.onnx"
    export(fitted, path)
    weights = LegWeightModel(path).weights(some_evidence())
    assert list(weights) == list(LEGS) == [leg.value for leg in Leg]
    expected = fitted.weights(some_evidence().row[np.newaxis, :].astype(np.float64))[0]
    assert list(weights.values()) == pytest.approx(expected.tolist(), abs=1e-5)
    assert sum(weights.values()) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("changes", [{"evidence_version": "999"}, {"features": json.dumps(FEATURES[:-1])}, None])
def test_a_model_for_other_features_is_refused(
    fitted: FittedLegWeights, tmp_path: Path, changes: dict[str, str] | None
) -> None:
    """And one that does not state its version."""
    path = tmp_path / "weights.onnx"
    export(fitted, path)
    model = onnx.load(path)
    known = {} if changes is None else {each.key: each.value for each in model.metadata_props} | changes
    del model.metadata_props[:]
    helper.set_model_props(model, known)
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelMismatch, match=r"weights\.onnx"):
        LegWeightModel(path)


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nothing\.onnx"):
        LegWeightModel(tmp_path / "nothing.onnx")


def test_folds_keep_a_namespace_together() -> None:
    """A set of one namespace is cut by query; every fold has some, and the same rows give the same folds."""
    zeros = [0.0] * len(FEATURES)
    several = [row(zeros, {}, set_="several", namespace=f"n{at % 10}") for at in range(100)]
    single = [row(zeros, {}, set_="single") for _ in range(50)]
    found = folds([*several, *single])
    assert found == folds([*several, *single])
    assert set(found) == set(range(5))
    for name in range(10):
        assert len({found[at] for at in range(100) if several[at].namespace == f"n{name}"}) == 1
    assert [found[100:].count(fold) for fold in range(5)] == [10] * 5


def test_held_out_weights_do_not_know_their_group(rows: list[LabelledRankings]) -> None:
    """The weights of a group do not depend on its own quality."""
    some = rows[:60]
    groups = [at % 3 for at in range(60)]
    quality = qualities(some)
    before = held_out(some, quality, groups)
    changed = quality.copy()
    inside = np.array(groups) == 1
    changed[inside] = changed[inside][:, ::-1]
    after = held_out(some, changed, groups)
    np.testing.assert_allclose(after[inside], before[inside])
    assert not np.allclose(after[~inside], before[~inside])


def line(**changes: object) -> dict[str, Any]:
    fields = {
        "set": "s",
        "namespace": "n",
        "evidence": [0.5] * len(FEATURES),
        "rankings": {"vector": ["a"], "bm25": ["b", "gold"], "graph": []},
        "relevant": ["gold"],
        "rrf_k": 5,
    }
    return {**fields, **changes}


def write(path: Path, *lines: object) -> Path:
    path.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in lines), "utf-8")
    return path


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    found = read_rows(write(tmp_path / "e.jsonl", line(), line(set="t", relevant=["a", "a"])))
    assert [(each.set, each.namespace, each.rrf_k, each.relevant) for each in found] == [
        ("s", "n", 5, frozenset({"gold"})),
        ("t", "n", 5, frozenset({"a"})),
    ]
    assert np.isfinite(qualities(found)).all()


BAD_LINES: dict[str, object] = {
    "few features": line(evidence=[0.5]),
    "no JSON": '{"set": ',
    "no object": [1, 2],
    "no evidence": {key: value for key, value in line().items() if key != "evidence"},
    "no gold": {key: value for key, value in line().items() if key != "relevant"},
    "empty gold": line(relevant=[]),
    "unknown field": line(more=1),
    "unknown leg": line(rankings={"sparse": ["a"]}),
    "a feature that is no number": line(evidence=[None, *[0.5] * (len(FEATURES) - 1)]),
    "an infinite feature": line(evidence=[float("inf"), *[0.5] * (len(FEATURES) - 1)]),
}


@pytest.mark.parametrize("bad", BAD_LINES)
def test_a_bad_line_is_named(tmp_path: Path, bad: str) -> None:
    """With its file and number."""
    path = write(tmp_path / "e.jsonl", line(), BAD_LINES[bad])
    with pytest.raises(ValueError, match=r"e\.jsonl:2"):
        read_rows(path)


def test_the_command_writes_model_card_and_checksum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The card says how good the model is on each set; one that does not allow commercial use is left out."""
    queries = [
        *toy(30, seed=1, set_="lme_mini"),
        *toy(30, seed=2, set_="hotpotqa"),
        *toy(30, seed=3, set_="locomo"),
    ]
    lines = [
        line(set=each.set, namespace=each.namespace, evidence=list(each.evidence), rankings=dict(each.rankings))
        for each in queries
    ]
    evidence = write(tmp_path / "e.jsonl", *lines)
    monkeypatch.setattr("sys.argv", ["leg_weights", str(evidence), "--models", str(tmp_path)])
    leg_weights.main()
    card = (tmp_path / "weights.md").read_text("utf-8")
    assert "lme_mini" in card
    assert "hotpotqa" in card
    assert "locomo" not in card
    assert "60 queries of 2 " in card
    assert card.strip() in capsys.readouterr().out
    checksum = (tmp_path / "SHA256SUMS").read_text("utf-8")
    assert checksum.endswith("  weights.onnx\n")
    assert checksum[:64] in card
    assert sum(LegWeightModel(tmp_path / "weights.onnx").weights(some_evidence()).values()) == pytest.approx(
        1.0, abs=1e-5
    )
