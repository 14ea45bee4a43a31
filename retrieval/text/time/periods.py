"""Finds the time expressions of a query: "in June 2023", "last week", "since May".

Precision is preferred to recall: a wrong period boosts the wrong memories, while the words of a missed one are still
searched. English, and for other languages what `graph/data/times.txt` has; seasons of the northern hemisphere; weeks
start on Monday.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from graph.dates import MONTHS
from retrieval.text.time.dates import AND, TO, date_at
from retrieval.text.time.other_languages import FIRST_WORDS
from retrieval.text.time.parts import named_at, range_at, stretch_at
from retrieval.text.time.tokens import (
    SEASONS,
    SHORT_WEEKDAYS,
    WEEKDAYS,
    Stretch,
    TimeTokens,
    containing,
    midnight,
    shift,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A time expression in a text.

    Attributes:
        start: first moment; None if open, or for a month of every year.
        end: first moment after the period; None if open, or for a month of every year.
        month: 1 to 12 for that month of every year, else None.
        span: character range of the expression in the text, end exclusive.
        vague: whether it is an indefinite time, such as "recently".
    """

    start: datetime | None
    end: datetime | None
    month: int | None = None
    span: tuple[int, int] = (0, 0)
    vague: bool = False

    def __str__(self) -> str:
        """An ISO 8601 interval with `..` for an open side, or the month."""
        if self.month is not None:
            return f"--{self.month:02}"
        return "/".join(moment.isoformat(timespec="minutes") if moment else ".." for moment in (self.start, self.end))


_TRIGGERS = frozenset(
    {*MONTHS, *SEASONS, *WEEKDAYS, *map(str.lower, SHORT_WEEKDAYS)}
    | {"ago", "last", "past", "this", "next", "today", "tonight", "yesterday", "tomorrow"}
    | {"recently", "lately", "earlier", "previous", "weekend", "other", "back", "beginning", "start"}
    | {"q1", "q2", "q3", "q4"}
    | FIRST_WORDS
)
MOST_PERIODS = 16
"""Most periods of a query that count, as all memories are compared with each."""

_DIGIT, _WORD = re.compile(r"[0-9]"), re.compile(r"\w+")
_FROM = frozenset({"since", "after"})
_UNTIL = frozenset({"before", "until", "till", "by"})
_YEARS = range(2, 9998)  # so that no time zone leads outside the calendar


def find_periods(query: str, *, asked_at: datetime) -> list[Period]:
    """The first `MOST_PERIODS` periods in a query, in text order, without overlaps.

    "Since" and "after" extend to the end of the day of asking; "before" and "until" have no start. A day without a year
    is the last such day, or the next one if that is within a month; "in June" is every June, "in Q3" the last one that
    has begun. "Recently" counts only if there is no other period.

    Takes time linear in the length of the query. The periods are in the time zone of the time of asking, or in UTC if
    that is naive.

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
    position, listed = 0, False
    while position < len(tokens.all) and len(found) < MOST_PERIODS:
        try:
            stretch = _period_at(tokens, position, now, led=listed)
        except (ValueError, OverflowError):
            stretch = None  # 30 February, or outside the calendar
        if stretch is None:
            position, listed = position + 1, False
            continue
        if all(moment is None or moment.year in _YEARS for moment in stretch[:2]):
            span = (tokens[position].start, tokens[stretch.stop - 1].end)
            start, end = (moment and moment.replace(tzinfo=zone) for moment in stretch[:2])
            found.append((stretch, Period(start=start, end=end, month=stretch.month, span=span, vague=stretch.vague)))
        after = tokens.after(tokens.after(stretch.stop, ","), *AND)
        joined = tokens.low(after - 1) in AND or _are_alike(tokens, position, after)
        listed = after > stretch.stop and joined and (listed or tokens.low(position - 1) in {"in", "on", "during"})
        position = after if listed else stretch.stop
    clear = [period for stretch, period in found if not stretch.vague]
    return clear or [period for _, period in found]


def without(text: str, spans: Iterable[tuple[int, int]], *, gap: str = "") -> str:
    """A text with a `gap` in the place of some spans, such as those of its periods."""
    for start, end in sorted(spans, reverse=True):
        text = f"{text[:start]}{gap}{text[end:]}"
    return text


def _are_alike(tokens: TimeTokens, one: int, other: int) -> bool:
    """Whether a comma alone lists another time: a year, a weekday, or a month with more of them to come.

    "In May, June and July" names three months, "In May, June called" one, and "On Monday, May called" a weekday.
    """
    words = tokens.low(one), tokens.low(other)
    more = tokens.after(tokens.after(other + 1, ","), *AND)
    months = MONTHS.keys() >= {*words, tokens.low(more)} and more > other + 1
    return months or all(map(str.isdecimal, words)) or WEEKDAYS.keys() >= {*words}


def _period_at(tokens: TimeTokens, position: int, now: datetime, *, led: bool) -> Stretch | None:
    word = tokens.low(position)
    if word in {"between", "from"} and (both := range_at(tokens, position, now)):
        return both
    if word in _FROM or word in _UNTIL or (word, tokens.low(position - 1)) == ("to", "prior"):
        return _open(tokens, position, now)
    first = stretch_at(tokens, position, now, led=led)
    if first and _begins_range(tokens, position, first, now):  # "June 6 through July 9", without "from"
        return range_at(tokens, position - 1, now) or first
    return first


def _begins_range(tokens: TimeTokens, position: int, first: Stretch, now: datetime) -> bool:
    """Whether a date or weekday leads to another one; "to" also compares whole months and moves events from a day."""
    is_date = tokens.low(position) in WEEKDAYS or date_at(tokens, position, now) == first
    if tokens.low(first.stop) not in TO or not is_date:
        return False
    is_day = first.start and first.end and first.end - first.start <= timedelta(days=1)
    return tokens.low(first.stop) != "to" or first.yearless or (bool(is_day) and tokens.low(position - 1) != "on")


def _open(tokens: TimeTokens, position: int, now: datetime) -> Stretch | None:
    """A time with an open side: "since May", "before June 3, 2023"."""
    word = "before" if tokens.low(position) == "to" else tokens.low(position)
    inner_at = named_at(tokens, position + 1, now)
    led = tokens.low(position) == "to" or (word in _FROM and tokens.low(inner_at) in WEEKDAYS)
    inner = stretch_at(tokens, inner_at, now, led=led)
    if inner and inner.yearless and (inner.month is not None or word == "since"):
        inner = _latest(tokens, inner_at, now, led, word)
    if inner is None or inner.vague:
        return None
    tomorrow = shift(midnight(now), "day", 1)
    if word in _FROM:
        start = inner.start if word == "since" else inner.end
        return inner._replace(start=start, end=tomorrow if start and start < tomorrow else None)
    end = inner.start if word == "before" and tokens.low(inner_at) != "end" else inner.end
    # "By next week" is a deadline, not a period that covers all of the past.
    return inner._replace(start=midnight(now) if end and end > tomorrow else None, end=end)


def _latest(tokens: TimeTokens, position: int, now: datetime, led: bool, word: str) -> Stretch | None:
    """The last time without a year that has begun, after "after" ended, and after others whose month has begun."""
    for year in (now.year, now.year - 1):
        found = stretch_at(tokens, position, now, led=led, year=year)
        if found is None or found.start is None or found.end is None:
            return None
        limits = {"since": found.start, "after": found.end}
        if limits.get(word, containing(found.start, "month")) <= now:
            return found
    return None
