"""Blending two orders, with hand-computed numbers."""

from __future__ import annotations

import pytest

from tests.rankings import blended


def order(ids: str, scores: dict[str, float], share: float) -> str:
    return "".join(ids[number] for number in blended(ids, scores, share).numbers)


def test_scores_by_hand() -> None:
    """The rescorer's order is c, a, b; k is 5 and ranks count from 1."""
    numbers, scores = blended("abc", {"a": 0.0, "b": -3.0, "c": 7.5}, 0.25)
    assert numbers == [0, 1, 2]
    assert scores == pytest.approx([0.75 / 6 + 0.25 / 7, 0.75 / 7 + 0.25 / 8, 0.75 / 8 + 0.25 / 6])


def test_at_which_share_the_last_of_two_overtakes() -> None:
    assert order("ab", {"a": 0.0, "b": 1.0}, 0.49) == "ab"
    assert order("ab", {"a": 0.0, "b": 1.0}, 0.5) == "ab", "equal scores: the order of the fusion"
    assert order("ab", {"a": 0.0, "b": 1.0}, 0.51) == "ba"


def test_only_the_order_of_the_rescorer_s_scores_counts() -> None:
    near, far = {"a": 1.0, "b": 1.001, "c": 1.002}, {"a": -900.0, "b": 0.0, "c": 1e6}
    for share in (0.0, 0.3, 0.7, 1.0):
        assert blended("abc", near, share) == blended("abc", far, share)


def test_those_that_the_rescorer_does_not_know_are_last_of_its_order() -> None:
    """Even after one of a very low score; among themselves in the order of the fusion."""
    assert order("abcd", {"b": -1e9, "d": 0.5}, 1.0) == "dbac"
    assert order("abcd", {}, 1.0) == "abcd"


def test_equal_scores_of_the_rescorer_keep_the_order_of_the_fusion() -> None:
    assert order("abcd", {"a": 0.0, "b": 2.0, "c": 2.0, "d": 2.0}, 1.0) == "bcda"


def test_nothing_to_order() -> None:
    assert blended([], {}, 0.5) == blended([], {"a": 1.0}, 1.0) == ([], [])
