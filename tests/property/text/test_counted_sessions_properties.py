"""Sessions that a query counts are found wherever a plain regular expression finds them."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from retrieval.text.time.sessions import _COUNTED
from retrieval.text.time.tokens import ORDINALS

PLAIN = re.compile(
    r"(?P<which>\b(?:last|first|second|third|fourth)\b|\b[0-9]{1,3}(?:st|nd|rd|th)\b|"
    + "|".join(rf"\b{word}\b" for word in sorted(ORDINALS, key=len, reverse=True))
    + r")\s+(?:chat\s+)?(?:session|discussion|conversation|chat)\b(?!\s+of\b)",
    re.IGNORECASE,
)
WORDS = st.sampled_from(
    [*ORDINALS, "last", "FIRST", "ſecond", "Third", "fourth", "1st", "22nd", "103rd", "1234th", "²th", "the", "of", "s"]
)
NOUNS = st.sampled_from(["session", "Chat", "chat session", "conversation of", "discussion", "sessions", "ſession"])
QUERIES = st.lists(WORDS | NOUNS | st.sampled_from(["", "-", "_", "\n"]) | st.text(max_size=3), max_size=8)


@given(QUERIES, st.sampled_from(["", " "]))
def test_the_same_is_found_as_by_a_plain_expression(pieces: list[str], between: str) -> None:
    query = between.join(pieces)
    found, expected = _COUNTED.search(query), PLAIN.search(query)
    assert (found and found.span()) == (expected and expected.span())
    assert (found and found["which"]) == (expected and expected["which"])
