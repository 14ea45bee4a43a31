"""Times composed of others: two weeks ago, three days after May 3, the end of May 2023, from April to June 2023."""

from __future__ import annotations

from datetime import datetime, timedelta

from retrieval.text.time.dates import TO, date_at
from retrieval.text.time.relative import DAYS, PARTS_OF_DAY, part_of_day, relative_at, this_unit
from retrieval.text.time.tokens import (
    FEW,
    HOLIDAYS,
    UNITS,
    WEEKDAYS,
    Stretch,
    TimeTokens,
    containing,
    midnight,
    shift,
    unit_from,
)

_HALVES = {"hour": ("minute", -30, -30), "year": ("month", -6, -6)}
_SIDES = {"prior to": "before", "leading up to": "before", "preceding": "before", "following": "after"}
_SLACK = {"minute": timedelta(minutes=5), "hour": timedelta(minutes=30)}


def distance_at(tokens: TimeTokens, position: int, now: datetime) -> Stretch | None:
    """The time that starts at a token and is a number of days, weeks, months or years away from now or a date.

    It is as wide as its unit: "two weeks ago" is the seven days around that day. Raises as `date_at` does.

    >>> found = distance_at(TimeTokens("two weeks ago"), 0, datetime(2023, 6, 15, 18, 30))
    >>> found.start, found.end
    (datetime.datetime(2023, 5, 29, 0, 0), datetime.datetime(2023, 6, 5, 0, 0))
    """
    article = tokens.low(position) == "the"
    counted = (1, 1, position + 1) if article else tokens.count(position)
    if counted is None:
        return None
    low, high, after = counted
    word, (side, base_at) = tokens.low(after), _side_at(tokens, after + 1)
    unit = UNITS.get(word)
    if unit is None:
        return _beside(tokens, side, base_at, now, word) if article and word in PARTS_OF_DAY else None
    if side in {"ago", "back", "and"}:
        return _ago(tokens, position, counted, now, unit)
    if article and unit == word and unit not in _SLACK:
        if found := _beside(tokens, side, base_at, now, unit):
            return found
        is_last = (side, tokens.low(base_at)) == ("before", "last") and tokens.low(base_at + 1) not in HOLIDAYS
        if unit == "day" or not is_last:
            return None
        return unit_from(shift(containing(now, unit), unit, -2), unit, base_at + 1)
    if side not in {"before", "after"} or unit not in {"day", "week", "month", "year"}:
        return None
    if article or tokens.low(position - 1) == "the":  # "the weeks before May 3", "the two weeks before May 3"
        return _beside(tokens, side, base_at, now, unit, FEW if article else high)
    date = _base(tokens, base_at, now)
    if date is None or date.start is None or date.end is None:
        return None
    if side == "before":
        return _away(date.start, unit, -high, -low, date.stop)
    return _away(shift(date.end, "day", -1), unit, low, high, date.stop)


def _side_at(tokens: TimeTokens, position: int) -> tuple[str, int]:
    """The word for the side of a date, such as "before", and the position after it."""
    for phrase, side in _SIDES.items():
        said = phrase.split()
        if said == [tokens.low(position + place) for place in range(len(said))]:
            return side, position + len(said)
    return tokens.low(position), position + 1


def _ago(tokens: TimeTokens, position: int, counted: tuple[int, int, int], now: datetime, unit: str) -> Stretch | None:
    """Two weeks ago, two weeks back, half an hour ago, a year ago today, a year and two months ago."""
    low, high, after = counted
    lead, side, follows = tokens.low(position - 1), tokens.low(after + 1), tokens.low(after + 2)
    if side == "and":
        rest = tokens.count(after + 2)
        smaller = UNITS.get(tokens.low(rest[2])) if rest else None
        if not rest or smaller in {None, "quarter"} or tokens.low(rest[2] + 1) != "ago" or lead == "between":
            return None
        # Not "was there for two years and three months ago left", but "whom did I work for a year and two months ago?".
        if lead == "for" and tokens.low(rest[2] + 2).isalnum():
            return None
        return _away(shift(now, unit, -high), smaller, -rest[1], -rest[0], rest[2] + 2)
    if tokens.low(position) == "the" or unit == "quarter" or (side == "back" and follows.isalnum()):
        return None  # "two days back at work"
    if lead == "half":
        return _away(now, *_HALVES[unit], after + 2) if unit in _HALVES else None
    if follows in DAYS and unit not in _SLACK and low == high:
        return unit_from(shift(shift(midnight(now), "day", DAYS[follows]), unit, -low), "day", after + 3)
    return _away(now, unit, -high, -low, after + 2)


