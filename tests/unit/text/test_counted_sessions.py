"""Which session a query counts."""

import pytest

from retrieval.text.time.sessions import LAST, find_session


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("What did we talk about in our first session?", 1),
        ("in the 2nd conversation", 2),
        ("During the fifteenth chat session, what did Ada mention?", 15),
        ("our Twenty-Eighth discussion", 28),
        ("the thirtieth session", 30),
        ("your first conversation with me", 1),
        ("What came up in our last conversation?", LAST),
    ],
)
def test_ordinals_count_sessions(query: str, number: int) -> None:
    found = find_session(query)
    assert found
    assert found.number == number


@pytest.mark.parametrize(
    "query",
    [
        "How many sessions were there?",
        "the last session of parliament",
        "How was her second session with the physio?",
        "the 0th session",
        "a second opinion",
    ],
)
def test_other_words_count_none(query: str) -> None:
    assert find_session(query) is None
