"""Dates, months and years, normalised to one form each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graph.stopwords import words
from graph.tokenizer import Token

_MONTH_NAMES = words("January February March April May June July August September October November December")
MONTHS = {form.casefold(): number for number, name in enumerate(_MONTH_NAMES, 1) for form in (name, name[:3])}
MONTHS["sept"] = 9
"""Month numbers by folded name, full or abbreviated."""

_WORDS_TOO = frozenset(words("may march mar jan sep dec august"))
_BEFORE_MONTH = frozenset(words("in last next since this of by until during early mid late from before after on"))
WEEKDAYS = frozenset(words("monday tuesday wednesday thursday friday saturday sunday"))

_ISO = re.compile(r"(1[0-9]{3}|20[0-9]{2})-(0[1-9]|1[0-2])(?:-(0[1-9]|[12][0-9]|3[01]))?")
_DAY = re.compile(r"(0?[1-9]|[12][0-9]|3[01])(?:st|nd|rd|th)?")
_YEAR = re.compile(r"1[0-9]{3}|20[0-9]{2}")
_DECADE = re.compile(r"(1[0-9]|20)[0-9]0s")


class DateMention(NamedTuple):
    """A date in normal form: `2023-05-03`, `2023-05`, `2023`, `May 3`, `May` or `1970s`."""

    name: str
    weight: float
    tokens: range


def find_dates(tokens: Sequence[Token]) -> Iterator[DateMention]:
    """The dates of a text. A full date also yields its month and, with less weight, its year.

    >>> from graph.tokenizer import tokenize
    >>> [d.name for d in find_dates(tokenize("Born on 3rd May 2023."))]
    ['2023-05-03', '2023-05', '2023']
    """
    after = 0
    for position, (_, word, _, _) in enumerate(tokens):
        if position < after or not (word[0].isdigit() or word.casefold() in MONTHS):
            continue
        found, size = _date_at(tokens, position)
        where = range(position, position + size)
        for name, weight in found:
            yield DateMention(name, weight, where)
        after = position + size


def is_year(word: str) -> bool:
    """Whether a word is a year from 1000 to 2099."""
    return _YEAR.fullmatch(word) is not None


def _date_at(tokens: Sequence[Token], position: int) -> tuple[list[tuple[str, float]], int]:
    """The forms of the date that starts at a token, most exact first, and its length in tokens; ([], 0) if none."""
    word, following = tokens[position].text, _text(tokens, position + 1)
    if word[0].isdigit():
        if iso := _ISO.match(word):
            return _forms(*(int(part) if part else 0 for part in iso.groups())), 1
        if _DECADE.fullmatch(word):
            return [(word, 0.5)], 1
        month_at = position + 1 + (following.casefold() == "of")
        day, month = _day(word), MONTHS.get(_text(tokens, month_at).casefold(), 0)
        if not (day and month):
            return ([(word, 0.4)], 1) if tokens[position].kind == "number" and is_year(word) else ([], 0)
        end, marks = month_at + 1, [",", "."]
    else:
        day, month = _day(following), MONTHS[word.casefold()]
        end, marks = (position + 2, [","]) if day else (position + 1, [",", "."])
    year_at = end + (_text(tokens, end) in marks)
    if is_year(_text(tokens, year_at)):
        return _forms(int(_text(tokens, year_at)), month, day), year_at + 1 - position
    sure = day or (word.casefold() not in _WORDS_TOO and len(word) > 3)
    if sure or (word[0].isupper() and position > 0 and tokens[position - 1].text.casefold() in _BEFORE_MONTH):
        return _forms(0, month, day), end - position
    return [], 0


def _forms(year: int, month: int, day: int) -> list[tuple[str, float]]:
    """The forms of a date; year and day are 0 if unknown."""
    if not year:
        return [(_MONTH_NAMES[month - 1] + (f" {day}" if day else ""), 0.4)]
    forms = [(f"{year:04}-{month:02}-{day:02}", 0.6)] if day else []
    return [*forms, (f"{year:04}-{month:02}", 0.5), (f"{year:04}", 0.3)]


def _day(word: str) -> int:
    """The day of the month that a word names, or 0."""
    return int(word.rstrip("stndrh")) if _DAY.fullmatch(word) else 0


def _text(tokens: Sequence[Token], position: int) -> str:
    return tokens[position].text if position < len(tokens) else ""
