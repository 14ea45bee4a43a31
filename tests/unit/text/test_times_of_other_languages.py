"""Times in other languages mean the same as the English beside them in the list."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from graph.dates import MONTHS
from retrieval.text.time.other_languages import ENGLISH, NUMBERS
from retrieval.text.time.periods import find_periods

ASKED_AT = datetime(2023, 6, 15, 18, 30, tzinfo=UTC)


def times(text: str) -> list[str]:
    return [str(period) for period in find_periods(text, asked_at=ASKED_AT)]


@pytest.mark.parametrize(("phrase", "english"), ENGLISH.items())
def test_a_time_means_the_english(phrase: str, english: str) -> None:
    before, after = ("", " 2022") if english in MONTHS else ("x ", " x")
    said, meant = (text.format(3) for text in (phrase, english))
    assert times(f"{before}{said}{after}") == times(f"{before}{meant}{after}") != []
    assert times(said.capitalize() + after) == times(meant + after)


@pytest.mark.parametrize(("word", "number"), NUMBERS.items())
def test_a_number_is_also_a_word(word: str, number: int) -> None:
    phrase = "三天前".replace("三", word) if len(word) == 1 and word > "\u4e00" else f"vor {word} tagen"
    assert times(phrase) == times(f"{number} days ago") != []
