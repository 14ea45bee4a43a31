"""The fusion of a caller's own rankings; property/ranking/test_fusion_properties.py compares it with the engine's."""

from __future__ import annotations

from math import inf, nan

import pytest

import trivet


def test_any_number_of_rankings_are_fused() -> None:
    fused = trivet.weighted_rrf([["b", "a"], ["a"], ["c"], ["d", "a"], []], [1, 0.5, 2, 0, 1])
    assert [*fused.items()] == [("c", 2 / 61), ("a", 1 / 62 + 0.5 / 61), ("b", 1 / 61)]
    assert [*trivet.weighted_rrf([["b"], ["a"]], rrf_k=1).items()] == [("a", 0.5), ("b", 0.5)]
    assert trivet.weighted_rrf([]) == {}


@pytest.mark.parametrize("weights", [[1], [1, 1, 1], [1, -1], [1, inf], [nan, 1]])
def test_weights_that_are_none_are_refused(weights: list[float]) -> None:
    with pytest.raises(trivet.InvalidInput, match="weights"):
        trivet.weighted_rrf([["a"], ["b"]], weights)


def test_what_else_is_wrong_is_said() -> None:
    with pytest.raises(trivet.InvalidInput, match="ranking 1 has an id twice"):
        trivet.weighted_rrf([["a"], ["b", "b"]])
    for rrf_k in (0, -1, nan, inf):
        with pytest.raises(trivet.InvalidInput, match="rrf_k"):
            trivet.weighted_rrf([["a"]], rrf_k=rrf_k)
