"""Finds what a query names by an exact identifier: a ticket, an order, an error code, a part of a hash.

`graph.tokenizer.identifier` is wider, as it finds what may be an entity: H2O and snake_case are, a bare number is not.
Here a word must have no other way to say it, so that memories without it are hardly meant.
"""

from __future__ import annotations

import re
from functools import lru_cache

from graph.dates import MONTHS
from graph.names import RUN
from retrieval.text.analysis import analyze
from retrieval.text.characters import prepare
from retrieval.text.words import MAX_WHOLE, chunks

_IDENTIFIER = re.compile(
    r"""
    # INV-20481, B12, v1.2; not WW2 and MP3, which have other names
    (?<![^\W_]) [^\W\d_]+ [-_]? \d [\d.]
    # 550e8400, UJTF3S; not 2h30
    | (?<![^\W_]) (?=[^\W_]{6}) [^\W_]* (?:\d [^\W\d_]+ \d | [^\W\d_] \d [^\W_])
    # 0xbeef, 05106ebb
    | (?<![^\W_]) (?:0x [\da-f] | (?=[\da-f]{7}) \d+ [a-f])
    # 4711-A; not 24-hour
    | \d{4} [-_] [^\W\d_] (?!\w)
    # 20481; not 50000, 50000th, or a part of 3.14159
    | (?<!\d) (?<!\d[.,]) (?!\d+000(?!\d)) \d{5,} (?![^\W_])
    # 192.168.10.25; not 12.05.2024
    | \d+ (?:\.\d+){3}
    """,
    re.IGNORECASE | re.VERBOSE,
)
_YEAR = r"(?:1[5-9]|20)\d\d"
_NONE = re.compile(
    rf"(?<![^\W\d_])(?:{'|'.join(MONTHS)}|fy|day|week|month|year|early|late|mid|pre|post|over|under|top)[-_]?"
    rf"(?:{_YEAR}|\d\d?)(?!\d)"
    rf"|(?<![^\W_])(?:q[1-4](?!\d)|{_YEAR}[-_]?(?:[hq][1-4]|w\d\d)(?![^\W_]))"
    rf"|(?<![\w-]){_YEAR}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?![\w-])",
    re.IGNORECASE,
)
"""Times, ages and ranks that look like an identifier: May-2024, mid-2009, Q3, week-12, 20240512, under-21, top-10."""

_NUMBERED = re.compile(r"(?:(?<![\w&])#|№\s?|(?<!\w)n(?:°|\.?º|r\.?)\s?)(?!(?:19|20)\d\d(?!\d))(\d{3,})", re.IGNORECASE)
"""#4711, n° 4711, № 4711, Nr. 4711; not #42 and #2024, nor HTML's &#160;. The sign is not part of the word."""

_LISTING = re.compile("[/,&]")


def find_identifiers(text: str) -> list[str]:
    """The words of a text that are identifiers, with the punctuation inside them, in text order.

    Letters mixed with more than one digit or, in a code of six characters, with one; at least five digits, or three
    after a number sign; or an address of four numbers. But no ordinal, quantity, rank, age, time or date, and nothing
    too long to be a term. "iPhone 12" is two words. A word that lists only identifiers is followed by these.

    >>> find_identifiers("Why did INV-20481 fail with ERR_5512 on the 2nd at 5pm?")
    ['INV-20481', 'ERR_5512']
    >>> find_identifiers("Who paid INV-20481/INV-20482?")
    ['INV-20481/INV-20482', 'INV-20481', 'INV-20482']
    """
    prepared = RUN.sub(" ", prepare(text))
    numbered, found = frozenset(_NUMBERED.findall(text)), list[str]()
    for word in chunks(prepared):
        if word in numbered or _is_identifier(word):
            members = _LISTING.split(word)
            found += [word, *members] if len(members) > 1 and all(map(_is_identifier, members)) else [word]
    return found


@lru_cache(maxsize=1_024)
def identifier_terms(text: str, language: str) -> frozenset[str]:
    """The terms of whole identifiers; their parts are terms of the text, too, such as the "e" of "E-412"."""
    return frozenset(analyze(identifier, language)[0] for identifier in find_identifiers(text))


def _is_identifier(word: str) -> bool:
    return len(word) <= MAX_WHOLE and bool(_IDENTIFIER.search(word)) and not _NONE.search(word)
