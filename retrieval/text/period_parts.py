"""Times made of times: the end of May 2023, the first two weeks of last year, from April to June 2023."""

from __future__ import annotations

from datetime import datetime, timedelta

from retrieval.text.period_dates import date_at
from retrieval.text.period_distances import distance_at
from retrieval.text.period_relative import relative_at
from retrieval.text.period_tokens import UNITS, Stretch, Tokens, midnight, shift

_QUARTERS = {"early": (0, 2), "beginning": (0, 2), "start": (0, 2), "first": (0, 2), "mid": (1, 3), "middle": (1, 3)}
_QUARTERS |= {"late": (2, 4), "end": (2, 4), "second": (2, 4), "last": (2, 4)}
_ALONE = frozenset({"early", "mid", "late"})
_NOW = frozenset({"now", "present", "date"})


def stretch_at(tokens: Tokens, at: int, now: datetime, *, led: bool = False) -> Stretch | None:
    """The time that begins at a token: a part of one, or a whole one.

    Args:
        tokens: of the text.
        at: position.
        now: local time of the asker.
        led: whether what stands before it says that a month, year or weekday alone is a time.

    Raises:
        ValueError: there is no such day.
        OverflowError: out of the calendar.

    >>> found = stretch_at(Tokens("the last week of May 2023"), 1, datetime(2024, 1, 1))
    >>> found.start, found.end
    (datetime.datetime(2023, 5, 25, 0, 0), datetime.datetime(2023, 6, 1, 0, 0))
    """
    return _part(tokens, at, now) or distance_at(tokens, at, now) or _whole(tokens, at, now, led)


def range_at(tokens: Tokens, at: int, now: datetime) -> Stretch | None:
    """The time from the one date to the other, where "from" or "between" stands at a token; as `stretch_at`.

    >>> found = range_at(Tokens("between April and May 2023"), 0, datetime(2024, 1, 1))
    >>> found.start, found.end
    (datetime.datetime(2023, 4, 1, 0, 0), datetime.datetime(2023, 6, 1, 0, 0))
    """
    to = {"-", "–", "and"} if tokens.low(at) == "between" else {"-", "–", "to", "until", "till", "through"}
    first_at = tokens.after(at + 1, "the")
    first = _whole(tokens, first_at, now, led=True)
    if first is None or first.vague or tokens.low(first.stop) not in to:
        return None
    second_at = tokens.after(first.stop + 1, "the")
    if tokens.low(second_at) in _NOW:
        second: Stretch | None = Stretch(midnight(now), shift(midnight(now), "day", 1), second_at + 1)
    else:
        second = _whole(tokens, second_at, now, led=True)
    if second and second.yearless:
        # After the first date if that says its year, else the last that has begun.
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


def _whole(tokens: Tokens, at: int, now: datetime, led: bool) -> Stretch | None:
    return relative_at(tokens, at, now, led=led) or date_at(tokens, at, now, led=led)


def _part(tokens: Tokens, at: int, now: datetime) -> Stretch | None:
    """Half of a time ("early", "the end of"), or some of its days, weeks or months ("the last two weeks of")."""
    word = tokens.low(at)
    if word not in _QUARTERS or tokens.in_title(at):
        return None
    if word in {"first", "second", "last"} and tokens.low(at + 1) != "half":
        return _some(tokens, at, now)
    after = tokens.after(at + 1, "half")
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


def _some(tokens: Tokens, at: int, now: datetime) -> Stretch | None:
    word, count = tokens.low(at), tokens.count(at + 1) or (1, 1, at + 1)
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
