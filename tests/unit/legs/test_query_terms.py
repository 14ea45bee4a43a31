"""The terms of a query that names a time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from retrieval.legs.query_terms import QueryTerms


@pytest.mark.parametrize("time", ["yesterday evening", "half an hour ago", "a few mins ago", "earlier in the week"])
def test_words_that_only_name_a_time_are_not_searched(time: str) -> None:
    asked_at = datetime(2023, 6, 15, 18, 30, tzinfo=UTC)
    plain, timed = (
        QueryTerms.from_query(query, "english", asked_at=asked_at)
        for query in ("What did we cook?", f"What did we cook {time}?")
    )
    assert set(timed.terms.values()) <= {*plain.terms.values(), "half"}
    assert timed.periods


def test_words_that_only_name_a_time_in_another_language_are_not_searched() -> None:
    asked_at = datetime(2023, 6, 15, 18, 30, tzinfo=UTC)
    timed = QueryTerms.from_query("Was haben wir letzte Woche gekocht?", "german", asked_at=asked_at)
    assert set(timed.terms.values()) == {"gekocht"}
    assert timed.periods
