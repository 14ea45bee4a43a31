"""Answers in notebooks."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

import trivet

DAY = datetime(2024, 3, 4, tzinfo=UTC)
HOSTILE = "<script>alert('x')</script> & " + "long " * 100


def _answer(*texts: str) -> trivet.SearchResponse:
    results: list[dict[str, Any]] = [
        {"id": f"m{number}", "text": text, "snippet": text, "title": None, "kind": "memory", "speaker": "Ana",
         "session_id": None, "document_id": None, "created_at": DAY, "tags": [], "metadata": {}, "score": 0.25,
         "fused": {"rank": 1, "score": 0.25}, "legs": {}}
        for number, text in enumerate(texts)
    ]  # fmt: skip
    fields: dict[str, Any] = {
        "results": results,
        "intent": {"label": "fact_lookup", "probabilities": {"fact_lookup": 1.0}},
        "weights": {},
        "profile": "p@1",
        "degraded": [],
        "timings_ms": {},
    }
    return msgspec.convert(fields, trivet.SearchResponse)


def _pack(context: str) -> trivet.ContextResponse:
    item = {"id": "<m1>", "tokens": 3, "citation": "[1]"}
    fields: dict[str, Any] = {
        "context": context,
        "tokens_used": 3,
        "max_tokens": 9,
        "items": [item],
        "dropped": [],
        "intent": None,
    }
    return msgspec.convert(
        {**fields, "weights": {}, "profile": "p@1", "degraded": [], "timings_ms": {}}, trivet.ContextResponse
    )


def test_a_notebook_shows_a_table_without_markup_of_memories() -> None:
    page = _answer(HOSTILE, "b")._repr_html_()
    assert page.count("<tr>") == 3
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "…" in page
    assert _answer()._repr_html_() == "<p>nothing found</p>"
    pack = _pack(HOSTILE)._repr_html_()
    assert pack.startswith("<pre>&lt;script&gt;")
    assert "<td>&lt;m1&gt;</td>" in pack


def test_a_notebook_shows_no_fields_that_are_not_there() -> None:
    added = trivet.AddResult(id="m1", status="created")
    assert repr(added) == "AddResult(id='m1', status='created')"
    assert "UNSET" not in repr(_answer("tea")) + repr(_pack("tea"))


def test_pandas_takes_the_rows() -> None:
    pandas = pytest.importorskip("pandas")
    frame = _answer("a", "b").to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["id"].tolist() == ["m0", "m1"]
    assert frame["rank"].tolist() == [1, 2]
    assert _pack("x").to_pandas()["citation"].tolist() == ["[1]"]


def test_without_pandas_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match="pip install pandas"):
        _answer("a").to_pandas()


def test_an_answer_is_encoded_as_its_fields_alone() -> None:
    assert msgspec.to_builtins(_answer("a")).keys() >= {"results", "profile"}
    assert "table_rows" not in msgspec.to_builtins(_answer("a"))
