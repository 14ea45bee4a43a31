"""Checks of a memory before it is written, whichever way it comes."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from retrieval.errors import InvalidInput
from retrieval.ingest.checks import drafts_of
from retrieval.types.memory import AddResult, MemoryInput
from retrieval.validation import parse_memory


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"id": ".."}, "id: "),
        ({"session_id": "."}, "session_id: "),
        ({"metadata": {"a": "x" * 65_536}}, "metadata: must take at most 64 KB as JSON"),
        ({"metadata": {"a": list(range(100_000))}}, "metadata: must take at most 64 KB as JSON"),
        ({"metadata": {"a": object()}}, "metadata: must be JSON"),
        ({"created_at": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=9)))}, "created_at: must be in the years"),
        (
            {"metadata": {"a": [[1], {"b": "\ud800"}]}},
            "metadata.a.1.b: must not contain a null byte or half a surrogate",
        ),
    ],
)
def test_a_bad_memory_rejects_itself_and_no_other(fields: dict[str, Any], error: str) -> None:
    results: dict[int, AddResult] = {}
    drafts = drafts_of([MemoryInput(text="bad", **fields), MemoryInput(text="good")], results)
    assert [draft.input.text for draft in drafts] == ["good"]
    assert results[0].status == "rejected"
    assert (results[0].error or "").startswith(error)


def test_names_that_are_empty_are_none() -> None:
    """No document can be written in several ways, all of which give the same memory."""
    given = MemoryInput(id="a", text="x", title="", speaker="", session_id="", document_id="")
    (draft,) = drafts_of([given], {})
    (plain,) = drafts_of([MemoryInput(id="a", text="x")], {})
    assert (draft.input, draft.fingerprint) == (plain.input, plain.fingerprint)


def test_far_too_much_metadata_are_refused_before_they_are_decoded() -> None:
    """Their content, such as a number that cannot be decoded, is not read."""
    numbers = b"1," * 200_000 + b"1e999"
    refused = parse_memory(b'{"text": "a", "metadata": {"a": [' + numbers + b"]}}", 3)
    assert isinstance(refused, InvalidInput)
    assert (str(refused), refused.loc) == ("must take at most 64 KB as JSON", ("memories", 3, "metadata"))
