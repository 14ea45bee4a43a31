"""Calendar dates in a text: days, months, seasons, quarters and years, in many spellings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta

from graph.dates import MONTHS
from graph.stopwords import word_list, words
from retrieval.text.time.tokens import HOLIDAYS, SEASONS, Stretch, TimeTokens, shift, unit_from

_WORDS_TOO = frozenset({"may", "march"})  # besides the abbreviations
_SHORT_WORDS_TOO = frozenset({"jan", "mar", "sep", "oct", "dec"})  # a name, and words of programs
_NAMES_TOO = frozenset({"april", "may", "june", "august", "jan", "mar"})
_LEADS_TO_NAMES = frozenset(words("in during since until till throughout early mid late between"))
_LEADS = _LEADS_TO_NAMES | {"from", "before", "after"}
_LEADS_TO_DAYS = frozenset(words("on by since until till before after from between of the for"))
_LEADS_TO_YEARS = _LEADS | HOLIDAYS.keys() | {"by", "of", "year", "easter", "eve"}
_LEADS_TO_QUARTERS = frozenset(words("in during since"))
_MODAL = frozenset(words("be have not also i we you he she they it never only as well still or"))
_COUNTED = word_list("counted_nouns")
_SIGNS = frozenset(words("% $ € £"))
_SIGNS_BETWEEN = frozenset(words("* / : + ="))
_SECOND_NAMES = frozenset(words("madness court wilson"))  # March Madness, August Wilson
_BEFORE_COUNTS = word_list("before_counts")


def _is_short(name: str) -> bool:
    """Whether a month's name is abbreviated, so that a full stop after it belongs to it."""
    return len(name) < 5 and name not in {"may", "june", "july"}


def _counts(tokens: TimeTokens, position: int) -> bool:
    """Whether what follows a number makes it a count or a measure: "miles", "%", ":30"."""
    word = tokens.low(position)
    return word in _COUNTED or word in _SIGNS or (word in _SIGNS_BETWEEN and tokens.low(position + 1).isdecimal())


def _is_named(tokens: TimeTokens, position: int, short: bool) -> bool:
    """Whether a month's name next to a number is certainly one."""
    return tokens.capital(position) or not (short or tokens.low(position) in _WORDS_TOO)


def _is_month(tokens: TimeTokens, position: int, short: bool) -> bool:
    """Whether a month's name without a day and year is a month."""
    name, lead, next_word = tokens.low(position), tokens.low(position - 1), tokens.low(position + 1)
    leads = _LEADS_TO_NAMES if name in _NAMES_TOO or name in _WORDS_TOO else _LEADS
    if next_word == "of" or (lead not in leads and (lead != "of" or tokens.low(position - 2) != "month")):
        return False
    if not tokens.capital(position) and (
        name in _SHORT_WORDS_TOO or (name in _WORDS_TOO and (lead == "between" or next_word in _MODAL))
    ):
        return False
    return not (tokens.capital(position) and next_word in _SECOND_NAMES)


def _leads_to_year(tokens: TimeTokens, position: int) -> bool:
    """Whether the preceding word shows that a number is a year; "from 2000 to 3000" is not read as a range."""
    lead = tokens.low(position - 1)
    return lead in _LEADS_TO_YEARS and not (lead == "from" and tokens.low(position + 1) == "to")


def is_counted(tokens: TimeTokens, position: int) -> bool:
    """Whether a four-digit number is a count: "2022 items", "by 2000", "1900 to 2000 people"."""
    lead, next_word = tokens.low(position - 1), tokens.low(position + 1)
    sign, digits = tokens[position + 1], tokens[position + 2]
    touches = tokens[position].end == sign.start and sign.end == digits.start  # as in "2022.5"
    if next_word in TO | AND and _YEAR.fullmatch(tokens.low(position + 2)) and _counts(tokens, position + 3):
        return True
    if _counts(tokens, position + 1) or (touches and next_word in {".", ","} and tokens.low(position + 2).isdecimal()):
        return True
    return lead in {"by", "to", "from", "of"} and tokens.low(position - 2) in _BEFORE_COUNTS


_ORDINALS = {"first": 0, "second": 1, "third": 2, "fourth": 3, "1st": 0, "2nd": 1, "3rd": 2, "4th": 3}
_FIRST_DAYS = {"first": "1st", "second": "2nd", "third": "3rd", "fourth": "4th"}
_QUARTERS = {f"q{number + 1}": number for number in range(4)}
_DAY = re.compile(r"(0?[1-9]|[12][0-9]|3[01])(st|nd|rd|th)?")
_YEAR = re.compile(r"1[0-9]{3}|20[0-9]{2}|2100")
_SHORT_YEAR = re.compile(r"[0-9]{2}")
_DECADE = re.compile(r"(?:19|20)[0-9]0s")
_DIGITS = re.compile(r"([0-9]{4})[-/.]([0-9]{1,2})(?:[-/.]([0-9]{1,2}))?|([0-9]{1,2})([-/.])([0-9]{1,2})[-/.]([0-9]+)")
_SOON_DAYS = 31
_MOST_DAYS = 7  # in a list
_AHEAD_YEARS = 20  # for two digits; later ones are in the previous century

