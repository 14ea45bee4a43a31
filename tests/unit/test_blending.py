"""Two orders made one, with hand-computed numbers."""

from __future__ import annotations

import pytest

from retrieval.blending import as_fused, blend
from retrieval.fusion import Fused, weighted_rrf
from retrieval.types import Leg


def fused(*ids: str) -> list[Fused]:
    return weighted_rrf({Leg.BM25: list(ids)}, {Leg.BM25: 1.0})


def order(ids: str, scores: dict[str, float], confidence: float) -> str:
    return "".join(each.fused.id for each in blend(fused(*ids), scores, confidence))


def test_scores_by_hand() -> None:
    """The rescorer's order is c, a, b; k is 5 and ranks count from 1."""
    placed = blend(fused("a", "b", "c"), {"a": 0.0, "b": -3.0, "c": 7.5}, 0.25)
    assert [(each.fused.id, each.fused_rank) for each in placed] == [("a", 1), ("b", 2), ("c", 3)]
    assert [each.score for each in placed] == pytest.approx(
        [0.75 / 6 + 0.25 / 7, 0.75 / 7 + 0.25 / 8, 0.75 / 8 + 0.25 / 6]
    )


def test_at_which_confidence_the_last_of_two_overtakes() -> None:
    assert order("ab", {"a": 0.0, "b": 1.0}, 0.49) == "ab"
    assert order("ab", {"a": 0.0, "b": 1.0}, 0.5) == "ab", "equal scores: the order of the fusion"
    assert order("ab", {"a": 0.0, "b": 1.0}, 0.51) == "ba"


def test_only_the_order_of_the_rescorer_s_scores_counts() -> None:
    near, far = {"a": 1.0, "b": 1.001, "c": 1.002}, {"a": -900.0, "b": 0.0, "c": 1e6}
    for confidence in (0.0, 0.3, 0.7, 1.0):
        assert blend(fused(*"abc"), near, confidence) == blend(fused(*"abc"), far, confidence)


def test_those_that_the_rescorer_does_not_know_are_last_of_its_order() -> None:
    """Even after one of a very low score; among themselves in the order of the fusion."""
    assert order("abcd", {"b": -1e9, "d": 0.5}, 1.0) == "dbac"
    assert order("abcd", {}, 1.0) == "abcd"


def test_equal_scores_of_the_rescorer_keep_the_order_of_the_fusion() -> None:
    assert order("abcd", {"a": 0.0, "b": 2.0, "c": 2.0, "d": 2.0}, 1.0) == "bcda"


def test_without_a_rescorer_score_and_rank_are_those_of_the_fusion() -> None:
    ranked = fused("a", "b")
    assert [(each.fused, each.fused_rank, each.score) for each in as_fused(ranked)] == [
        (ranked[0], 1, ranked[0].score),
        (ranked[1], 2, ranked[1].score),
    ]


def test_nothing_to_order() -> None:
    assert as_fused([]) == blend([], {}, 0.5) == blend([], {"a": 1.0}, 1.0) == []
