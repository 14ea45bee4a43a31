"""Invariants of periods, for any query at any time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.text.time.periods import find_periods
from tests.hanging import bounded

ZONES = st.integers(-14 * 4, 14 * 4).map(lambda quarters: timezone(timedelta(minutes=15 * quarters)))
MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=ZONES)
WORDS = (
    "May may march June sept. Tuesday summer winter last past this next the a of in on since before after between from"
    " to and until by early mid end first half week weeks month year years days ago 3 3rd 12 2022 1999 2023-05-03"
    " 5/3/2023 13/5/2023 q3 , . - yesterday today recently two couple few 29 31 30 February quarter every morning 's"
)
QUERIES = st.lists(st.sampled_from(WORDS.split()), max_size=40).map(" ".join)
LONGEST = 8_192


@given(st.one_of(QUERIES, st.text(max_size=LONGEST)), st.datetimes(timezones=ZONES | st.none()))
def test_periods_stand_in_the_text_one_after_the_other(query: str, asked_at: datetime) -> None:
    periods = find_periods(query, asked_at=asked_at)
    ends = [0, *(end for _, end in (period.span for period in periods))]
    assert all(before <= period.span[0] < period.span[1] for before, period in zip(ends, periods, strict=False))
    assert ends[-1] <= len(query)
    for period in periods:
        assert period.month is not None or period.start is not None or period.end is not None
        assert period.start is None or period.end is None or period.start < period.end
    assert periods == find_periods(query, asked_at=asked_at)


@given(QUERIES, MOMENTS)
def test_what_follows_a_sentence_does_not_move_its_times(query: str, asked_at: datetime) -> None:
    alone = find_periods(f"{query} .", asked_at=asked_at)
    followed = find_periods(f"{query} . Who sang then?", asked_at=asked_at)
    assert alone == followed


REPEATED = (
    "1|,|'s|the |last |a couple of |May |May 3 |3 of |2023-05-|5/3/|from May to |Tuesday and |between |since "
    "|the first week of |last week before |two weeks before May 3 - "
)


@pytest.mark.parametrize("unit", REPEATED.split("|"))
def test_repetitions_do_not_take_for_ever(unit: str) -> None:
    asked_at = datetime(2023, 6, 15, tzinfo=UTC)
    query = (unit * LONGEST)[:LONGEST]
    with bounded():
        find_periods(query, asked_at=asked_at)
