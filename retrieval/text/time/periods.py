"""Finds the time expressions of a query: "in June 2023", "last week", "since May".

Precision is preferred to recall: a wrong period boosts the wrong memories, while the words of a missed one are still
searched. English only; seasons of the northern hemisphere; weeks start on Monday.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from graph.dates import MONTHS
from retrieval.text.time.calendar_terms import Period, period_terms
from retrieval.text.time.parts import range_at, stretch_at
from retrieval.text.time.tokens import SEASONS, WEEKDAYS, Stretch, TimeTokens, midnight, shift

__all__ = ["Period", "find_periods", "period_terms"]

_TRIGGERS = frozenset(
    {*MONTHS, *SEASONS, *WEEKDAYS, "ago", "last", "past", "this", "next", "today", "tonight", "yesterday", "tomorrow"}
    | {"recently", "lately"}
)
_DIGIT, _WORD = re.compile(r"[0-9]"), re.compile(r"\w+")
_FROM = frozenset({"since", "after"})
_UNTIL = frozenset({"before", "until", "till", "by"})
_YEARS = range(2, 9998)  # so that no time zone leads outside the calendar


def find_periods(query: str, *, asked_at: datetime) -> list[Period]:
    """The periods in an English query, in text order, without overlaps.

    "Since" and "after" extend to the end of the day of asking; "before" and "until" have no start. A day without a year
    is the last such day, or the next one if that is within a month; "in June" is every June. "Recently" counts only if
    there is no other period.

    Args:
        query: any text; takes time linear in its length.
        asked_at: time of asking; the periods are in its time zone, or UTC if it is naive.

    >>> [str(p) for p in find_periods("Where did she go in June 2023?", asked_at=datetime(2024, 1, 1))]
    ['2023-06-01T00:00+00:00/2023-07-01T00:00+00:00']
    >>> find_periods("May I march past the last house?", asked_at=datetime(2024, 1, 1))
    []
    """
    # The same test as the next one, five times as fast for plain text.
    if query.isascii() and not _DIGIT.search(query) and _TRIGGERS.isdisjoint(_WORD.findall(query.lower())):
        return []
    tokens = TimeTokens(query)
    if not any(token.low in _TRIGGERS or token.text[0].isdecimal() for token in tokens.all):
        return []
    zone = asked_at.tzinfo or UTC
    now = asked_at.replace(tzinfo=None, fold=0)
    found: list[tuple[Stretch, Period]] = []
    position = 0
    while position < len(tokens.all):
        try:
            stretch = _period_at(tokens, position, now)
        except (ValueError, OverflowError):
            stretch = None  # 30 February, or outside the calendar
        if stretch is None:
            position += 1
            continue
        if all(moment is None or moment.year in _YEARS for moment in stretch[:2]):
            span = (tokens[position].start, tokens[stretch.stop - 1].end)
            start, end = (moment and moment.replace(tzinfo=zone) for moment in stretch[:2])
            found.append((stretch, Period(start=start, end=end, month=stretch.month, span=span)))
        position = stretch.stop
    clear = [period for stretch, period in found if not stretch.vague]
    return clear or [period for _, period in found]


def _period_at(tokens: TimeTokens, position: int, now: datetime) -> Stretch | None:
    word = tokens.low(position)
    if word in {"between", "from"} and (both := range_at(tokens, position, now)):
        return both
    if word in _FROM or word in _UNTIL:
        return _open(tokens, position, now)
    if word == "to" and tokens.low(position - 1) == "prior":
        return _open(tokens, position, now)
    return stretch_at(tokens, position, now)


def _open(tokens: TimeTokens, position: int, now: datetime) -> Stretch | None:
    """A time with an open side: "since May", "before June 3, 2023"."""
    word = "before" if tokens.low(position) == "to" else tokens.low(position)
    inner_at = tokens.after(position + 1, "the")
    led = tokens.low(position) == "to" or (word in _FROM and tokens.low(inner_at) in WEEKDAYS)
    inner = stretch_at(tokens, inner_at, now, led=led)
    if inner is None or inner.vague:
        return None
    if inner.month is not None:
        inner = _latest(inner, inner.month, now, over=word == "after")
    tomorrow = shift(midnight(now), "day", 1)
    if word in _FROM:
        start = inner.start if word == "since" else inner.end
        return inner._replace(start=start, end=tomorrow if start and start < tomorrow else None)
    end = inner.start if word == "before" else inner.end
    # "By next week" is a deadline, not a period that covers all of the past.
    return inner._replace(start=midnight(now) if end and end > tomorrow else None, end=end)


def _latest(stretch: Stretch, month: int, now: datetime, *, over: bool) -> Stretch:
    """The last such month that has begun, or (`over`) has ended."""
    start = datetime(now.year, month, 1)
    while (shift(start, "month", 1) if over else start) > now:
        start = shift(start, "year", -1)
    return stretch._replace(start=start, end=shift(start, "month", 1), month=None)