TO = frozenset({"-", "–", "to", "until", "till", "through", "bis", "au", "al", "tot", "по"})
"""What stands between the ends of a range, in other languages between days: "vom 3. bis 5. Mai 2023"."""

_LEADS_IN_GERMAN = frozenset(words("am vom zum bis dem den der seit ab"))
_OF_MONTH = frozenset({".", "de"})  # "3. Mai 2023", "3 de mayo de 2023"

AND = frozenset({"and", "or", "/", "&"})
"""What stands between the times of a list."""


def date_at(
    tokens: TimeTokens, position: int, now: datetime, *, led: bool = False, year: int | None = None
) -> Stretch | None:
    """The date that starts at a token; a day without a year is the last such day, or the next one if it is soon.

    `now` is the asker's local time, `year` the year of a date that does not state one, and `led` says whether the
    preceding words make a month or year alone a time ("the end of ..."). Raises ValueError if there is no such day,
    OverflowError if the date is outside the calendar.

    >>> found = date_at(TimeTokens("3rd of May, 2023"), 0, datetime(2024, 1, 1))
    >>> found.start, found.end
    (datetime.datetime(2023, 5, 3, 0, 0), datetime.datetime(2023, 5, 4, 0, 0))
    """
    word = tokens.low(position)
    if word in MONTHS:
        return _month_first(tokens, position, now, led, year)
    if word in SEASONS:
        found = _year_at(tokens, position + 1, now)
        return _season(tokens, SEASONS[word], *found, now) if found else None
    if word in _ORDINALS and tokens.low(position + 1) == "quarter":
        return _quarter(tokens, position + 2, _ORDINALS[word], now)
    if word in _FIRST_DAYS and tokens.low(position - 1) == "the" and not tokens.in_title(position):  # "Fourth of July"
        return _day_first(tokens, position, now, led, year) if tokens.low(position + 1) == "of" else None
    if word in _QUARTERS:
        return _quarter(tokens, position + 1, _QUARTERS[word], now)
    if word[:1].isdecimal() and word.isascii():
        if digits := _DIGITS.fullmatch(word):
            return _in_digits(digits, position + 1, now)
        if _DAY.fullmatch(word):
            return _day_first(tokens, position, now, led, year)
        if _DECADE.fullmatch(word) and (led or tokens.low(position - 1) == "the"):
            return Stretch(datetime(int(word[:4]), 1, 1), datetime(int(word[:4]) + 10, 1, 1), position + 1)
        if _YEAR.fullmatch(word) and int(word) >= 1900 and (led or _leads_to_year(tokens, position)):
            return None if is_counted(tokens, position) else unit_from(datetime(int(word), 1, 1), "year", position + 1)
    return None


def _in_digits(found: re.Match[str], stop: int, now: datetime) -> Stretch | None:
    year, month, day, one, sign, other, short = found.groups()
    if one:
        # 5/3/2023 is American; 3.5.2023 and 13/5/2023 can only be European.
        day_first = sign == "." or int(one) > 12
        if sign == "." and len(short) != 4:
            return None  # a version number
        day, month = (one, other) if day_first else (other, one)
        year = short if len(short) == 4 else str(_full_year(short, now))
    elif not day and "-" not in found.group():
        return None  # neither 2022/23 nor 2022.5 is a month
    if not 1000 <= int(year) <= 2100:
        return None
    return unit_from(datetime(int(year), int(month), int(day or 1)), "day" if day else "month", stop)


def _month_first(tokens: TimeTokens, position: int, now: datetime, led: bool, year: int | None) -> Stretch | None:
    """May 3, 2023; May 3-5; May 3rd; May 2023; May/2023; in May."""
    month = MONTHS[tokens.low(position)]
    short = _is_short(tokens.low(position))
    after = tokens.after(position + 1, ".") if short else position + 1
    if day := _day_after_month(tokens, after):
        sure = bool(day[2]) or tokens.low(position - 1) in _LEADS_TO_DAYS or led
        last, stop = _last_day(tokens, position, after + 1) or (day, after + 1)
        if tokens.low(tokens.after(stop, "of")) in MONTHS:  # "between May 5 and 8 June"
            last, stop = day, after + 1
        said = _year_at(tokens, tokens.after(stop, ","), now)
        if not said and (_counts(tokens, stop) or not (sure or _is_named(tokens, position, short))):
            return None
        year = year or _year_of_days(tokens, position, stop, month, now)
        return _days(month, int(day[1]), int(last[1]), said or (year, stop), now)
    if said := _year_at(tokens, tokens.after(after, ",", "/"), now):
        return unit_from(datetime(said[0], month, 1), "month", said[1])
    shared = _shared_year(tokens, position, after, month, now, MONTHS) if _is_named(tokens, position, short) else None
    if not (led or shared or _is_month(tokens, position, short)):
        return None
    if tokens.low(after) not in TO:
        year = shared or year
    if year is not None:
        return unit_from(datetime(year, month, 1), "month", after)
    return Stretch(None, None, after, month=month, yearless=True)


