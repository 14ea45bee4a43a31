"""Parts and ranges of times: the end of May 2023, the first two weeks of last year, from April to June 2023."""

from __future__ import annotations

from datetime import datetime, timedelta

from retrieval.text.time.dates import date_at
from retrieval.text.time.distances import distance_at
from retrieval.text.time.relative import relative_at
from retrieval.text.time.tokens import UNITS, Stretch, TimeTokens, midnight, shift

_QUARTERS = {"early": (0, 2), "beginning": (0, 2), "start": (0, 2), "first": (0, 2), "mid": (1, 3), "middle": (1, 3)}
_QUARTERS |= {"late": (2, 4), "end": (2, 4), "second": (2, 4), "last": (2, 4)}
_ALONE = frozenset({"early", "mid", "late"})
_NOW = frozenset({"now", "present", "date"})


def stretch_at(tokens: TimeTokens, position: int, now: datetime, *, led: bool = False) -> Stretch | None:
    """The time that starts at a token: whole, or a part of one.

    Args:
        tokens: of the text.
        position: index of the token.
        now: local time of the asker.
        led: whether the preceding words make a month, year or weekday alone a time.

    Raises:
        ValueError: there is no such day.
        OverflowError: the date is outside the calendar.

    >>> found = stretch_at(TimeTokens("the last week of May 2023"), 1, datetime(2024, 1, 1))
    >>> found.start, found.end
    (datetime.datetime(2023, 5, 25, 0, 0), datetime.datetime(2023, 6, 1, 0, 0))
    """
    return _part(tokens, position, now) or distance_at(tokens, position, now) or _whole(tokens, position, now, led)


def range_at(tokens: TimeTokens, position: int, now: datetime) -> Stretch | None:
    """The range that starts with "from" or "between" at a token; otherwise like `stretch_at`.

    >>> found = range_at(TimeTokens("between April and May 2023"), 0, datetime(2024, 1, 1))
    >>> found.start, found.end
    (datetime.datetime(2023, 4, 1, 0, 0), datetime.datetime(2023, 6, 1, 0, 0))
    """
    to = {"-", "–", "and"} if tokens.low(position) == "between" else {"-", "–", "to", "until", "till", "through"}
    first_at = tokens.after(position + 1, "the")
    first = _whole(tokens, first_at, now, led=True)
    if first is None or first.vague or tokens.low(first.stop) not in to:
        return None
    second_at = tokens.after(first.stop + 1, "the")
    if tokens.low(second_at) in _NOW:
        second: Stretch | None = Stretch(midnight(now), shift(midnight(now), "day", 1), second_at + 1)
    else:
        second = _whole(tokens, second_at, now, led=True)
    if second and second.yearless:
        # The second date is after the first if that has a year, else the last one that has begun.
        year = now.year if first.yearless or first.start is None else first.start.year
        second = date_at(tokens, second_at, now, led=True, year=year)
        if second and second.start and first.yearless and second.start > now:
            second = date_at(tokens, second_at, now, led=True, year=year - 1)
        elif second and second.start and first.start and not first.yearless and second.start < first.start:
            second = date_at(tokens, second_at, now, led=True, year=year + 1)
    if first.yearless and second and second.start:
        year = second.start.year
        first = date_at(tokens, first_at, now, led=True, year=year)
        if first and first.start and first.start > second.start:
            first = date_at(tokens, first_at, now, led=True, year=year - 1)
    if first and second and first.start and second.end and first.start < second.end:
        return Stretch(first.start, second.end, second.stop)
    return None


def _whole(tokens: TimeTokens, position: int, now: datetime, led: bool) -> Stretch | None:
    return relative_at(tokens, position, now, led=led) or date_at(tokens, position, now, led=led)


def _part(tokens: TimeTokens, position: int, now: datetime) -> Stretch | None:
    """Half of a time ("early", "the end of"), or some of its days, weeks or months ("the last two weeks of")."""
    word = tokens.low(position)
    if word not in _QUARTERS or tokens.in_title(position):
        return None
    if word in {"first", "second", "last"} and tokens.low(position + 1) != "half":
        return _some(tokens, position, now)
    after = tokens.after(position + 1, "half")
    if tokens.low(after) == "of":
        inner = _whole(tokens, tokens.after(after + 1, "the"), now, led=True)
    elif word in _ALONE:
        after = tokens.after(after, "in", "-")
        inner = _whole(tokens, after, now, led=tokens.low(after - 1) == "-")
    else:
        return None
    if inner is None or inner.start is None or inner.end is None or inner.end - inner.start < timedelta(days=2):
        return inner
    low, high = _QUARTERS[word]
    quarter = (inner.end - inner.start) / 4
    end = inner.end if high == 4 else midnight(inner.start + high * quarter)
    return inner._replace(start=midnight(inner.start + low * quarter), end=end)


def _some(tokens: TimeTokens, position: int, now: datetime) -> Stretch | None:
    word, count = tokens.low(position), tokens.count(position + 1) or (1, 1, position + 1)
    _, number, after = count
    unit = UNITS.get(tokens.low(after), "minute")
    if word == "second" or unit in {"minute", "hour", "weekend"} or tokens.low(after + 1) != "of":
        return None
    inner = _whole(tokens, tokens.after(after + 2, "the"), now, led=True)
    if inner is None or inner.start is None or inner.end is None:
        return inner
    if word == "first":
        return inner._replace(end=min(shift(inner.start, unit, number), inner.end))
    return inner._replace(start=max(shift(inner.end, unit, -number), inner.start))
