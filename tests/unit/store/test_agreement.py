"""The agreement of two rankings, against numbers worked out by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.store.agreement import kendall_tau, overlap, rank_biased_overlap

RANKINGS = st.lists(st.sampled_from("abcdefghij"), max_size=10, unique=True)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("abcd", "dcba", 1.0),
        ("abcd", "acxb", 3 / 4),
        ("ab", "abcd", 2 / 4),
        ("ab", "xy", 0.0),
        ("ab", "", 0.0),
        ("", "", 1.0),
    ],
)
def test_overlap(one: str, other: str, expected: float) -> None:
    assert overlap(one, other) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("one", "other", "p", "expected"),
    [
        # X = 1, 1, 3: (0.9 * 1 + 0.81 * 1/2 + 0.729 * 1) / 9 + 1 * 0.729
        ("abc", "acb", 0.9, 0.955),
        # X = 0, 2: (0.81 * 1) / 9 + 1 * 0.81
        ("ab", "ba", 0.9, 0.9),
        # X = 0, 1: (0.25 * 1/2) * 1 + 1/2 * 0.25
        ("ab", "cb", 0.5, 0.0625 + 0.1875),
        # X = 1, 1 and s = 1: (0.5 * 1 + 0.25 * 1/2 + 1 * (2 - 1) / (1 * 2) * 0.25) * 1 + ((1 - 1) / 2 + 1) * 0.25
        ("a", "ab", 0.5, 1.0),
        # X = 0, 1 and s = 1: (0.25 * 1/2 + 0) * 1 + ((1 - 0) / 2 + 0) * 0.25
        ("b", "ab", 0.5, 0.25),
        ("abc", "xyz", 0.9, 0.0),
        ("abc", "", 0.9, 0.0),
        ("", "", 0.9, 1.0),
    ],
)
def test_rank_biased_overlap(one: str, other: str, p: float, expected: float) -> None:
    assert rank_biased_overlap(one, other, p=p) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("abcd", "abcd", 1.0),
        ("abcd", "dcba", -1.0),
        # one of (a b) (a c) (b c) is reversed
        ("abc", "acb", 1 / 3),
        # only b and d are common
        ("abd", "dxb", -1.0),
        ("abc", "axy", None),
        ("", "", None),
    ],
)
def test_kendall_tau(one: str, other: str, expected: float | None) -> None:
    assert kendall_tau(one, other) == (None if expected is None else pytest.approx(expected))


@given(RANKINGS, RANKINGS)
def test_both_rankings_count_alike_and_only_equal_ones_agree_wholly(one: list[str], other: list[str]) -> None:
    agreement = rank_biased_overlap(one, other)
    assert agreement == pytest.approx(rank_biased_overlap(other, one))
    assert overlap(one, other) == overlap(other, one)
    assert kendall_tau(one, other) == kendall_tau(other, one)
    assert -1e-9 <= agreement <= 1 + 1e-9
    assert rank_biased_overlap(one, one) == pytest.approx(1)
    if len(one) == len(other) and one != other:
        assert agreement < 1 - 1e-6


@given(RANKINGS.filter(lambda ranking: len(ranking) > 2))
def test_a_change_further_up_weighs_more(ranking: list[str]) -> None:
    """Swapping two neighbours costs more at higher ranks."""
    agreements = []
    for at in range(len(ranking) - 1):
        changed = [*ranking[:at], ranking[at + 1], ranking[at], *ranking[at + 2 :]]
        agreements.append(rank_biased_overlap(ranking, changed))
    assert all(above < below for above, below in pairwise(agreements))