def _last_day(tokens: TimeTokens, first: int, position: int) -> tuple[re.Match[str], int] | None:
    """The last of several days, and the position after it: "-5", "to the 5th", "and 5" after "between" or "on".

    `first` is the position of the first day or its month. None if the number counts something, or is an hour: "on May 3
    until 5".
    """
    at = tokens.after(position + 1, "the")
    day = _DAY.fullmatch(tokens.low(at))
    lead = _lead(tokens, first)
    joins = tokens.low(position) in TO or (tokens.low(position) == "and" and lead in {"between", "on"})
    is_until = tokens.low(position) in {"until", "till"} and tokens.low(first) in MONTHS and lead != "from"
    is_hour = is_until and day and not day[2] and not _YEAR.fullmatch(tokens.low(tokens.after(at + 1, ",")))
    return (day, at + 1) if day and joins and not is_hour and not _counts(tokens, at + 1) else None


def _lead(tokens: TimeTokens, first: int) -> str:
    """The word before a date that begins at a token, without its article."""
    return tokens.low(first - 1 - (tokens.low(first - 1) == "the"))


def _shared_year(
    tokens: TimeTokens, first: int, position: int, number: int, now: datetime, numbers: Mapping[str, int]
) -> int | None:
    """The year of a month or quarter stated after the last one of its list: "June, July and August 2023".

    `first` is the position of the month or quarter.
    """
    years_before, half_a_year = 0, len({*numbers.values()}) // 2
    is_range = _lead(tokens, first) == "between"
    for _ in numbers:  # no list is longer
        at = tokens.after(tokens.after(position, ","), *TO, *AND)
        following = numbers.get(tokens.low(at)) if at > position else None
        if following is None:
            return None
        # "Q4 and Q1 2022" are of two years, as a range is that ends before it begins; "Q3 and Q2 2022" of one.
        years_before += number - following > (0 if is_range or tokens.low(at - 1) in TO else half_a_year)
        if said := _year_at(tokens, at + 1, now):
            return said[0] - years_before
        number, position = following, at + 1
    return None


def _year_of_days(tokens: TimeTokens, first: int, position: int, month: int, now: datetime) -> int | None:
    """The year of a day, whose date begins at `first`, after the last of its list: "May 3, June 5 and July 9, 2023"."""
    years_before, apart = 0, 0 if _lead(tokens, first) == "between" else 6  # as in `_shared_year`
    for _ in range(_MOST_DAYS):
        at = tokens.after(tokens.after(tokens.after(position, ","), *AND), "on", "the")
        if at == position:
            return None
        month_at, day_at = tokens.after(at + 1, "of"), at
        if tokens.low(at) in MONTHS:
            month_at, day_at = at, tokens.after(at + 1, ".")
        following = MONTHS.get(tokens.low(month_at))
        if following is None or not _DAY.fullmatch(tokens.low(day_at)):
            return None
        years_before += month - following > apart
        month, position = following, max(month_at, day_at) + 1
        if said := _year_at(tokens, tokens.after(position, ","), now):
            return said[0] - years_before
    return None


def _day_after_month(tokens: TimeTokens, position: int) -> re.Match[str] | None:
    """The day of the month at a token; "May first" needs a capital, as "march second" may be other words."""
    low = tokens.low(position)
    if low in _FIRST_DAYS and tokens.capital(position - 1):
        low = _FIRST_DAYS[low]
    return _DAY.fullmatch(low)


