"""Sessions that a query counts: "in our third session", "the last conversation"."""

from __future__ import annotations

import re
from typing import NamedTuple

from retrieval.text.time.tokens import ORDINALS

LAST = -1

_COUNTED = re.compile(
    r"(?P<which>\b(?:last|first|second|third|fourth)\b|\b[0-9]{1,3}(?:st|nd|rd|th)\b|"
    + "|".join(rf"\b{word}\b" for word in sorted(ORDINALS, key=len, reverse=True))
    + r")\s+(?:chat\s+)?(?:session|discussion|conversation|chat)\b(?!\s+of\b)",
    re.IGNORECASE,
)
_FIRST = {"last": LAST, "first": 1, "second": 2, "third": 3, "fourth": 4}


class CountedSession(NamedTuple):
    """A session by its place in time, from 1, or `LAST`; and where the query says so."""

    number: int
    span: tuple[int, int]


def find_session(query: str) -> CountedSession | None:
    """The session that a query counts.

    >>> find_session("What did we talk about in our twenty-first session?").number
    21
    >>> find_session("What did the last session of parliament decide?")
    """
    found = _COUNTED.search(query)
    if found is None:
        return None
    which = found["which"].lower()
    number = _FIRST.get(which) or int(re.sub(r"\D", "", ORDINALS.get(which, which)))
    return CountedSession(number, found.span()) if number else None
