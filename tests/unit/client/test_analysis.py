"""The terms of a text, as a caller sees them."""

from __future__ import annotations

import pytest

import trivet


def test_a_text_has_the_terms_of_its_language() -> None:
    text = "The Häuser, getUserName INV-12345, the Häuser"
    assert trivet.terms(text) == ["hauser", "getusernam", "get", "user", "name", "inv12345", "inv", "12345", "hauser"]
    assert trivet.terms(text, "de")[1] == "haus"
    assert trivet.terms("the running", "simple") == ["the", "running"]
    with pytest.raises(trivet.InvalidInput, match="unknown language 'klingon'"):
        trivet.terms(text, "klingon")
