"""Words, numbers and signs of a text that may speak of time, and the arithmetic of the calendar."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import NamedTuple

WEEKDAYS = {
    name: number
    for number, name in enumerate(["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"])
}
"""Folded names with their numbers from Monday, 0."""

SEASONS = {"spring": 3, "summer": 6, "fall": 9, "autumn": 9, "winter": 12}
"""Folded names with their first month, as in the north; each is three months long."""

UNITS = {
    form: unit
    for unit in ("minute", "hour", "day", "week", "weekend", "month", "quarter", "year")
    for form in (unit, unit + "s")
}
"""Words for lengths of time with their singular."""

_COUNTS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30,
}  # fmt: skip
_MONTHS_OF = {"month": 1, "quarter": 3, "year": 12}
_LENGTHS = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
    "weekend": timedelta(days=7),  # to the next one
}
_VAGUE_COUNTS = {"couple": (2, 2), "few": (2, 5), "several": (3, 8)}

_TOKEN = re.compile(
    r"(?<![\w.-])[0-9]{4}[-/.][0-9]{1,2}(?:[-/.][0-9]{1,2})?(?!(?!T[0-9])[\w/-])"
    r"|(?<![\w./-])[0-9]{1,2}[-/.][0-9]{1,2}[-/.](?:[0-9]{4}|[0-9]{2})(?![\w/-])"
    r"|\w+|[^\w\s]"
)


class Token(NamedTuple):
    """A word, a number, a sign, or a date in digits.

    Attributes:
        text: as it is written.
        low: case-folded.
        start: first character.
        end: the one after the last.
    """

    text: str
    low: str
    start: int
    end: int


_NOTHING = Token("", "", 0, 0)


class Tokens:
    """The tokens of a text; beyond its ends stand empty ones.

    >>> tokens = Tokens("On 2023-05-03, we left")
    >>> tokens.low(1), tokens.low(2), tokens.low(99)
    ('2023-05-03', ',', '')
    """

    def __init__(self, text: str) -> None:
        self.all = [
            Token(found.group(), found.group().casefold(), found.start(), found.end())
            for found in _TOKEN.finditer(text)
        ]

    def __getitem__(self, at: int) -> Token:
        return self.all[at] if 0 <= at < len(self.all) else _NOTHING

    def low(self, at: int) -> str:
        """The folded token."""
        return self[at].low

    def after(self, at: int, *optional: str) -> int:
        """The next position, or this one where none of the optional words stands."""
        return at + 1 if self[at].low in optional else at

    def capital(self, at: int) -> bool:
        """Whether a token begins with a capital letter."""
        return self[at].text[:1].isupper()

    def in_title(self, at: int) -> bool:
        """Whether a word has a capital letter that no sentence's beginning gave it: "The Tonight Show"."""
        return self.capital(at) and at > 0 and self[at - 1].text not in {".", "!", "?", ":", ";"}

    def count(self, at: int) -> tuple[int, int, int] | None:
        """How many, from and to, and the position after it: "three", "12", "a couple of", "a few"."""
        word = self.low(at)
        if word in _VAGUE_COUNTS or (word == "a" and self.low(at + 1) in _VAGUE_COUNTS):
            at += word == "a"
            return *_VAGUE_COUNTS[self.low(at)], self.after(at + 1, "of")
        if number := _COUNTS.get(word) or (int(word) if word.isdecimal() and word.isascii() and len(word) < 4 else 0):
            return number, number, at + 1
        return None


class Stretch(NamedTuple):
    """A part of local time that some tokens speak of, without its zone.

    Attributes:
        start: first moment; None where open, and for a month of every year.
        end: first moment after it.
        stop: position of the token after it.
        month: for a month of every year.
        yearless: whether its year was not said.
        vague: whether it counts only where nothing else is said of time.
    """

    start: datetime | None
    end: datetime | None
    stop: int
    month: int | None = None
    yearless: bool = False
    vague: bool = False


def midnight(moment: datetime) -> datetime:
    """The first moment of its day."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def shift(moment: datetime, unit: str, number: int) -> datetime:
    """A moment some units later, or earlier; in a shorter month it is that month's last day.

    Raises:
        OverflowError: out of the calendar.

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


def containing(moment: datetime, unit: str) -> datetime:
    """The first moment of the day, week (from Monday), weekend, month, quarter or year that a moment is in.

    The weekend is that of its week: Saturday and Sunday.
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
