"""Titles of works in quotation marks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from graph.stopwords import INTERJECTIONS, STOP_WORDS

MAX_TITLE_WORDS = 8

_QUOTED = re.compile(r"[\"\u201c\u00ab]([^\"\u201c\u201d\u00ab\u00bb\n]{2,80})[\"\u201d\u00bb]")


class QuotedTitle(NamedTuple):
    """A title and its character range in the text."""

    name: str
    start: int
    end: int


def find_quoted(text: str) -> Iterator[QuotedTitle]:
    """Quoted strings that look like the title of a work: capitalised, at most eight words.

    >>> [quoted.name for quoted in find_quoted('We saw "Katy Lied". She said "Yes, I think so."')]
    ['Katy Lied']
    """
    for match in _QUOTED.finditer(text):
        title = match.group(1).strip(" ,.;")
        if title[:1].isupper() and title[-1:] not in "?:" and _is_title(title.split()):
            yield QuotedTitle(title, match.start(1), match.end(1))


def _is_title(parts: list[str]) -> bool:
    """Whether most words of four letters or more are capitalised; short speech ("Wow!") is no title."""
    if len(parts) > MAX_TITLE_WORDS:
        return False
    folded = [part.strip(".,!'\u2019").casefold() for part in parts]
    if folded[0] in INTERJECTIONS or (len(parts) == 1 and (folded[0] in STOP_WORDS or parts[0].endswith("!"))):
        return False
    if len(parts) < 3:
        return not parts[-1].endswith("!") or parts[-1][0].isupper()
    heavy = [part for part, word in zip(parts, folded, strict=True) if len(word) > 3]
    return sum(part[0].isupper() for part in heavy) * 2 > len(heavy) or not heavy
