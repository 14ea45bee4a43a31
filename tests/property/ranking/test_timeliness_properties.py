"""Invariants of the order of memories when a query names a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from numpy.typing import NDArray

from retrieval.ranking.candidates import Candidates, RankedCandidates
from retrieval.ranking.fusion import FusedOrder
from retrieval.ranking.timeliness import PERIOD_SHARE, NamedTime, joined
from retrieval.types.search import Leg
from tests.rankings import ranking_of

SLOTS = 12
FLAGS = st.lists(st.booleans(), min_size=SLOTS, max_size=SLOTS).map(lambda flags: np.array(flags, np.bool_))
SCORES = st.lists(st.floats(0.01, 1), min_size=1, max_size=SLOTS).map(lambda scores: sorted(scores, reverse=True))


def ranked(scores: list[float]) -> tuple[RankedCandidates, Candidates]:
    """Candidates in slots of their numbers, best first."""
    ranking = ranking_of((f"m{slot:02}", slot, score) for slot, score in enumerate(scores))
    candidates = Candidates.from_rankings({Leg.BM25: ranking})
    numbers = list(range(len(scores)))
    return RankedCandidates(numbers, scores, FusedOrder(numbers, scores)), candidates


@given(SCORES, FLAGS, st.booleans(), st.floats(0, 5))
def test_the_order_keeps_all_and_never_changes_within_a_time(
    scores: list[float], of_time: NDArray[np.bool_], alone: bool, weight: float
) -> None:
    before, candidates = ranked(scores)
    nobody = np.zeros(SLOTS, np.bool_)
    after = NamedTime(of_time, nobody, alone, in_session=False, weight=weight).first(before, candidates)
    assert sorted(after.numbers) == before.numbers
    bonus = weight * (1.0 if alone else PERIOD_SHARE) * scores[0]
    raised = [score + bonus * in_time for score, in_time in zip(scores, of_time, strict=False)]
    assert after.scores == pytest.approx(sorted(raised, reverse=True))
    for of_it in (True, False):
        assert [n for n in after.numbers if of_time[n] == of_it] == [n for n in before.numbers if of_time[n] == of_it]


@given(SCORES, FLAGS)
def test_a_query_for_a_time_alone_gets_that_time_first(scores: list[float], of_time: NDArray[np.bool_]) -> None:
    before, candidates = ranked(scores)
    after = NamedTime(of_time, np.zeros(SLOTS, np.bool_), alone=True, in_session=False, weight=1.0).first(
        before, candidates
    )
    inside = [bool(of_time[number]) for number in after.numbers]
    assert inside == sorted(inside, reverse=True)


@given(SCORES, FLAGS, st.integers(1, SLOTS))
def test_what_a_leg_found_of_the_time_is_kept_and_the_rest_fills_up(
    scores: list[float], of_time: NDArray[np.bool_], count: int
) -> None:
    ranking = ranking_of((f"m{slot:02}", slot, score) for slot, score in enumerate(scores))
    then = np.flatnonzero(of_time[: len(scores)])[:count]
    inside = structs.replace(ranking, docs=ranking.docs[then], scores=ranking.scores[then])
    found = joined(ranking.cut(count), inside, count).hits
    assert set(inside.hits) <= set(found)
    assert len(found) == len(set(found)) <= count
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