def _day_first(tokens: TimeTokens, position: int, now: datetime, led: bool, year: int | None) -> Stretch | None:
    """3 May 2023; the 3rd of May; 3-5 May; each of the 3rd, 5th and 8th of May."""
    low = tokens.low(position)
    day = _DAY.fullmatch(_FIRST_DAYS.get(low, low))
    last, after = _last_day(tokens, position, tokens.after(position + 1, ".")) or (day, position + 1)
    foreign = tokens.low(after) in _OF_MONTH
    if tokens.low(after) == "." and tokens.low(position - 1) not in _LEADS_TO_DAYS | _LEADS_IN_GERMAN:
        return None  # an item of a list: "2. May 2023"
    alone = after if day and day[2] and tokens.low(tokens.after(after, "of")) not in MONTHS else None
    after = tokens.after(after if alone is None else _after_days(tokens, after), "of", *_OF_MONTH)
    name = tokens.low(after)
    if not day or not last or name not in MONTHS:
        return None
    short = _is_short(name)
    stop = tokens.after(after + 1, ".") if short else after + 1
    said = _year_at(tokens, tokens.after(stop, ","), now)
    follows = tokens.low(stop + 1)  # a phrase's end, or another day: "from 3 May 22 to 5 June 22"
    ends = tokens.low(stop + 3) in MONTHS if follows in TO | AND else not follows.isalnum()
    is_short = ends and _SHORT_YEAR.fullmatch(tokens.low(stop)) and not is_counted(tokens, stop)
    if not said and is_short:  # "3 May 22", not "3 May 22:30"
        said = _full_year(tokens.low(stop), now), stop + 1
    if foreign and (not said or any(_DAY.fullmatch(tokens.low(before)) for before in range(position - 4, position))):
        return None  # "3. May I ...", and of "am 3. und 5. Mai 2023" the month is read
    sure = led or day[2] or tokens.low(after - 1) == "of" or tokens.low(position - 1) in _LEADS_TO_DAYS
    if not said and not sure and not _is_named(tokens, after, short):
        return None
    year = year or _year_of_days(tokens, position, stop, MONTHS[name], now)
    found = _days(MONTHS[name], int(day[1]), int(last[1]), said or (year, stop), now)
    return found if alone is None else found._replace(stop=alone)


def _after_days(tokens: TimeTokens, position: int) -> int:
    """The position after more days of a list: ", 5th and 8th"."""
    for _ in range(_MOST_DAYS):
        at = tokens.after(tokens.after(tokens.after(position, ","), *AND), "the")
        day = _DAY.fullmatch(tokens.low(at))
        if at == position or not day or not day[2]:
            break
        position = at + 1
    return position


def _year_at(tokens: TimeTokens, position: int, now: datetime) -> tuple[int, int] | None:
    """The year that follows a month or season, and the position after it: "2023", "of 2023", "'23", "of last year"."""
    position = tokens.after(position, "of")
    word, number = tokens.low(position), tokens[position + 1]
    if word in {"'", "’"} and _SHORT_YEAR.fullmatch(number.low) and tokens[position].end == number.start:
        return _full_year(number.low, now), position + 2
    if _YEAR.fullmatch(word) and not (tokens.low(position - 1) == "," and is_counted(tokens, position)):
        return int(word), position + 1
    step = {"last": -1, "this": 0, "next": 1}.get(word) if tokens.low(position + 1) == "year" else None
    return None if step is None else (now.year + step, position + 2)


def _full_year(two_digits: str, now: datetime) -> int:
    year = 2000 + int(two_digits)
    return year - 100 * (year > now.year + _AHEAD_YEARS)


def _days(month: int, first: int, last: int, said: tuple[int | None, int], now: datetime) -> Stretch:
    year, stop = said
    if year is None:
        leap_day = month == 2 and last == 29
        step = 4 if leap_day else 1
        year = now.year + 1 if not leap_day else now.year + 4 - now.year % 4
        while datetime(year, month, first) > now + timedelta(days=_SOON_DAYS):
            year -= step
    start, end = datetime(year, month, first), shift(datetime(year, month, last), "day", 1)
    if end <= start:
        raise ValueError("days in no order")
    return Stretch(start, end, stop, yearless=said[0] is None)


def _season(tokens: TimeTokens, month: int, year: int, stop: int, now: datetime) -> Stretch:
    # A winter is named after the year of its December or its January: the latter if that December is in the future.
    start = datetime(year, month, 1)
    if month == 12 and tokens.low(stop) in {"-", "–", "/"} and tokens.low(stop + 1) == str(year + 1):
        stop += 2  # "winter 2022-2023"
    elif month == 12 and start > now:
        start = shift(start, "year", -1)
    return unit_from(start, "quarter", stop)


def _quarter(tokens: TimeTokens, position: int, number: int, now: datetime) -> Stretch | None:
    """Q3 2022, Q3/2022; without a year the last Q3 that has begun, where something was "in Q3"."""
    month, named = 3 * number + 1, position - 1
    said = _year_at(tokens, tokens.after(position, ",", "/", "-"), now)
    if not said and (shared := _shared_year(tokens, named, position, number, now, _QUARTERS)):
        said = shared, position
    if not said and tokens.low(named - 1) in _LEADS_TO_QUARTERS and tokens.is_past(named) and tokens.ends(named):
        said = now.year - (month > now.month), position
    return unit_from(datetime(said[0], month, 1), "quarter", said[1]) if said else None
