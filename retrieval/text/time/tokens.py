"""The tokens of time expressions, and calendar arithmetic."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import cache
from itertools import takewhile
from typing import NamedTuple

from graph.stopwords import words
from retrieval.text.time.other_languages import FOREIGN, in_english, may_have_foreign

WEEKDAYS = {day: number for number, day in enumerate(words("monday tuesday wednesday thursday friday saturday sunday"))}
"""Weekday numbers by folded name; Monday is 0."""

SHORT_WEEKDAYS = {
    short: day
    for day, shorts in zip(
        WEEKDAYS, ("Mon", "tue tues", "Wed weds", "thu thur thurs", "fri", "Sat", "Sun"), strict=True
    )
    for short in shorts.split()
}
"""Weekdays by short form; capitalised ones are other words in lower case."""

SEASONS = {"spring": 3, "summer": 6, "fall": 9, "autumn": 9, "winter": 12}
"""First months by folded name of the season, as in the northern hemisphere; each lasts three months."""

HOLIDAYS = {"christmas": 12, "halloween": 10, "thanksgiving": 11}
"""Months by folded name of a holiday in it."""

UNITS = {
    form: unit
    for unit in ("minute", "hour", "day", "week", "weekend", "fortnight", "month", "quarter", "year")
    for form in (unit, unit + "s")
}
UNITS |= {"min": "minute", "mins": "minute", "hr": "hour", "hrs": "hour", "nights": "day", "wks": "week", "yrs": "year"}
"""Units of time by word, singular, plural or abbreviated; nights are counted as days."""

_TO_NINETEEN = words(
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen"
)
_TENS = {
    ten: 10 * number
    for number, ten in enumerate(words("twenty thirty forty fifty sixty seventy eighty ninety"), start=2)
}
_ONES = {word: number for number, word in enumerate(_TO_NINETEEN[:9], start=1)}
_COUNTS = {"a": 1, "an": 1} | {word: number for number, word in enumerate(_TO_NINETEEN, start=1)} | _TENS
_UNDER_TWENTY = words(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth"
    " sixteenth seventeenth eighteenth nineteenth"
)
ORDINALS = {word: f"{number}th" for number, word in enumerate(_UNDER_TWENTY, start=1) if number > 4}
ORDINALS |= {f"{ten}tieth": f"{value}th" for ten, value in (("twen", 20), ("thir", 30))}
ORDINALS |= {
    f"{ten}{hyphen}{word}": f"{value + number}th"
    for ten, value in (("twenty", 20), ("thirty", 30))
    for hyphen in "- "
    for number, word in enumerate(_UNDER_TWENTY[:9], start=1)
}
"""Spelled ordinals in digits, all with "th"; "first" to "fourth" are left out, as they have other meanings."""

_MONTHS_OF = {"month": 1, "quarter": 3, "year": 12}
_LENGTHS = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
    "weekend": timedelta(days=7),  # to the next one
    "fortnight": timedelta(days=14),
}
FEW = 5
"""Most days, weeks or months that a plural without a number means: "the first days of May"."""

_VAGUE_COUNTS = {"couple": (2, 2), "few": (2, FEW), "several": (3, 8)}

_PRESENT = frozenset(words("am m do does doing usually will must should can"))  # "m" of "I'm"
_PAST = frozenset(words("did had was were said told went came met saw happened"))
_GOES_ON = frozenset(
    words("about and at did do for in through till until was were when with")
)  # what may follow a time
_SENTENCE_ENDS = frozenset({".", "!", "?", ""})
_AROUND = 20

_TOKEN = re.compile(
    r"(?<![\w.-])[0-9]{4}[-/.][0-9]{1,2}(?:[-/.][0-9]{1,2})?(?!(?!T[0-9])[\w/-])"
    r"|(?<![\w./-])[0-9]{1,2}[-/.][0-9]{1,2}[-/.](?:[0-9]{4}|[0-9]{2})(?![\w/-])"
    r"|(?i:twenty|thirty)[- ](?i:" + "|".join(_UNDER_TWENTY[:9]) + r")\b"
    r"|\w+|[^\w\s]"
)


@cache
def _token_of_any_language() -> re.Pattern[str]:
    """Compiled on first use, as it takes .05 s and 5 MB and most programs do not need it."""
    return re.compile(f"{FOREIGN}|{_TOKEN.pattern}")


class TimeToken(NamedTuple):
    """A word, a number, a sign, or a date in digits: as written, case-folded, and its character range."""

    text: str
    low: str
    start: int
    end: int


def _low(text: str) -> str:
    """The case-folded word; ordinals in digits, weekdays written out."""
    low = text.casefold()
    return ORDINALS.get(low) or SHORT_WEEKDAYS.get(text) or SHORT_WEEKDAYS.get(low, low)


_NOTHING = TimeToken("", "", 0, 0)


class TimeTokens:
    """The tokens of a text; beyond both ends, tokens are empty.

    >>> tokens = TimeTokens("On 2023-05-03, we left")
    >>> tokens.low(1), tokens.low(2), tokens.low(99)
    ('2023-05-03', ',', '')
    """

    def __init__(self, text: str) -> None:
        tokens = (_token_of_any_language() if may_have_foreign(text) else _TOKEN).finditer(text)
        self.all = [TimeToken(word, _low(word), *found.span()) for found in tokens for word in in_english(found)]

    def __getitem__(self, position: int) -> TimeToken:
        return self.all[position] if 0 <= position < len(self.all) else _NOTHING

    def low(self, position: int) -> str:
        """The case-folded token."""
        return self[position].low

    def after(self, position: int, *optional: str) -> int:
        """The position after a token if it is one of the optional words, else the same position."""
        return position + 1 if self[position].low in optional else position

    def capital(self, position: int) -> bool:
        """Whether a token starts with a capital letter."""
        return self[position].text[:1].isupper()

    def in_title(self, position: int) -> bool:
        """Whether a word is capitalised other than at the start of a sentence: "The Tonight Show"."""
        return self.capital(position) and position > 0 and self[position - 1].text not in {".", "!", "?", ":", ";"}

    def is_present(self, position: int) -> bool:
        """Whether the words around a time ask for what is so or planned: "What does she do on the weekend?"."""
        return not self._around(position).isdisjoint(_PRESENT) and not self.is_past(position)

    def is_past(self, position: int) -> bool:
        """Whether the words around a time ask for what was: "What did she do over the summer?"."""
        return not self._around(position).isdisjoint(_PAST)

    def _around(self, position: int) -> set[str]:
        said = set[str]()
        for step in (-1, 1):
            places = range(position + step, position + step * _AROUND, step)
            around = takewhile(lambda place: self[place].text not in _SENTENCE_ENDS, places)
            said.update(self.low(place) for place in around if self.low(place + 1) != "you")
        return said

    def ends(self, position: int) -> bool:
        """Whether a time may end with a token: "on the 4th", not "on the 4th floor"."""
        after = self.low(position + 1)
        return after != "-" and (not after.isalnum() or after in _GOES_ON)

    def count(self, position: int) -> tuple[int, int, int] | None:
        """Minimum, maximum and the position after a count: "three", "12", "a couple of", "a few"."""
        word, before = self.low(position), self[position - 1]
        if before.text in {".", ","} and before.end == self[position].start:
            return None  # "1.5"
        if self.low(position - 1 - (before.low == "and")) == "hundred":
            return None  # "a hundred and five"
        if word in _VAGUE_COUNTS or (word == "a" and self.low(position + 1) in _VAGUE_COUNTS):
            position += word == "a"
            return *_VAGUE_COUNTS[self.low(position)], self.after(position + 1, "of")
        after = self.after(position + 1, "-")
        if word in _TENS and (ones := _ONES.get(self.low(after))):
            return _TENS[word] + ones, _TENS[word] + ones, after + 1
        if number := _COUNTS.get(word) or (int(word) if word.isdecimal() and word.isascii() and len(word) < 4 else 0):
            return number, number, position + 1
        return None


class Stretch(NamedTuple):
    """A part of local time that some tokens denote, without a time zone.

    Attributes:
        start: first moment; None if open, or for a month of every year.
        end: first moment after it.
        stop: position after its last token.
        month: for a month of every year.
        yearless: whether the year is not stated.
        vague: whether it counts only if the text has no other time.
    """

    start: datetime | None
    end: datetime | None
    stop: int
    month: int | None = None
    yearless: bool = False
    vague: bool = False


def midnight(moment: datetime) -> datetime:
    """The first moment of the day."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def shift(moment: datetime, unit: str, number: int) -> datetime:
    """Add a number of units to a moment; clipped to the last day of a shorter month.

    Raises OverflowError if the result is outside the calendar.

    >>> shift(datetime(2024, 3, 31), "month", -1)
    datetime.datetime(2024, 2, 29, 0, 0)
    """
    if unit not in _MONTHS_OF:
        return moment + number * _LENGTHS[unit]
    months = moment.year * 12 + moment.month - 1 + number * _MONTHS_OF[unit]
    if not 12 <= months < 12 * 9999:
        raise OverflowError("out of the calendar")
    first = moment.replace(year=months // 12, month=months % 12 + 1, day=1)
    length = ((first + timedelta(days=31)).replace(day=1) - first).days
    return first.replace(day=min(moment.day, length))


def unit_from(start: datetime, unit: str, stop: int) -> Stretch:
    """The unit that begins at a moment; a weekend has two days. `stop` is the position after the last token."""
    return Stretch(start, shift(start, "day", 2) if unit == "weekend" else shift(start, unit, 1), stop)


def containing(moment: datetime, unit: str) -> datetime:
    """The first moment of the day, week (from Monday), weekend, month, quarter or year that contains a moment.

    The weekend is the Saturday and Sunday of its week.
    """
    day = midnight(moment)
    if unit == "week":
        return day - timedelta(days=day.weekday())
    if unit == "weekend":
        return day + timedelta(days=5 - day.weekday())
    if unit == "month":
        return day.replace(day=1)
    if unit == "quarter":
        return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
    return day.replace(month=1, day=1) if unit == "year" else day
