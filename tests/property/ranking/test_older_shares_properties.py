"""Invariants of the shares of older memories, for any scores and times."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.ranking.timeliness import older_shares

MEMORIES = st.lists(st.tuples(st.floats(1e-6, 1.0), st.integers(-3, 3)), max_size=40)


def shares(memories: list[tuple[float, int]], side: int = 1) -> list[float]:
    scores, times = [score for score, _ in memories], [side * time for _, time in memories]
    return [*map(float, older_shares(np.array(scores, np.float64), np.array(times, np.int64)))]


@given(MEMORIES)
def test_they_are_what_pairs_say(memories: list[tuple[float, int]]) -> None:
    for i, (share, (_, time)) in enumerate(zip(shares(memories), memories, strict=True)):
        others = [each for j, each in enumerate(memories) if j != i]
        older = sum(score * (1.0 if other < time else 0.5 if other == time else 0.0) for score, other in others)
        expected = older / sum(score for score, _ in others) if others else 0.0
        assert share == pytest.approx(expected, abs=1e-6)


@given(MEMORIES)
def test_older_and_newer_are_all_others(memories: list[tuple[float, int]]) -> None:
    both = np.add(shares(memories), shares(memories, -1))
    assert both == pytest.approx(np.full(len(memories), 1.0 if len(memories) > 1 else 0.0), abs=1e-6)


@given(MEMORIES)
def test_of_equal_scores_the_newer_has_more(memories: list[tuple[float, int]]) -> None:
    found = shares([(0.5, time) for _, time in memories])
    order = np.argsort([time for _, time in memories], kind="stable")
    assert (np.diff(np.array(found)[order]) >= -1e-9).all()
