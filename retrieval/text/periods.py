"""What a query says of time: "in June 2023", "last week", "since May".

Precision comes before recall: a period that nobody meant prefers memories for nothing, and the words of one that
is not seen are searched all the same. English only; the northern hemisphere's seasons; weeks begin on Monday.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from graph.dates import MONTHS
from retrieval.text.calendar_terms import Period, period_terms
from retrieval.text.period_parts import range_at, stretch_at
from retrieval.text.period_tokens import SEASONS, WEEKDAYS, Stretch, Tokens, midnight, shift

__all__ = ["Period", "find_periods", "period_terms"]

_TRIGGERS = frozenset(
    {*MONTHS, *SEASONS, *WEEKDAYS, "ago", "last", "past", "this", "next", "today", "tonight", "yesterday", "tomorrow"}
    | {"recently", "lately"}
)
_DIGIT, _WORD = re.compile(r"[0-9]"), re.compile(r"\w+")
_FROM = frozenset({"since", "after"})
_UNTIL = frozenset({"before", "until", "till", "by"})
_YEARS = range(2, 9998)  # so that no time zone leads out of the calendar


def find_periods(query: str, *, asked_at: datetime) -> list[Period]:
    """The times that an English query speaks of, in order of where they stand; none overlaps another.

    "Since" and "after" go on to the end of the day of asking, "before" and "until" have no start. A day without a
    year is the last of its kind, or the next within a month; "in June" is every June. "Recently" counts where
    nothing else is said.

    Args:
        query: any text; the time taken grows with its length.
        asked_at: when it is asked; the periods are in its time zone, UTC if it has none.

    >>> [str(p) for p in find_periods("Where did she go in June 2023?", asked_at=datetime(2024, 1, 1))]
    ['2023-06-01T00:00+00:00/2023-07-01T00:00+00:00']
    >>> find_periods("May I march past the last house?", asked_at=datetime(2024, 1, 1))
    []
    """
    # The same question as the next one, asked of plain text in a fifth of the time.
    if query.isascii() and not _DIGIT.search(query) and _TRIGGERS.isdisjoint(_WORD.findall(query.lower())):
        return []
    tokens = Tokens(query)
    if not any(token.low in _TRIGGERS or token.text[0].isdecimal() for token in tokens.all):
        return []
    zone = asked_at.tzinfo or UTC
    now = asked_at.replace(tzinfo=None, fold=0)
    found: list[tuple[Stretch, Period]] = []
    at = 0
    while at < len(tokens.all):
        try:
            stretch = _period_at(tokens, at, now)
        except (ValueError, OverflowError):
            stretch = None  # 30 February, or out of the calendar
        if stretch is None:
            at += 1
            continue
        if all(moment is None or moment.year in _YEARS for moment in stretch[:2]):
            span = (tokens[at].start, tokens[stretch.stop - 1].end)
            start, end = (moment and moment.replace(tzinfo=zone) for moment in stretch[:2])
            found.append((stretch, Period(start=start, end=end, month=stretch.month, span=span)))
        at = stretch.stop
    clear = [period for stretch, period in found if not stretch.vague]
    return clear or [period for _, period in found]


def _period_at(tokens: Tokens, at: int, now: datetime) -> Stretch | None:
    word = tokens.low(at)
    if word in {"between", "from"} and (both := range_at(tokens, at, now)):
        return both
    if word in _FROM or word in _UNTIL:
        return _open(tokens, at, now)
    if word == "to" and tokens.low(at - 1) == "prior":
        return _open(tokens, at, now)
    return stretch_at(tokens, at, now)


def _open(tokens: Tokens, at: int, now: datetime) -> Stretch | None:
    """A time open to a side: "since May", "before June 3, 2023"."""
    word = "before" if tokens.low(at) == "to" else tokens.low(at)
    inner_at = tokens.after(at + 1, "the")
    led = tokens.low(at) == "to" or (word in _FROM and tokens.low(inner_at) in WEEKDAYS)
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
    # What is to be done by next week is no matter of all that was.
    return inner._replace(start=midnight(now) if end and end > tomorrow else None, end=end)


def _latest(stretch: Stretch, month: int, now: datetime, *, over: bool) -> Stretch:
    """The last such month that has begun, or is over."""
    start = datetime(now.year, month, 1)
    while (shift(start, "month", 1) if over else start) > now:
        start = shift(start, "year", -1)
    return stretch._replace(start=start, end=shift(start, "month", 1), month=None)