def _base(tokens: TimeTokens, position: int, now: datetime) -> Stretch | None:
    """The days that others are counted from: "May 3", "last Friday"; no holiday, as only its month is known."""
    if tokens.low(position + 1) in HOLIDAYS:
        return None
    position = _dated_at(tokens, position, now)
    found = relative_at(tokens, position, now) or date_at(tokens, position, now)
    return found if found and found.start and found.end and found.end - found.start >= timedelta(days=1) else None


def _beside(tokens: TimeTokens, side: str, position: int, now: datetime, unit: str, number: int = 1) -> Stretch | None:
    """Units next to a date at a token: "the week before May 3", "the week of May 3"."""
    if side not in {"before", "after", "of"}:
        return None
    date = _base(tokens, position, now)
    if date is None or date.start is None or date.end is None:
        return None
    if side == "of" and (unit not in {"week", "weekend"} or date.end - date.start > timedelta(days=7)):
        return None
    if unit in PARTS_OF_DAY:
        return part_of_day(unit, date.end if side == "after" else shift(date.start, "day", -1), date.stop)
    if unit == "weekend":
        # A week ends with its weekend, but a Monday or Tuesday is nearer to the one before: "the weekend of July 4".
        days = {"before": date.start - timedelta(days=7), "after": date.end + timedelta(days=1)}
        return unit_from(containing(days.get(side, date.end - timedelta(days=3)), unit), unit, date.stop)
    if side == "of":
        return unit_from(containing(date.start, unit), unit, date.stop)
    if side == "before":
        return Stretch(shift(date.start, unit, -number), date.start, date.stop)
    return Stretch(date.end, shift(date.end, unit, number), date.stop)


def _away(base: datetime, unit: str, low: int, high: int, stop: int) -> Stretch:
    """The span between two distances in units; negative numbers lie before `base`."""
    if unit == "weekend":
        base = containing(base, unit)
    first, last = shift(base, unit, low), shift(base, unit, high)
    if unit in _SLACK:
        return Stretch(first - _SLACK[unit], last + _SLACK[unit], stop)
    first, last = midnight(first), shift(midnight(last), "day", 2 if unit == "weekend" else 1)
    if unit == "year":
        return Stretch(shift(first, "month", -6), shift(last, "month", 6), stop)
    days = timedelta(days={"day": 0, "weekend": 0, "week": 3, "fortnight": 7, "month": 15}[unit])
    return Stretch(first - days, last + days, stop)


_QUARTERS = {"early": (0, 2), "beginning": (0, 2), "start": (0, 2), "first": (0, 2), "mid": (1, 3), "middle": (1, 3)}
_QUARTERS |= {"late": (2, 4), "end": (2, 4), "second": (2, 4), "last": (2, 4)}
_ALONE = frozenset({"early", "mid", "late"})
_NOW = frozenset({"now", "present", "date"})


def stretch_at(tokens: TimeTokens, position: int, now: datetime, led: bool, year: int | None = None) -> Stretch | None:
    """The time that starts at a token: whole, or a part of one.

    `led` says whether the preceding words make a month, year or weekday alone a time, `year` is that of a date that
    does not state one. Raises as `date_at` does.

    >>> found = stretch_at(TimeTokens("the last week of May 2023"), 1, datetime(2024, 1, 1), led=False)
    >>> found.start, found.end
    (datetime.datetime(2023, 5, 25, 0, 0), datetime.datetime(2023, 6, 1, 0, 0))
    """
    found = _part(tokens, position, now, year) or distance_at(tokens, position, now)
    return found or _whole(tokens, position, now, led, year)


def range_at(tokens: TimeTokens, position: int, now: datetime) -> Stretch | None:
    """The range that starts with "from" or "between" at a token; otherwise like `stretch_at`.

    >>> found = range_at(TimeTokens("between April and May 2023"), 0, datetime(2024, 1, 1))
    >>> found.start, found.end
    (datetime.datetime(2023, 4, 1, 0, 0), datetime.datetime(2023, 6, 1, 0, 0))
    """
    to = {"-", "–", "and"} if tokens.low(position) == "between" else TO
    first_at = named_at(tokens, position + 1, now)
    first = stretch_at(tokens, first_at, now, led=True)
    to_at = tokens.after(first.stop, ",") if first else 0  # "from May 3, 2023, to June 5"
    if first is None or first.vague or tokens.low(to_at) not in to:
        return None
    second_at = named_at(tokens, to_at + 1, now)
    today = unit_from(midnight(now), "day", second_at + 1)
    second = today if tokens.low(second_at) in _NOW else stretch_at(tokens, second_at, now, led=True)
    if second and second.yearless:
        # The second date is after the first, or of months without a year the last one that has begun.
        year = first.start.year if first.start else now.year
        second = stretch_at(tokens, second_at, now, led=True, year=year)
        if second and second.start and first.start is None and second.start > now:
            second = stretch_at(tokens, second_at, now, led=True, year=year - 1)
        elif second and second.start and first.start and second.start < first.start:
            second = stretch_at(tokens, second_at, now, led=True, year=year + 1)
    if first.yearless and second and second.start:
        year = second.start.year
        first = stretch_at(tokens, first_at, now, led=True, year=year)
        if first and first.start and first.start > second.start:
            first = stretch_at(tokens, first_at, now, led=True, year=year - 1)
    if not (first and second and first.start and second.end):
        return None
    start = first.start
    if start >= second.end and tokens.low(first_at) in WEEKDAYS and tokens.is_past(position):
        start -= timedelta(days=7)  # "What did we do from Monday to Friday?"
    return Stretch(start, second.end, second.stop) if start < second.end else None


