"""Redaction of a query before it is logged, and the resulting entry."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from retrieval.journal.query_log import AnsweredSearch, entry_of, keyed_hash, redact, redacted_filters
from retrieval.types.namespace import QueryLogSettings, Redaction
from retrieval.types.search import Filters, SearchRequest
from tests.hanging import bounded

ASKED = "Did ana@example.org call +44 20 7946 0958 about https://example.org/x?y=1 on 2024-05-01?"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ASKED, "Did [email] call [phone] about [url] on 2024-05-01?"),
        ("Write to (Ana@Example.org), please", "Write to [email] please"),
        ("who is ana@localhost", "who is [email]"),
        ("ask ana＠example.org", "ask [email]"),
        ("@ana said so", "@ana said so"),
        ("see www.example.org and example.org/a/b", "see [url] and [url]"),
        ("what is in notes.md", "what is in notes.md"),
        ("call (555) 123-4567 or 0170/1234567", "call [phone] or [phone]"),
        ("call 0 1 7 0 1 2 3 4", "call [phone]"),
        ("call ٠١٧٠١٢٣٤٥٦٧", "call [phone]"),
        ("room 123456 in 2024", "room 123456 in 2024"),
        ("on 2024-05-01 14:30 and 1.5.2024", "on 2024-05-01 14:30 and 1.5.2024"),
        ("on 2024-05-01-1234567", "on [phone]"),
        ("on 2024-55-01", "on [phone]"),
        ("", ""),
    ],
)
def test_addresses_are_taken_out(text: str, expected: str) -> None:
    assert redact(text, QueryLogSettings().redact) == expected


@pytest.mark.parametrize(
    ("redactions", "expected"),
    [
        ([], ASKED),
        (["email"], ASKED.replace("ana@example.org", "[email]")),
        (["number"], "Did ana@example.org call +[number] [number] [number] [number] about https://example.org/x?y=[number]"
         " on [number]-[number]-[number]?"),
        (["email", "all"], ""),
    ],
)  # fmt: skip
def test_what_is_named_and_nothing_else(redactions: list[Redaction], expected: str) -> None:
    assert redact(ASKED, redactions) == expected


@pytest.mark.parametrize("piece", ["a", "1", "1 ", "@", "a@", ".", "a.", "(1", "+", "://", " ", "1.1.", "2024-05-0"])
def test_a_query_made_to_be_slow_does_not_take_for_ever(piece: str) -> None:
    """The longest query of one repeated piece."""
    with bounded():
        redact((piece * 8_192)[:8_192], ["email", "phone", "number", "url"])


@pytest.mark.parametrize(
    "filters",
    [
        {"speaker": ["ana@example.org"]},
        {"metadata": {"user": {"mail": ["ana@example.org"]}}},
        {"metadata": {"ana@example.org": True}},
        {"metadata": {"phone": 442079460958}},
        {"session_id": ["+44 20 7946 0958"]},
    ],
)
def test_filters_are_withheld_whole(filters: dict[str, Any]) -> None:
    """Partly redacted, they would be different filters."""
    given = msgspec.convert(filters, Filters)
    assert redacted_filters(given, QueryLogSettings().redact) is None
    assert redacted_filters(given, []) == given


def test_harmless_filters_stay() -> None:
    given = Filters(kind=["message"], tags_any=["chat"], created_after=datetime(2024, 5, 1, tzinfo=UTC))
    assert redacted_filters(given, QueryLogSettings().redact) == given
    assert redacted_filters(given, ["all"]) is None
    assert redacted_filters(Filters(created_after=given.created_after), ["all"]) is not None


def searched(query: str, **fields: Any) -> AnsweredSearch:
    return AnsweredSearch(
        search_id="s1",
        request=SearchRequest(query=query, as_of=datetime(2024, 5, 1, tzinfo=UTC), **fields),
        profile="default@3",
        intent="fact_lookup",
        ids=["b", "a"],
        scores=[0.5, 0.25],
        total_ms=4.5,
    )


def test_an_entry_holds_what_was_asked_and_answered() -> None:
    entry = entry_of(searched("Where is ana@example.org?"), QueryLogSettings(), b"")
    assert (entry.id, entry.query, entry.query_chars, entry.query_hash) == ("s1", "Where is [email]", 25, None)
    assert [(result.id, result.score) for result in entry.results or ()] == [("b", 0.5), ("a", 0.25)]
    assert (entry.mode, entry.profile, entry.intent, entry.total_ms) == ("adaptive", "default@3", "fact_lookup", 4.5)
    assert (entry.filters, entry.as_of) == (Filters(), datetime(2024, 5, 1, tzinfo=UTC))


def test_an_entry_withholds_filters_with_something_to_redact() -> None:
    """As the query's text does not name it: what callers filter by says who they are, too."""
    filters = Filters(speaker=["ana@example.org"])
    asked = searched("Where is she?", filters=filters)
    assert entry_of(asked, QueryLogSettings(), b"").filters is None
    assert entry_of(asked, QueryLogSettings(redact=()), b"").filters == filters


def test_an_entry_without_text_tells_repeats_apart_from_others() -> None:
    """By a hash that differs with another key."""
    settings = QueryLogSettings(redact=("all",), store_results=False)
    one, again, other = (entry_of(searched(query), settings, b"key") for query in ("Where?", "Where?", "Who?"))
    assert (one.query, one.query_chars, one.results) == (None, 6, None)
    assert one.query_hash == again.query_hash != other.query_hash
    assert keyed_hash("Where?", b"another key") != one.query_hash
    assert keyed_hash("what do ya want for nothing?", b"Jefe") == "5bdcc146bf60754e6a042426089575c7"  # RFC 4231
    assert "Where?" not in msgspec.json.encode(one).decode()
