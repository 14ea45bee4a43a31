"""The features that say how far each leg can be trusted: finite, in range, blind to scale and names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifier.evidence import FEATURES, Evidence, Findings, evidence_row
from classifier.intents import INTENTS, Intent

NOTHING = Evidence(
    vector=Findings(),
    bm25=Findings(),
    graph=Findings(),
    attainable=0.0,
    rarities=(),
    words=0,
    probabilities=dict.fromkeys(INTENTS, 0.25),
)


def features(evidence: Evidence) -> dict[str, float]:
    row = evidence_row(evidence)
    assert row.shape == (len(FEATURES),)
    assert row.dtype == np.float32
    return dict(zip(FEATURES, row.tolist(), strict=True))


def descending(scores: Sequence[float]) -> list[float]:
    return sorted(scores, reverse=True)


def findings(low: float, high: float) -> st.SearchStrategy[Findings]:
    """A ranking of up to 30 of 40 ids."""
    scores = st.lists(st.floats(low, high, allow_subnormal=False), max_size=30).map(descending)
    return st.tuples(scores, st.permutations(range(40))).map(
        lambda both: Findings([f"m{at}" for at in both[1][: len(both[0])]], both[0])
    )


@st.composite
def evidences(draw: st.DrawFn) -> Evidence:
    """What legs can return: cosines, BM25 below what is attainable, activations."""
    bm25 = draw(findings(1e-3, 50))
    shares = draw(st.lists(st.floats(0.01, 1), min_size=len(INTENTS), max_size=len(INTENTS)))
    return Evidence(
        vector=draw(findings(-1, 1)),
        bm25=bm25,
        graph=draw(findings(1e-6, 1)),
        attainable=max(bm25.scores, default=0.0) * draw(st.floats(1, 5)),
        rarities=draw(st.lists(st.floats(0, 1), max_size=10)),
        words=draw(st.integers(0, 5_000)),
        probabilities={intent: share / sum(shares) for intent, share in zip(INTENTS, shares, strict=True)},
    )


@given(evidences())
def test_features_are_finite_and_in_their_ranges(evidence: Evidence) -> None:
    """Shares, ranks and probabilities in [0, 1]; cosines in [-1, 1] and their differences in [0, 2]."""
    for name, value in features(evidence).items():
        low, high = {"cosine": (-1, 1), "words": (0, 3), "cosine_drop_near": (0, 2), "cosine_drop_far": (0, 2)}.get(
            name, (0, 1)
        )
        assert np.isfinite(value)
        assert low - 1e-6 <= value <= high + 1e-6, name


@given(evidences(), st.sampled_from([10.0, 0.01, 1e4]))
def test_the_scale_of_bm25_and_of_activations_changes_nothing(evidence: Evidence, factor: float) -> None:
    """Scores and what is attainable grow together with a corpus."""
    bm25, graph = evidence.bm25, evidence.graph
    scaled = replace(
        evidence,
        bm25=Findings(bm25.ids, [factor * score for score in bm25.scores]),
        attainable=factor * evidence.attainable,
        graph=Findings(graph.ids, [factor * score for score in graph.scores]),
    )
    assert features(scaled) == pytest.approx(features(evidence), abs=1e-5)


@given(evidences(), st.randoms(use_true_random=False))
def test_other_ids_change_nothing(evidence: Evidence, random: object) -> None:
    names = [f"renamed-{at}" for at in range(40)]
    random.shuffle(names)  # type: ignore[attr-defined]

    def renamed(found: Findings) -> Findings:
        return Findings([names[int(id_[1:])] for id_ in found.ids], found.scores)

    other = replace(
        evidence, vector=renamed(evidence.vector), bm25=renamed(evidence.bm25), graph=renamed(evidence.graph)
    )
    assert evidence_row(other).tobytes() == evidence_row(evidence).tobytes()


@given(evidences(), st.randoms(use_true_random=False))
def test_the_order_of_entities_and_intents_changes_nothing(evidence: Evidence, random: object) -> None:
    rarities = list(evidence.rarities)
    random.shuffle(rarities)  # type: ignore[attr-defined]
    backwards = dict(reversed(list(evidence.probabilities.items())))
    other = replace(evidence, rarities=rarities, probabilities=backwards)
    assert features(other) == pytest.approx(features(evidence), abs=1e-6)


def test_legs_that_found_nothing_are_zeros() -> None:
    assert features(NOTHING) == dict.fromkeys(FEATURES, 0.0) | {f"p_{intent}": 0.25 for intent in INTENTS}


def test_features_by_hand() -> None:
    """Two rankings of three; a shorter ranking's last score stands for those beyond it."""
    evidence = replace(
        NOTHING,
        vector=Findings(["a", "b", "c"], [0.8, 0.6, 0.5]),
        bm25=Findings(["c", "a", "d"], [6.0, 4.0, 2.0]),
        graph=Findings(["e"], [1.0]),
        attainable=12.0,
        rarities=(1.0, 0.5),
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
    row = features(replace(NOTHING, vector=Findings(ids, scores), bm25=Findings(ids[::-1], scores), attainable=2.0))
    assert row["cosine_drop_near"] == pytest.approx(0.04)
    assert row["cosine_drop_far"] == pytest.approx(0.19)
    assert row["bm25_share_near"] == pytest.approx(0.98 / 2)
    assert row["vector_bm25_near"] == 0.0
    assert row["vector_bm25_far"] == pytest.approx(15 / 20)
    assert row["vector_best_in_bm25"] == pytest.approx(1 / 25)
