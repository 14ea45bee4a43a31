"""Times relative to the moment of asking: yesterday, last week, this summer, on Tuesday."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from graph.dates import MONTHS
from graph.stopwords import words
from retrieval.text.time.dates import AND, TO, date_at, is_counted
from retrieval.text.time.tokens import (
    HOLIDAYS,
    SEASONS,
    SHORT_WEEKDAYS,
    UNITS,
    WEEKDAYS,
    Stretch,
    TimeTokens,
    containing,
    midnight,
    shift,
    unit_from,
)

DAYS = {"today": 0, "tonight": 0, "yesterday": -1, "tomorrow": 1}
"""Days from today, by the word for them."""

PARTS_OF_DAY = {"morning": (0, 12), "afternoon": (12, 18), "evening": (17, 24), "night": (18, 30)}
"""First and last hour, from midnight, by the part of the day."""

_STEPS = {"last": -1, "past": -1, "previous": -1, "this": 0, "next": 1}
_HABITS = frozenset(words("mornings afternoons evenings nights"))
_NO_MONTH_BEFORE = frozenset(words("of be not have also never"))  # "this May be ..."
_OWNERS = frozenset(words("his its their"))  # "her" may end what was before: "Who saw her last year?"
_RECENT_DAYS = 30
_OTHER_DAYS = 14  # "the other day"
_DAY_OF_MONTH = re.compile(r"([12]?[0-9]|3[01])(?:st|nd|rd|th)")
_LEADS_TO_DAY = frozenset({"on", "since", "after"})  # "by the 15th" is mostly a day to come
_LEADS_TO_SEASON = frozenset(words("in over during"))
_NO_TIME_AFTER = frozenset(
    words("the a an every each that one and or about for of to from by until till before after with at in than like")
    + words("first second third fourth other another some any given next following previous good black easter")
)  # a weekday that is spoken of, one of several, or a holiday
_MOST_MONTHS = 12


def relative_at(tokens: TimeTokens, position: int, now: datetime, *, led: bool = False) -> Stretch | None:
    """The relative time that starts at a token, counted from now or from a date stated next to it.

    `led` says whether a weekday alone is a time, as after "since". Raises as `date_at` does.

    >>> found = relative_at(TimeTokens("last weekend before April 10, 2023"), 0, datetime(2024, 1, 1))
    >>> found.start, found.end
    (datetime.datetime(2023, 4, 8, 0, 0), datetime.datetime(2023, 4, 10, 0, 0))
    """
    word = tokens.low(position)
    if word in WEEKDAYS:
        return _weekday(tokens, position, now, led)
    if tokens.in_title(position):
        return None
    if tokens.low(position - 1) == "the" and (found := _definite(tokens, position, now)):
        return found
    if word in DAYS:
        return None if _is_code(tokens, position) else _day(now, DAYS[word], position + 1)
    if word in {"recently", "lately"}:
        if tokens.low(position - 1) in {"more", "most", "less", "how", "until"}:
            return None
        return _rolling(now, "day", -1, _RECENT_DAYS, position + 1)._replace(vague=True)
    if word == "earlier" and (tokens.low(position + 1), tokens.low(position + 2)) == ("in", "the"):
        in_day = part_of_day(tokens.low(position + 3), now, position + 4)  # "earlier in the morning" is today's
        return in_day or this_unit(tokens, position + 3, now)
    return _deictic(tokens, position, now) if word in _STEPS else None


def _definite(tokens: TimeTokens, position: int, now: datetime) -> Stretch | None:
    """The time of which there is only one after "the": on the 15th, over the weekend, the other day."""
    word, before = tokens.low(position), tokens.low(position - 2)
    if word == "weekend" and before in {"at", "during", "on", "over"} and not tokens.is_present(position):
        start = containing(now, "weekend")
        return unit_from(start if start <= now else shift(start, "weekend", -1), "weekend", position + 1)
    if word == "other" and tokens.low(position + 1) == "day":
        return _rolling(now, "day", -1, _OTHER_DAYS, position + 2)._replace(vague=True)
    if word in SEASONS:
        is_over = before in _LEADS_TO_SEASON and tokens.is_past(position) and tokens.ends(position)
        return _yearly(now, "the", SEASONS[word], "quarter", position + 1) if is_over else None
    # "on the 3rd and 5th of May" is a date
    if before not in _LEADS_TO_DAY or tokens.is_present(position) or date_at(tokens, position, now):
        return None
    return _day_of_month(tokens, position, now)


def this_unit(tokens: TimeTokens, position: int, now: datetime) -> Stretch | None:
    """The week, month, quarter or year that contains now, where a token is its word and no other time follows."""
    unit = tokens.low(position)
    if unit not in {"week", "month", "quarter", "year"} or not tokens.ends(position):
        return None
    return unit_from(containing(now, unit), unit, position + 1)


def part_of_day(word: str, day: datetime, stop: int) -> Stretch | None:
    """The morning, afternoon, evening or night of a day."""
    if word not in PARTS_OF_DAY:
        return None
    first, last = PARTS_OF_DAY[word]
    return Stretch(midnight(day) + timedelta(hours=first), midnight(day) + timedelta(hours=last), stop)


def _is_code(tokens: TimeTokens, position: int) -> bool:
    """Whether a word like "today" is mentioned rather than used as a time: `datetime.today()`, "today's date"."""
    after = position + 1 + 2 * (tokens.low(position + 1) in {"'", "’"} and tokens.low(position + 2) == "s")
    return (
        (tokens.low(position - 1) == "." and tokens[position - 1].end == tokens[position].start)
        or tokens.low(position + 1) in {"(", "="}
        or tokens.low(after) in {"date", "datetime"}
        or tokens.low(position - 1) in {"date", "datetime"}
    )


def _deictic(tokens: TimeTokens, position: int, now: datetime) -> Stretch | None:
    """The time after "last", "past", "this" or "next"."""
    which, word, article = tokens.low(position), tokens.low(position + 1), tokens.low(position - 1) == "the"
    if word not in {"a", "an"} and (found := tokens.count(position + 1)):
        _, number, after = found
        unit = UNITS.get(tokens.low(after), "minute")
        if which == "this" or unit == "minute" or tokens.low(after + 1) == "of":
            return None
        return _rolling(now, unit, _STEPS[which], number, after + 1)
    if word in PARTS_OF_DAY and (which == "this" or (which == "last" and word in {"evening", "night"} and not article)):
        return part_of_day(word, shift(now, "day", _STEPS[which]), position + 2)
    if tokens.low(position + 2) in {"of", "-", "old"} and (word in UNITS or word in WEEKDAYS or article):
        return None
    if word in UNITS:
        is_own = which == "last" and tokens.low(position - 1) in _OWNERS  # "in his last year"
        return _unit(tokens, position, now) if word == UNITS[word] and not is_own else None
    if article and which != "past":
        return None
    if date := _dated(tokens, position, now):
        return date
    if word in WEEKDAYS and not _habitual(tokens, position + 1):
        now, stop = _anchor(tokens, position + 2, now)
        if which == "this":
            return _day(containing(now, "week"), WEEKDAYS[word], stop)
        return _day(now, _days_to(now, WEEKDAYS[word], which == "next"), stop)
    if word in SEASONS:
        return _yearly(now, which, SEASONS[word], "quarter", position + 2)
    if word in HOLIDAYS and which == "last":
        return _yearly(now, which, HOLIDAYS[word], "month", position + 2)
    if word in MONTHS and tokens.low(position + 2) not in _NO_MONTH_BEFORE:
        # "this may", "last march" and "next dec" are other words unless capitalised.
        sure = tokens.capital(position + 1) or word in {"june", "july"} or len(word) > 5
        return _yearly(now, which, MONTHS[word], "month", position + 2) if sure else None
    return None


def _dated(tokens: TimeTokens, position: int, now: datetime) -> Stretch | None:
    """The date that says which one is meant: "last May 2022", "last May 3", "next Friday, July 28"."""
    step, at = _STEPS[tokens.low(position)], position + 1
    if tokens.low(at) in WEEKDAYS:
        at = tokens.after(tokens.after(at + 1, ","), "the")
    elif tokens.low(at) not in MONTHS and tokens.low(at) not in SEASONS:
        return None
    date = date_at(tokens, at, now)
    if date is None or date.start is None:
        return None
    if not date.yearless:
        return None if is_counted(tokens, date.stop - 1) else date  # "last May 2000 people came"
    ahead = date.start.replace(year=now.year) - midnight(now)
    return date_at(tokens, at, now, year=now.year + step * (step * ahead <= timedelta(0)))


def _unit(tokens: TimeTokens, position: int, now: datetime) -> Stretch | None:
    """The week, month or year before, around or after now; "the last" and "past" ones end today."""
    which, unit, article = tokens.low(position), tokens.low(position + 1), tokens.low(position - 1) == "the"
    step = _STEPS[which]
    if unit in {"minute", "hour", "day"}:
        spans_back = (which == "past" and unit == "day") or (step < 0 and article and unit == "hour")
        return _rolling(now, unit, step, 1, position + 2) if spans_back else None
    if unit == "year" and tokens.low(position + 2) in {"in", "on"}:
        date = date_at(tokens, position + 3, now, year=now.year + step)
        if date is not None and date.start is not None and date.start.year == now.year + step:
            return date
    now, stop = _anchor(tokens, position + 2, now)
    if unit == "fortnight" or (unit != "weekend" and (which == "past" or (which == "last" and article))):
        return _rolling(now, unit, step, 1, stop)
    start = shift(containing(now, unit), unit, step)
    day = tokens.after(stop, "on")
    if unit == "week" and tokens.low(day) in WEEKDAYS and not _habitual(tokens, day):
        return _day(start, WEEKDAYS[tokens.low(day)], day + 1)
    number = _DAY_OF_MONTH.fullmatch(tokens.low(stop + 2)) if tokens.ends(stop + 2) else None
    if unit == "month" and number and (tokens.low(stop), tokens.low(stop + 1)) == ("on", "the"):
        return unit_from(start.replace(day=int(number[1])), "day", stop + 3)
    return unit_from(start, unit, stop)


def _anchor(tokens: TimeTokens, position: int, now: datetime) -> tuple[datetime, int]:
    """The date that "last week before 23 January, 2023" counts from, and the position after it; else now."""
    if tokens.low(position) in {"before", "on"}:
        date = date_at(tokens, position + 1, now)
        if date is not None and date.start is not None:
            return date.start, date.stop
    return now, position


def _rolling(now: datetime, unit: str, step: int, number: int, stop: int) -> Stretch:
    """A number of units up to the end of today, or starting today."""
    today = midnight(now)
    if step > 0:
        return Stretch(today, shift(shift(now, unit, number), "day", 1), stop)
    start = shift(now, unit, -number)
    return Stretch(start if unit == "hour" else midnight(start), shift(today, "day", 1), stop)


def _day(now: datetime, offset: int, stop: int) -> Stretch:
    return unit_from(shift(midnight(now), "day", offset), "day", stop)


def _weekday(tokens: TimeTokens, position: int, now: datetime, led: bool) -> Stretch | None:
    """The most recent weekday: "on Tuesday"; or "Sunday before October 25, 2022"."""
    if tokens[position].text in SHORT_WEEKDAYS and tokens.in_title(position + 1) and tokens[position + 1].text != "I":
        return None  # "on Sun Street"
    side = tokens.low(position + 1)
    if side in {"before", "after"}:
        date = date_at(tokens, position + 2, now)
        if tokens.low(position + 2) not in WEEKDAYS and tokens.low(position + 3) not in HOLIDAYS:
            date = date or relative_at(tokens, position + 2, now)  # "the Monday before last Friday"
        if date and date.start and date.end and not date.vague:
            after = side == "after"
            day = shift(date.end, "day", -1) if after else date.start
            return _day(day, _days_to(day, WEEKDAYS[tokens.low(position)], after), date.stop)
    if found := _of_week(tokens, position, now):
        return found
    is_on = tokens.low(position - 1) == "on"
    named = tokens.after(position + 1, ",")
    is_time = led or (is_on and not tokens.is_present(position))
    is_dated = tokens.low(named) == "the" and (is_time or tokens.is_past(position))
    if is_dated and (found := _day_of_month(tokens, named + 1, now, WEEKDAYS[tokens.low(position)])):
        return found
    if not (is_time or _is_when(tokens, position)) or _habitual(tokens, position):
        return None
    if date_at(tokens, tokens.after(named, "the"), now):
        return None  # "on Tuesday, May 3": the date decides
    return _day(now, _days_to(now, WEEKDAYS[tokens.low(position)], after=False), position + 1)


def _of_week(tokens: TimeTokens, position: int, now: datetime) -> Stretch | None:
    """A weekday of the week stated after it or its list: "Monday of last week", "Monday and Tuesday last week"."""
    last = position
    for _ in WEEKDAYS:
        following = tokens.after(tokens.after(last + 1, ","), *AND, *TO)
        if following == last + 1 or tokens.low(following) not in WEEKDAYS:
            break
        last = following
    week = tokens.after(tokens.after(last + 1, *PARTS_OF_DAY), "of", ",")
    if tokens.low(week) not in _STEPS or tokens.low(week + 1) != "week":
        return None
    monday = shift(containing(now, "week"), "week", _STEPS[tokens.low(week)])
    day = shift(monday, "day", WEEKDAYS[tokens.low(position)])
    if last > position:
        return unit_from(day, "day", position + 1)
    return part_of_day(tokens.low(last + 1), day, week + 2) or unit_from(day, "day", week + 2)


def _is_when(tokens: TimeTokens, position: int) -> bool:
    """Whether a weekday without "on" says when something was: "What did we decide Monday?"."""
    lead = tokens.low(position - 1)
    follows = tokens.low(position + 1) in PARTS_OF_DAY or tokens.ends(position)
    is_last_in = (lead, tokens.low(position + 1)) == ("last", "in")  # "the last Sunday in May"
    is_name = is_last_in or not lead.isalpha() or tokens.in_title(position - 1) or lead in _NO_TIME_AFTER
    return follows and not is_name and tokens.low(position - 2) != "to" and tokens.is_past(position)


def _day_of_month(tokens: TimeTokens, position: int, now: datetime, weekday: int | None = None) -> Stretch | None:
    """The last 15th, or the last one that was such a weekday, if no month is named and it does not count a noun."""
    found = _DAY_OF_MONTH.fullmatch(tokens.low(position))
    if not found or not tokens.ends(position):
        return None
    months = (shift(containing(now, "month"), "month", -back) for back in range(_MOST_MONTHS))
    days = (month + timedelta(days=int(found[1]) - 1) for month in months)
    wanted = (day for day in days if day.day == int(found[1]) and day <= now and weekday in {None, day.weekday()})
    return next((unit_from(day, "day", position + 1) for day in wanted), None)


def _habitual(tokens: TimeTokens, position: int) -> bool:
    """Whether a weekday is habitual ("on Tuesday mornings") or part of a name ("on Sunday Night Football")."""
    if tokens.low(position + 1) == "night" and tokens.capital(position + 1):
        return True
    for _ in range(len(WEEKDAYS)):
        position = tokens.after(tokens.after(position + 1, ",", "/", "&"), "and", "or")
        if tokens.low(position) not in WEEKDAYS:
            break
    return tokens.low(position) in _HABITS or (
        tokens.low(position).endswith("s") and tokens.low(position)[:-1] in WEEKDAYS
    )


def _days_to(day: datetime, weekday: int, after: bool) -> int:
    """Days from `day` to the nearest such weekday before or after it."""
    return (weekday - day.weekday() - 1) % 7 + 1 if after else (weekday - day.weekday()) % 7 - 7


def _yearly(now: datetime, which: str, month: int, unit: str, stop: int) -> Stretch:
    """The last such month or season that has ended or ("the") is half over, the next, or the one nearest to now."""
    starts = [datetime(now.year + step, month, 1) for step in (-2, -1, 0, 1)]
    middles = {start: start + (shift(start, unit, 1) - start) / 2 for start in starts}
    if which == "this":
        start = min(starts, key=lambda start: abs(middles[start] - now))
    elif which == "next":
        start = min(start for start in starts if start > now)
    else:
        start = max(start for start in starts if (middles[start] if which == "the" else shift(start, unit, 1)) <= now)
    return unit_from(start, unit, stop)
