"""The word lists of graph/data."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest

from graph.stopwords import word_list
from retrieval.text.languages import LANGUAGES

DATA = Path(str(resources.files("graph"))) / "data"
NAMES = sorted(path.relative_to(DATA).with_suffix("").as_posix() for path in DATA.rglob("*.txt"))


@pytest.mark.parametrize("name", NAMES)
def test_a_list_has_words_in_lower_case_and_no_comments(name: str) -> None:
    words = word_list(name)
    assert len(words) > 20
    assert all(word == word.casefold() and not word.startswith("#") for word in words)


def test_every_list_of_stop_words_belongs_to_a_language() -> None:
    """And the languages with stop words are those that have a list, and `auto`."""
    listed = {name.removeprefix("stop_words/") for name in NAMES if name.startswith("stop_words/")}
    assert {name for name, language in LANGUAGES.items() if language.stops} == listed | {"auto"}


def test_words_that_name_things_are_no_stop_words() -> None:
    assert LANGUAGES["english"].stops.isdisjoint({"may", "us"})
    assert {"the", "didn't"} <= LANGUAGES["english"].stops
