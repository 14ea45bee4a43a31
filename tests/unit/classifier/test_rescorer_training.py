"""Learning the order of candidates: the examples file, trees, how far to follow them, the exported model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from numpy.typing import NDArray
from onnx import TensorProto, helper

from classifier.candidates import CANDIDATE_FEATURES, CANDIDATES_VERSION, CORPUS_FEATURES, describe
from classifier.leg_weights import LEGS
from classifier.training.examples import Example, read_examples, write_examples
from classifier.traits import pack_traits
from retrieval.evaluation.metrics import ndcg
from retrieval.ranking.fusion import blend
from retrieval.types.search import Leg
from tests.examples import share_of_examples
from tests.rankings import weighted_rrf
from tests.rescorable import SETS, example, examples, learned, require_training, rescored

require_training()

import lightgbm  # noqa: E402

from classifier.training import rescorer  # noqa: E402
from classifier.training.corpus_guard import FittedCorpusGuard, fit_corpus_guard  # noqa: E402
from classifier.training.mixtures import fused_ids, labelled_rankings  # noqa: E402
from classifier.training.rescorer import RISING, FittedRescorer, export, left_out_groups, without_leg  # noqa: E402
from classifier.training.rescorer_share import LEVELS, blend_qualities, fit_share  # noqa: E402
from classifier.training.research_sets import PERMISSIVE  # noqa: E402
from classifier.training.trees import TreeOptions, grow, tree_node  # noqa: E402


@pytest.fixture(scope="module")
def fitted() -> FittedRescorer:
    return learned()


# What is written and read again


@given(st.integers(0, 10_000), st.integers(1, 40), st.booleans())
@settings(max_examples=share_of_examples(0.5))
def test_features_of_what_was_written_are_those_that_were_served(
    tmp_path_factory: pytest.TempPathFactory, seed: int, candidates: int, embedded: bool
) -> None:
    """To the last bit."""
    some = example(seed, candidates=candidates)
    if not embedded:
        some = structs.replace(some, known=structs.replace(some.known, vectors=None))
    path = tmp_path_factory.mktemp("examples") / "examples.bin"
    write_examples(path, [some])
    [read] = read_examples(path)
    got, served = describe(read.evidence, read.known), describe(some.evidence, some.known)
    assert [each.tobytes() for each in got] == [each.tobytes() for each in served]
    assert (read.set, read.namespace, read.type) == (some.set, some.namespace, some.type)
    assert (read.relevant, list(read.fused)) == (some.relevant, list(some.fused))
    assert read.evidence.probabilities == some.evidence.probabilities


def test_examples_keep_their_order_and_a_file_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "examples.bin"
    write_examples(path, examples(9))
    write_examples(path, examples(5))
    assert [each.namespace for each in read_examples(path)] == [each.namespace for each in examples(5)]
    write_examples(path, [])
    assert read_examples(path) == []


@pytest.mark.parametrize("content", [b"\0\0\0\5abc", b"\0\0\0\3abc", b"\0\0\0\1\x80", b"\0\0"])
def test_what_is_no_file_of_examples_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "examples.bin"
    write_examples(path, examples(1))
    path.write_bytes(path.read_bytes() + content)
    with pytest.raises(ValueError, match=r"examples\.bin|cut off"):
        read_examples(path)


# Trees


def test_the_exported_trees_say_what_lightgbm_says(fitted: FittedRescorer) -> None:
    """Also exactly at and next to the thresholds, where a float32 rounded up would take the wrong branch."""
    rng = np.random.default_rng(1)
    served = np.concatenate([describe(each.evidence, each.known).rows for each in examples(10, first=500)])
    low, high = served.min(axis=0) - 0.1, served.max(axis=0) + 0.1
    random = rng.uniform(low, high, (500, len(CANDIDATE_FEATURES))).astype(np.float32)
    at_thresholds = np.concatenate([random, random, random])
    for feature, thresholds in splits(fitted.booster).items():
        nearest = rng.choice(thresholds, len(at_thresholds)).astype(np.float32)
        towards = rng.choice(np.array([-np.inf, 0.0, np.inf], np.float32), len(at_thresholds))
        at_thresholds[:, feature] = np.where(towards == 0.0, nearest, np.nextafter(nearest, towards))
    session = onnx_trees(fitted.booster)
    for rows in (served, random, at_thresholds):
        [scores] = session.run(["scores"], {"rows": rows})
        expected = np.asarray(fitted.booster.predict(rows.astype(np.float64)))
        np.testing.assert_allclose(scores[:, 0], expected, rtol=1e-5, atol=1e-6)


def test_more_of_what_speaks_for_a_candidate_never_counts_against_it() -> None:
    """Not even if all training gold covers the query least."""
    contrary = learned(queries=[turned(each, covered_first=False) for each in examples()])
    rows = np.concatenate([describe(each.evidence, each.known).rows for each in examples(10, first=700)])
    rng = np.random.default_rng(2)
    session = onnx_trees(contrary.booster)
    for name in sorted(RISING):
        more = rows.copy()
        more[:, CANDIDATE_FEATURES.index(name)] += rng.uniform(0, 1, len(rows)).astype(np.float32)
        [before], [after] = (session.run(["scores"], {"rows": each}) for each in (rows, more))
        assert (after >= before - 1e-5).all(), name


def splits(booster: lightgbm.Booster) -> dict[int, list[float]]:
    """The thresholds of each feature."""
    found: dict[int, list[float]] = {}

    def visit(node: dict[str, Any]) -> None:
        if "leaf_value" not in node:
            found.setdefault(node["split_feature"], []).append(node["threshold"])
            visit(node["left_child"])
            visit(node["right_child"])

    for tree in booster.dump_model()["tree_info"]:
        visit(tree["tree_structure"])
    return found


def onnx_trees(booster: lightgbm.Booster) -> ort.InferenceSession:
    graph = helper.make_graph(
        [tree_node(booster, "rows", "scores")],
        "trees",
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", booster.num_feature()])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", 1])],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    onnx.checker.check_model(model)
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def test_trees_that_find_nothing_to_tell_candidates_apart_say_the_same_of_all() -> None:
    rows = np.ones((40, 3), np.float32)
    relevant = np.tile(np.array([1, 0], np.float32), 20)
    booster = grow(
        rows, relevant, np.ones(40, np.float32), [20, 20], [False] * 3, TreeOptions(trees=3, least_in_leaf=2)
    )
    [scores] = onnx_trees(booster).run(["scores"], {"rows": rows[:4]})
    assert scores[:, 0].tolist() == [pytest.approx(float(booster.predict(rows[:1])[0]))] * 4


# What is familiar


def corpora_at(rng: np.random.Generator, centre: Sequence[float], count: int) -> NDArray[np.float64]:
    return np.asarray(rng.normal(centre, 0.1, (count, len(centre))))


@pytest.fixture(scope="module")
def guard() -> FittedCorpusGuard:
    """Two sets of 100 queries each, around (0, 0, 0) and (1, 1, 1), of ten namespaces."""
    rng = np.random.default_rng(0)
    known = np.concatenate([corpora_at(rng, [0, 0, 0], 100), corpora_at(rng, [1, 1, 1], 100)])
    return fit_corpus_guard(known, ["one"] * 100 + ["other"] * 100, [f"n{at % 10}" for at in range(200)], seed=0)


def test_queries_like_those_of_training_are_familiar_and_far_ones_are_not(guard: FittedCorpusGuard) -> None:
    rng = np.random.default_rng(1)
    like = guard.in_domain(np.concatenate([corpora_at(rng, [0, 0, 0], 100), corpora_at(rng, [1, 1, 1], 100)]))
    assert np.mean(like == 1.0) == pytest.approx(0.8, abs=0.1)
    assert np.mean(like == 0.0) == pytest.approx(0.05, abs=0.05)
    assert guard.in_domain(corpora_at(rng, [5, -5, 0], 50)).tolist() == [0.0] * 50
    assert guard.in_domain(np.array([[0.5, 0.5, 0.5]]))[0] == 0.0, "between two kinds is neither"


def test_the_further_away_the_less_familiar(guard: FittedCorpusGuard) -> None:
    steps = np.linspace(0, 2, 200)[:, np.newaxis] * np.array([[-1.0, 0.0, 0.0]])
    familiar = guard.in_domain(steps).tolist()
    assert all(further <= nearer for nearer, further in pairwise(familiar))
    assert familiar[0] == 1.0
    assert familiar[-1] == 0.0
    assert any(0 < each < 1 for each in familiar)


def test_a_query_is_not_made_familiar_by_its_own_conversation() -> None:
    """Twenty queries of each namespace are alike; what is near is how far the other namespaces are."""
    rng = np.random.default_rng(0)
    centres = rng.normal(0, 1, (10, 3))
    known = np.concatenate([centre + rng.normal(0, 0.01, (20, 3)) for centre in centres])
    namespaces = [f"n{at // 20}" for at in range(200)]
    apart = fit_corpus_guard(known, ["s"] * 200, namespaces, seed=0)
    together = fit_corpus_guard(known, ["s"] * 200, ["one"] * 200, seed=0)
    assert apart.near > 10 * together.near


def test_every_set_counts_alike_however_many_queries_it_has() -> None:
    rng = np.random.default_rng(0)
    known = np.concatenate([corpora_at(rng, [0, 0], 400), corpora_at(rng, [1, 1], 40)])
    found = fit_corpus_guard(known, ["large"] * 400 + ["small"] * 40, [str(at % 5) for at in range(440)], seed=0)
    assert found.mean == pytest.approx([0.5, 0.5], abs=0.05)
    assert len(found.known) == 340, "300 of the large one, all of the small one"


# How far its order is followed


def kinds(rng: np.random.Generator, *centres: float, count: int = 60) -> NDArray[np.float64]:
    """Corpus features of queries of some kinds, one after the other."""
    return np.concatenate([rng.normal(centre, 0.1, (count, 3)) for centre in centres])


def test_it_is_followed_on_the_kind_where_it_helped() -> None:
    """It is followed on memories like those of the set that gained, not on others, and partly in between."""
    gains, loses = np.linspace(0.5, 0.7, len(LEVELS)), np.linspace(0.6, 0.4, len(LEVELS))
    quality = np.repeat([gains, loses], 60, axis=0)
    fitted = fit_share(kinds(np.random.default_rng(0), 0.0, 1.0), quality, ["one"] * 60 + ["other"] * 60)
    shares = fitted.shares(kinds(np.random.default_rng(1), 0.0, 0.5, 1.0))
    assert shares[:60].min() > 0.9
    assert shares[120:].max() < 0.1
    assert 0.1 < shares[60:120].mean() < 0.9
    steps = fitted.shares(np.linspace(-3, 4, 50)[:, np.newaxis] * np.ones(3))
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(steps.tolist()))


def test_every_set_counts_alike_in_the_share_however_many_queries_it_has() -> None:
    corpora = kinds(np.random.default_rng(0), 0.0, 1.0)
    quality = np.repeat([np.linspace(0.5, 0.7, len(LEVELS)), np.linspace(0.6, 0.4, len(LEVELS))], 60, axis=0)
    once = fit_share(corpora, quality, ["one"] * 60 + ["other"] * 60)
    again = fit_share(
        np.concatenate([corpora, *[corpora[:60]] * 4]),
        np.concatenate([quality, *[quality[:60]] * 4]),
        ["one"] * 60 + ["other"] * 60 + ["one"] * 240,
    )
    seen = kinds(np.random.default_rng(1), 0.0, 0.3, 0.6, 1.0)
    assert again.shares(seen) == pytest.approx(once.shares(seen), abs=1e-6)


@given(st.integers(0, 10_000), st.integers(1, 60))
@settings(max_examples=share_of_examples(0.5))
def test_the_quality_of_a_share_is_that_of_the_order_served(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    fused = [f"m{at}" for at in rng.permutation(n)]
    scores = dict(zip(fused, rng.permutation(n).astype(float).tolist(), strict=True))
    relevant = frozenset(rng.choice(fused, rng.integers(1, 4)).tolist())
    rescored = sorted(fused, key=lambda each: -scores[each])
    grades = dict.fromkeys(relevant, 1)
    orders = [blend([scores[each] for each in fused], share).numbers for share in LEVELS.tolist()]
    served = [ndcg([fused[number] for number in order], grades, cutoff=10) for order in orders]
    assert blend_qualities(fused, rescored, relevant) == pytest.approx(served)


def test_queries_are_fused_in_training_as_in_serving() -> None:
    for each in examples(12):
        row = labelled_rankings(each)
        rankings = {Leg(leg): list(ids) for leg, ids in row.rankings.items()}
        for weights in ((0.4, 0.3, 0.3), (0.0, 1.0, 0.0), (0.2, 0.0, 0.8)):
            served = weighted_rrf(rankings, dict(zip(map(Leg, LEGS), weights, strict=True)), rrf_k=row.rrf_k)
            assert fused_ids(row, np.array(weights)) == [one.id for one in served]


def test_what_is_left_out_is_a_set_or_half_of_the_only_one() -> None:
    assert left_out_groups(examples(9)) == [each.set for each in examples(9)]
    alone = [structs.replace(each, set="s") for each in examples(24)]
    groups = left_out_groups(alone)
    assert len(set(groups)) == 2
    assert len({(each.namespace, group) for each, group in zip(alone, groups, strict=True)}) == 4
    assert left_out_groups([structs.replace(each, namespace="n") for each in alone][:4]) == ["0", "1", "0", "1"]


# The exported model


@pytest.fixture(scope="module")
def exported(fitted: FittedRescorer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exported") / "rescorer.onnx"
    export(fitted, path)
    return path


def test_onnx_says_of_scores_and_share_what_numpy_says(fitted: FittedRescorer, exported: Path) -> None:
    """Of queries of training, of others like them, and of some ever less like them."""
    from classifier.rescorer import Rescorer

    served = Rescorer(exported)
    queries = [*examples(40), *examples(20, first=2_000), *(longer(example(9), by) for by in range(1, 40))]
    familiar = []
    for each in queries:
        expected, got = rescored(fitted, each), served.score(each.evidence, each.known)
        assert got.scores == pytest.approx(expected.scores, rel=1e-5, abs=1e-6)
        assert got.in_domain == pytest.approx(expected.in_domain, abs=1e-4)
        assert got.share == pytest.approx(expected.share, abs=1e-4)
        familiar.append(got.in_domain)
    assert min(familiar) == 0.0
    assert max(familiar) == 1.0


def longer(some: Example, by: int) -> Example:
    """The same candidates, each padded with a number of meaningless words."""
    traits = [pack_traits("a " * (by + at)) for at in range(len(some.known.traits))]
    return structs.replace(some, known=structs.replace(some.known, traits=traits))


def test_the_file_says_what_it_was_made_for(exported: Path) -> None:
    model = onnx.load(exported)
    metadata = {each.key: each.value for each in model.metadata_props}
    assert json.loads(metadata["candidate_features"]) == list(CANDIDATE_FEATURES)
    assert json.loads(metadata["kind_features"]) == list(CORPUS_FEATURES)
    assert metadata["candidates_version"] == str(CANDIDATES_VERSION)


def test_the_same_seed_gives_the_same_file_and_another_another(exported: Path, tmp_path: Path) -> None:
    for seed, same in ((0, True), (1, False)):
        path = tmp_path / f"{seed}.onnx"
        export(learned(seed=seed), path)
        assert (path.read_bytes() == exported.read_bytes()) is same


def test_every_set_counts_alike_in_the_trees() -> None:
    """A small set whose gold is the long texts balances a large one whose gold is the short ones."""
    few = [sized(example(at, set_=SETS[0]), longest=True) for at in range(25)]
    many = [sized(example(100 + at, set_=SETS[0]), longest=False) for at in range(250)]
    as_one = learned(queries=[*few, *many])
    as_two = learned(queries=[*few, *(structs.replace(each, set=SETS[1]) for each in many)])
    assert preference_for_short(as_one) > 1.0
    assert preference_for_short(as_two) < preference_for_short(as_one) / 2


def preference_for_short(model: FittedRescorer) -> float:
    """By how much the shortest candidate scores above the longest, on average."""
    above = []
    for at in range(30):
        each = sized(example(900 + at, set_=SETS[0]), longest=True)
        scores, ids = rescored(model, each).scores, each.known.ids
        short, long = int(np.argmin(each.known.traits)), int(np.argmax(each.known.traits))
        above.append(scores[ids[short]] - scores[ids[long]])
    return float(np.mean(above))


def sized(some: Example, *, longest: bool) -> Example:
    """The same candidates, of 3 to as many words more as there are, of which the longest or the shortest are gold."""
    lengths = np.random.default_rng(len(some.known.ids)).permutation(len(some.known.ids))
    traits = [pack_traits("a " * (3 + length)) for length in lengths.tolist()]
    order = np.argsort(lengths)[:: -1 if longest else 1]
    relevant = frozenset(some.known.ids[at] for at in order[:3])
    return structs.replace(some, relevant=relevant, known=structs.replace(some.known, traits=traits))


def turned(some: Example, *, covered_first: bool) -> Example:
    """The same query, whose gold is what covers it most, or least."""
    order = np.argsort(some.known.covered)[:: -1 if covered_first else 1]
    return structs.replace(some, relevant=frozenset(some.known.ids[at] for at in order[:3]))


# Without a leg


@pytest.mark.parametrize("leg", LEGS)
def test_without_a_leg_only_what_the_others_found_is_left(leg: str) -> None:
    some = example(4)
    left = without_leg(some, leg)
    assert left is not None
    others = {memory_id for name in LEGS if name != leg for memory_id in getattr(some.evidence, name).ids}
    assert set(left.known.ids) == others
    assert len(left.known.ids) == len(left.known.traits) == left.known.covered.size
    assert len(getattr(left.evidence, leg).ids) == 0
    rows = describe(left.evidence, left.known).rows
    assert np.isfinite(rows).all()
    names = {
        "vector": ("place_vector", "cosine", "own", "like_first", "like_few"),
        "bm25": ("place_bm25", "bm25", "covered", "shared", "rarest", "evidence_bm25_share"),
        "graph": ("place_graph", "graph", "evidence_entities", "evidence_rarest_entity"),
    }
    before = describe(some.evidence, some.known).rows
    for name in names[leg]:
        at = CANDIDATE_FEATURES.index(name)
        assert before[:, at].any(), name
        assert not rows[:, at].any(), name
    kept = [at for at, memory_id in enumerate(some.known.ids) if memory_id in others]
    assert list(left.known.ids) == [some.known.ids[at] for at in kept]
    assert list(left.known.traits) == [some.known.traits[at] for at in kept]
    assert left.relevant == some.relevant


def test_without_the_only_leg_that_found_anything_nothing_is_left() -> None:
    some = example(4)
    from classifier.query_performance import LegScores

    alone = structs.replace(some, evidence=structs.replace(some.evidence, bm25=LegScores(), graph=LegScores()))
    assert without_leg(alone, "vector") is None
    assert without_leg(alone, "graph") is not None


# The command


def test_the_command_writes_the_model_its_card_and_its_checksum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With few trees; only `--research` learns from sets whose licence does not allow commercial use."""
    monkeypatch.setattr(
        rescorer, "TreeOptions", lambda seed: TreeOptions(trees=3, leaves=4, least_in_leaf=20, seed=seed)
    )
    path = tmp_path / "examples.bin"
    named = [structs.replace(each, set=("locomo", PERMISSIVE[0])[at % 2]) for at, each in enumerate(examples(80))]
    write_examples(path, named)
    rescorer.main([str(path), "--models", str(tmp_path)])
    card = (tmp_path / "rescorer.md").read_text("utf-8")
    assert f"| {PERMISSIVE[0]} | 40 | MIT |" in card
    assert "locomo" not in card
    checksum = (tmp_path / "SHA256SUMS").read_text("utf-8").split()
    assert checksum[1] == "rescorer.onnx"
    assert checksum[0] in card
    assert checksum[0] in capsys.readouterr().out
    rescorer.main([str(path), "--models", str(tmp_path), "--research"])
    assert "| locomo | 40 | CC BY-NC 4.0 |" in (tmp_path / "rescorer-research.md").read_text("utf-8")
    lines = (tmp_path / "SHA256SUMS").read_text("utf-8").splitlines()
    assert [line.split()[1] for line in lines] == ["rescorer-research.onnx", "rescorer.onnx"]


def test_the_command_refuses_a_file_without_queries_to_learn_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "examples.bin"
    write_examples(path, [structs.replace(each, set="locomo") for each in examples(3)])
    with pytest.raises(SystemExit):
        rescorer.main([str(path), "--models", str(tmp_path)])
    assert "has 0 examples to learn from" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [path]
