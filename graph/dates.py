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
    word = tokens[position].text
    if word[0].isdigit():
        if iso := _ISO.match(word):
            year, month, day = iso.groups()
            return _forms(int(year), int(month), int(day) if day else None), 1
        if _DECADE.fullmatch(word):
            return [(word, 0.5)], 1
        month_at = position + 1 + (_text(tokens, position + 1).casefold() == "of")
        month_number = MONTHS.get(_text(tokens, month_at).casefold(), 0)
        if month_number and _DAY.fullmatch(word):
            year_at = month_at + 1 + (_text(tokens, month_at + 1) in (",", "."))
            if is_year(_text(tokens, year_at)):
                return _forms(int(_text(tokens, year_at)), month_number, _day(word)), year_at + 1 - position
            return _forms(None, month_number, _day(word)), month_at + 1 - position
        return ([(word, 0.4)], 1) if tokens[position].kind == "number" and is_year(word) else ([], 0)
    return _month_at(tokens, position, MONTHS[word.casefold()])


def _month_at(tokens: Sequence[Token], position: int, month: int) -> tuple[list[tuple[str, float]], int]:
    after = position + 1 + (_text(tokens, position + 1) in (".", ","))
    if is_year(_text(tokens, after)):
        return _forms(int(_text(tokens, after)), month, None), after + 1 - position
    if _DAY.fullmatch(_text(tokens, after)) and after == position + 1:
        day = _day(_text(tokens, after))
        year_at = after + 1 + (_text(tokens, after + 1) == ",")
        if is_year(_text(tokens, year_at)):
            return _forms(int(_text(tokens, year_at)), month, day), year_at + 1 - position
        return _forms(None, month, day), after + 1 - position
    word = tokens[position].text
    sure = word.casefold() not in _WORDS_TOO and len(word) > 3
    if sure or (word[0].isupper() and position > 0 and tokens[position - 1].text.casefold() in _BEFORE_MONTH):
        return _forms(None, month, None), 1
    return [], 0


def _forms(year: int | None, month: int, day: int | None) -> list[tuple[str, float]]:
    if year is None:
        return [(_MONTH_NAMES[month - 1] + (f" {day}" if day else ""), 0.4)]
    forms = [(f"{year:04}-{month:02}-{day:02}", 0.6)] if day else []
    return [*forms, (f"{year:04}-{month:02}", 0.5), (f"{year:04}", 0.3)]


def _day(word: str) -> int:
    return int(word.rstrip("stndrh"))


def _text(tokens: Sequence[Token], position: int) -> str:
    return tokens[position].text if position < len(tokens) else ""
