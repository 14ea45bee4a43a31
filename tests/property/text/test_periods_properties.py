"""What holds of periods and their terms whatever is asked, and whenever."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.text.time.periods import MAX_TERMS, Period, calendar_terms, find_periods, period_terms
from tests.hanging import bounded

ZONES = st.integers(-14 * 4, 14 * 4).map(lambda quarters: timezone(timedelta(minutes=15 * quarters)))
MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=ZONES)
LENGTHS = st.one_of(
    st.timedeltas(timedelta(microseconds=1), timedelta(days=70)),
    st.timedeltas(timedelta(days=30), timedelta(days=365 * 40)),
)
WORDS = (
    "May may march June sept. Tuesday summer winter last past this next the a of in on since before after between from"
    " to and until by early mid end first half week weeks month year years days ago 3 3rd 12 2022 1999 2023-05-03"
    " 5/3/2023 13/5/2023 q3 , . - yesterday today recently two couple few 29 31 30 February quarter every morning 's"
)
QUERIES = st.lists(st.sampled_from(WORDS.split()), max_size=40).map(" ".join)
LONGEST = 8_192


def finite(start: datetime, length: timedelta) -> Period:
    return Period(start=start, end=start + length)


def matches(moment: datetime, period: Period) -> bool:
    return not set(calendar_terms(moment)).isdisjoint(period_terms(period))


@given(MOMENTS, LENGTHS, st.floats(0, 1, exclude_max=True))
def test_a_moment_inside_shares_a_term(start: datetime, length: timedelta, part: float) -> None:
    moment = start + length * part
    period = finite(start, length)
    assert moment not in period or matches(moment.astimezone(UTC), period)


@given(MOMENTS, LENGTHS, st.timedeltas(timedelta(days=31), timedelta(days=365 * 50)))
def test_a_moment_far_outside_shares_none(start: datetime, length: timedelta, away: timedelta) -> None:
    period = finite(start, length)
    assert not matches(start - away - timedelta(seconds=1), period)
    assert not matches(start + length + away, period)


@given(MOMENTS, st.timedeltas(timedelta(0), timedelta(days=365 * 50)))
def test_an_open_side_reaches_fifty_years(moment: datetime, away: timedelta) -> None:
    assert matches(moment - away - timedelta(seconds=1), Period(start=None, end=moment))
    assert not matches(moment + timedelta(days=31) + away, Period(start=None, end=moment))
    assert matches(moment + away, Period(start=moment, end=None))
    assert not matches(moment - timedelta(days=31, seconds=1) - away, Period(start=moment, end=None))


@given(MOMENTS, st.integers(1, 12))
def test_a_month_of_every_year_holds_its_moments_only(moment: datetime, month: int) -> None:
    utc = moment.astimezone(UTC)
    period = Period(start=None, end=None, month=month)
    assert matches(moment, period) == (utc.month == month) == (utc in period)


@given(MOMENTS, LENGTHS)
def test_terms_are_few_distinct_and_in_order(start: datetime, length: timedelta) -> None:
    for period in (finite(start, length), Period(start=start, end=None), Period(start=None, end=start)):
        terms = period_terms(period)
        assert 0 < len(terms) <= MAX_TERMS
        assert len(set(terms)) == len(terms)
        assert list(terms) == sorted(terms)


@given(st.one_of(QUERIES, st.text(max_size=LONGEST)), st.datetimes(timezones=ZONES | st.none()))
def test_periods_stand_in_the_text_one_after_the_other(query: str, asked_at: datetime) -> None:
    periods = find_periods(query, asked_at=asked_at)
    ends = [0, *(end for _, end in (period.span for period in periods))]
    assert all(before <= period.span[0] < period.span[1] for before, period in zip(ends, periods, strict=False))
    assert ends[-1] <= len(query)
    for period in periods:
        assert period.month is not None or period.start is not None or period.end is not None
        assert period.start is None or period.end is None or period.start < period.end
        assert 0 < len(period_terms(period)) <= MAX_TERMS
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
