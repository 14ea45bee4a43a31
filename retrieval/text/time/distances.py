"""Times given by a distance: two weeks ago, the day before yesterday, three days after May 3."""

from __future__ import annotations

from datetime import datetime, timedelta

from retrieval.text.time.dates import date_at
from retrieval.text.time.tokens import UNITS, Stretch, TimeTokens, containing, midnight, shift

_SIDES = {"before": -1, "after": 1}
_SLACK = {"minute": timedelta(minutes=5), "hour": timedelta(minutes=30)}


def distance_at(tokens: TimeTokens, position: int, now: datetime) -> Stretch | None:
    """The time that starts at a token and is a number of days, weeks, months or years away from now or a date.

    It is as wide as its unit: "two weeks ago" is the seven days around that day.

    Raises:
        ValueError: there is no such day.
        OverflowError: the date is outside the calendar.

    >>> found = distance_at(TimeTokens("two weeks ago"), 0, datetime(2023, 6, 15, 18, 30))
    >>> found.start, found.end
    (datetime.datetime(2023, 5, 29, 0, 0), datetime.datetime(2023, 6, 5, 0, 0))
    """
    article = tokens.low(position) == "the"
    counted = (1, 1, position + 1) if article else tokens.count(position)
    unit = UNITS.get(tokens.low(counted[2])) if counted else None
    if counted is None or unit is None:
        return None
    low, high, after = counted
    side = tokens.low(after + 1)
    if side == "ago" and not article and unit not in {"weekend", "quarter"}:
        return _away(now, unit, -high, -low, after + 2)
    if article and unit == tokens.low(after) and unit not in {"hour", "minute"}:
        return _beside(tokens, after, now, unit)
    if side in _SIDES and unit in {"day", "week", "month", "year"}:
        date = date_at(tokens, after + 2, now)
        if date is None or date.start is None or date.end is None:
            return None
        if side == "before":
            return _away(date.start, unit, -high, -low, date.stop)
        last = shift(date.end, "day", -1)
        return _away(last, unit, low, high, date.stop)
    return None


def _beside(tokens: TimeTokens, position: int, now: datetime, unit: str) -> Stretch | None:
    """A unit next to a date: "the week before May 3", "the week of May 3", "the year before last"."""
    side, then = tokens.low(position + 1), tokens.low(position + 2)
    if unit == "day" and (side, then) in {("before", "yesterday"), ("after", "tomorrow")}:
        start = shift(midnight(now), "day", 2 * _SIDES[side])
        return Stretch(start, shift(start, "day", 1), position + 3)
    if unit != "day" and (side, then) == ("before", "last"):
        start = shift(containing(now, unit), unit, -2)
        return Stretch(start, _end(start, unit), position + 3)
    if side not in {"before", "after", "of"}:
        return None
    date = date_at(tokens, position + 2, now)
    if date is None or date.start is None or date.end is None:
        return None
    if side == "of":
        if unit not in {"week", "weekend"} or date.end - date.start > timedelta(days=7):
            return None
        start = containing(date.start, unit)
    elif unit == "weekend":
        # A week ends with its weekend: the weekend before is never that of the date's own week.
        last = shift(date.end, "day", -1)
        own = containing(last, unit)
        start = containing(date.start, unit) - timedelta(days=7)
        if side == "after":
            start = own if own > last else own + timedelta(days=7)
    else:
        start = date.end if side == "after" else shift(date.start, unit, -1)
    return Stretch(start, _end(start, unit), date.stop)


def _end(start: datetime, unit: str) -> datetime:
    return start + timedelta(days=2) if unit == "weekend" else shift(start, unit, 1)


def _away(base: datetime, unit: str, low: int, high: int, stop: int) -> Stretch:
    """The span between two distances in units; negative numbers lie before `base`."""
    first, last = shift(base, unit, low), shift(base, unit, high)
    if unit in _SLACK:
        return Stretch(first - _SLACK[unit], last + _SLACK[unit], stop)
    first, last = midnight(first), shift(midnight(last), "day", 1)
    if unit == "year":
        return Stretch(shift(first, "month", -6), shift(last, "month", 6), stop)
    days = timedelta(days={"day": 0, "week": 3, "month": 15}[unit])
    return Stretch(first - days, last + days, stop)