def named_at(tokens: TimeTokens, position: int, now: datetime) -> int:
    """Where the time at a token is named: after its article, but in "the week before last", and a weekday."""
    return position if distance_at(tokens, position, now) else _dated_at(tokens, position, now)


def _dated_at(tokens: TimeTokens, position: int, now: datetime) -> int:
    """The position after an article and the weekday of a date: "the 3rd of May", "Friday, June 2"."""
    position = tokens.after(position, "the")
    date_position = tokens.after(tokens.after(position + 1, ","), "the")
    is_dated = tokens.low(position) in WEEKDAYS and date_at(tokens, date_position, now)
    return date_position if is_dated else position


def _whole(tokens: TimeTokens, position: int, now: datetime, led: bool, year: int | None) -> Stretch | None:
    found = relative_at(tokens, position, now, led=led) or date_at(tokens, position, now, led=led, year=year)
    if found and not tokens.capital(found.stop):  # "yesterday morning", but "Friday Night Dinner"
        return _in_day(tokens.low(found.stop), found, found.stop + 1) or found
    return found


def _in_day(word: str, day: Stretch, stop: int) -> Stretch | None:
    """The morning, afternoon, evening or night of what is one day."""
    if day.start is None or day.end != shift(day.start, "day", 1):
        return None
    return part_of_day(word, day.start, stop)


def _part(tokens: TimeTokens, position: int, now: datetime, year: int | None) -> Stretch | None:
    """Half of a time ("early", "the end of"), or some of its days, weeks or months ("the last two weeks of")."""
    word = tokens.low(position)
    if not (word in _QUARTERS or word in PARTS_OF_DAY) or tokens.in_title(position):
        return None
    if word in {"first", "second", "last"} and tokens.low(position + 1) != "half":
        return _some(tokens, position, now, year)
    after = tokens.after(position + 1, "half")
    if tokens.low(after) == "of":
        inner_at = _dated_at(tokens, after + 1, now)
        inner = _whole(tokens, inner_at, now, led=True, year=year)
        if word in {"beginning", "start"} and tokens.is_past(position):  # its end may be the last one's
            inner = inner or this_unit(tokens, inner_at, now)
    elif word in _ALONE:
        after = tokens.after(after, "in", "-")
        inner = _whole(tokens, after, now, led=tokens.low(after - 1) == "-", year=year)
    else:
        return None
    if inner and word in PARTS_OF_DAY:
        return _in_day(word, inner, inner.stop)
    if inner is None or inner.start is None or inner.end is None or inner.end - inner.start < timedelta(days=2):
        return inner
    low, high = _QUARTERS[word]
    quarter = (inner.end - inner.start) / 4
    end = inner.end if high == 4 else midnight(inner.start + high * quarter)
    return inner._replace(start=midnight(inner.start + low * quarter), end=end)


def _some(tokens: TimeTokens, position: int, now: datetime, year: int | None) -> Stretch | None:
    word, few = tokens.low(position), FEW if tokens.low(position + 1).endswith("s") else 1
    _, number, after = tokens.count(position + 1) or (few, few, position + 1)
    unit = UNITS.get(tokens.low(after), "minute")
    joins = {"of", "in"} if tokens.low(position - 1) == "the" else {"of"}  # "last year in May" is one month
    if word == "second" or unit in {"minute", "hour"} or tokens.low(after + 1) not in joins:
        return None
    inner = _whole(tokens, tokens.after(after + 2, "the"), now, led=True, year=year)
    if inner is None or inner.start is None or inner.end is None or unit == "weekend":
        return inner
    if word == "first":
        return inner._replace(end=min(shift(inner.start, unit, number), inner.end))
    return inner._replace(start=max(shift(inner.end, unit, -number), inner.start))
