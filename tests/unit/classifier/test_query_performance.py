"""The features of how far each leg can be trusted: finite, in range, independent of scale and names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from classifier.intents import INTENTS, Intent
from classifier.query_performance import FEATURES, LegScores, QueryPerformanceFeatures

NOTHING = QueryPerformanceFeatures(
    vector=LegScores(),
    bm25=LegScores(),
    graph=LegScores(),
    score_upper_bound=0.0,
    entity_idfs=(),
    words=0,
    probabilities=dict.fromkeys(INTENTS, 0.25),
)


def features(evidence: QueryPerformanceFeatures) -> dict[str, float]:
    row = evidence.row
    assert row.shape == (len(FEATURES),)
    assert row.dtype == np.float32
    return dict(zip(FEATURES, row.tolist(), strict=True))


def descending(scores: Sequence[float]) -> list[float]:
    return sorted(scores, reverse=True)


def findings(low: float, high: float) -> st.SearchStrategy[LegScores]:
    """A ranking of up to 30 of 40 ids."""
    scores = st.lists(st.floats(low, high, allow_subnormal=False), max_size=30).map(descending)
    return st.tuples(scores, st.permutations(range(40))).map(
        lambda both: LegScores([f"m{at}" for at in both[1][: len(both[0])]], both[0])
    )


@st.composite
def evidences(draw: st.DrawFn) -> QueryPerformanceFeatures:
    """What legs can return: cosines, BM25 below what is attainable, activations."""
    bm25 = draw(findings(1e-3, 50))
    shares = draw(st.lists(st.floats(0.01, 1), min_size=len(INTENTS), max_size=len(INTENTS)))
    return QueryPerformanceFeatures(
        vector=draw(findings(-1, 1)),
        bm25=bm25,
        graph=draw(findings(1e-6, 1)),
        score_upper_bound=max(bm25.scores, default=0.0) * draw(st.floats(1, 5)),
        entity_idfs=draw(st.lists(st.floats(0, 1), max_size=10)),
        words=draw(st.integers(0, 5_000)),
        probabilities={intent: share / sum(shares) for intent, share in zip(INTENTS, shares, strict=True)},
    )


@given(evidences())
def test_features_are_finite_and_in_their_ranges(evidence: QueryPerformanceFeatures) -> None:
    """Shares, ranks and probabilities in [0, 1]; cosines in [-1, 1] and their differences in [0, 2]."""
    for name, value in features(evidence).items():
        low, high = {"cosine": (-1, 1), "words": (0, 3), "cosine_drop_near": (0, 2), "cosine_drop_far": (0, 2)}.get(
            name, (0, 1)
        )
        assert np.isfinite(value)
        assert low - 1e-6 <= value <= high + 1e-6, name


@given(evidences(), st.sampled_from([10.0, 0.01, 1e4]))
def test_the_scale_of_bm25_and_of_activations_changes_nothing(
    evidence: QueryPerformanceFeatures, factor: float
) -> None:
    """Scores and their upper bound grow together with a corpus."""
    bm25, graph = evidence.bm25, evidence.graph
    scaled = replace(
        evidence,
        bm25=LegScores(bm25.ids, [factor * score for score in bm25.scores]),
        score_upper_bound=factor * evidence.score_upper_bound,
        graph=LegScores(graph.ids, [factor * score for score in graph.scores]),
    )
    assert features(scaled) == pytest.approx(features(evidence), abs=1e-5)


@given(evidences(), st.randoms(use_true_random=False))
def test_other_ids_change_nothing(evidence: QueryPerformanceFeatures, random: object) -> None:
    names = [f"renamed-{at}" for at in range(40)]
    random.shuffle(names)  # type: ignore[attr-defined]

    def renamed(found: LegScores) -> LegScores:
        return LegScores([names[int(id_[1:])] for id_ in found.ids], found.scores)

    other = replace(
        evidence, vector=renamed(evidence.vector), bm25=renamed(evidence.bm25), graph=renamed(evidence.graph)
    )
    assert other.row.tobytes() == evidence.row.tobytes()


@given(evidences(), st.randoms(use_true_random=False))
def test_the_order_of_entities_and_intents_changes_nothing(evidence: QueryPerformanceFeatures, random: object) -> None:
    entity_idfs = list(evidence.entity_idfs)
    random.shuffle(entity_idfs)  # type: ignore[attr-defined]
    backwards = dict(reversed(list(evidence.probabilities.items())))
    other = replace(evidence, entity_idfs=entity_idfs, probabilities=backwards)
    assert features(other) == pytest.approx(features(evidence), abs=1e-6)


def test_legs_that_found_nothing_are_zeros() -> None:
    assert features(NOTHING) == dict.fromkeys(FEATURES, 0.0) | {f"p_{intent}": 0.25 for intent in INTENTS}


def test_features_by_hand() -> None:
    """Two rankings of three; a shorter ranking's last score stands for those beyond it."""
    evidence = replace(
        NOTHING,
        vector=LegScores(["a", "b", "c"], [0.8, 0.6, 0.5]),
        bm25=LegScores(["c", "a", "d"], [6.0, 4.0, 2.0]),
        graph=LegScores(["e"], [1.0]),
        score_upper_bound=12.0,
        entity_idfs=(1.0, 0.5),
        words=6,
        probabilities={
            Intent.FACT_LOOKUP: 0.7,
            Intent.RELATIONSHIP: 0.1,
            Intent.PREFERENCE: 0.15,
            Intent.OPEN_ENDED: 0.05,
        },
    )
    row = features(evidence)
    expected = {
        "bm25_share": 0.5,
        "bm25_share_near": 1 / 3,
        "bm25_drop_near": 2 / 3,
        "bm25_drop_far": 2 / 3,
        "cosine": 0.8,
        "cosine_drop_near": 0.3,
        "cosine_drop_far": 0.3,
        "graph_drop_near": 0.0,
        "vector_bm25_near": 2 / 5,
        "vector_bm25_far": 2 / 20,
        "vector_graph_near": 0.0,
        "bm25_best_in_vector": 1 / 3,
        "vector_best_in_bm25": 1 / 2,
        "graph_best_in_vector": 0.0,
        "entities": 2 / 8,
        "rarest_entity": 1.0,
        "mean_rarity": 0.75,
        "words": float(np.log1p(6)) / 3,
        "p_fact_lookup": 0.7,
        "p_preference": 0.15,
    }
    assert {name: row[name] for name in expected} == pytest.approx(expected)


def test_depths() -> None:
    """Near is the fifth place, far the twentieth."""
    ids = [f"m{at}" for at in range(25)]
    scores = [1.0 - at / 100 for at in range(25)]
    row = features(
        replace(NOTHING, vector=LegScores(ids, scores), bm25=LegScores(ids[::-1], scores), score_upper_bound=2.0)
    )
    assert row["cosine_drop_near"] == pytest.approx(0.04)
    assert row["cosine_drop_far"] == pytest.approx(0.19)
    assert row["bm25_share_near"] == pytest.approx(0.98 / 2)
    assert row["vector_bm25_near"] == 0.0
    assert row["vector_bm25_far"] == pytest.approx(15 / 20)
    assert row["vector_best_in_bm25"] == pytest.approx(1 / 25)
