"""Sessions that a query counts: "in our third session", "the last conversation"."""

from __future__ import annotations

import re
from typing import NamedTuple

from retrieval.text.time.tokens import ORDINALS

LAST = -1

_FIRST = {"last": LAST, "first": 1, "second": 2, "third": 3, "fourth": 4}
_INITIALS = "".join(sorted({word[0] for word in (*_FIRST, *ORDINALS)}))
_COUNTED = re.compile(
    rf"\b(?=[0-9{_INITIALS}])"  # few words of a query pass this, so few are compared with all ordinals
    r"(?P<which>last|first|second|third|fourth|[0-9]{1,3}(?:st|nd|rd|th)|"
    + "|".join(sorted(ORDINALS, key=len, reverse=True))
    + r")\b\s+(?:chat\s+)?(?:session|discussion|conversation|chat)\b(?!\s+(?:of|at|with(?!\s+(?:me|us|you)\b))\b)",
    re.IGNORECASE,
)


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
