"""Which memories belong to a query's periods, moment by moment."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from retrieval.index.columns import microseconds
from retrieval.legs.query_terms import in_periods
from retrieval.text.time.periods import Period

ZONES = st.integers(-14 * 4, 14 * 4).map(lambda quarters: timezone(timedelta(minutes=15 * quarters)))
MOMENTS = st.datetimes(datetime(1999, 1, 1), datetime(2001, 1, 1), timezones=ZONES) | st.datetimes(
    datetime(1, 1, 3), datetime(9999, 12, 29), timezones=ZONES
)
PERIODS = st.one_of(
    st.builds(Period, start=st.none() | MOMENTS, end=st.none() | MOMENTS),
    st.integers(1, 12).map(lambda month: Period(start=None, end=None, month=month)),
)


def is_in(moment: datetime, period: Period, grace: timedelta) -> bool:
    if period.month is not None:
        return moment.astimezone(UTC).month == period.month
    return (period.start is None or period.start <= moment) and (period.end is None or moment < period.end + grace)


@given(st.lists(MOMENTS), st.lists(PERIODS, max_size=3), st.sampled_from([timedelta(0), timedelta(days=1)]))
def test_a_moment_is_in_a_period_or_the_grace_after_it(
    moments: Sequence[datetime], periods: Sequence[Period], grace: timedelta
) -> None:
    """The bounds too, of which the first is in it and the last is not; months are those in UTC."""
    moments = [*moments, *(bound for period in periods for bound in (period.start, period.end) if bound is not None)]
    created = np.array([*map(microseconds, moments)], np.int64)
    expected = [any(is_in(moment, period, grace) for period in periods) for moment in moments]
    assert in_periods(created, periods, grace=grace).tolist() == expected
