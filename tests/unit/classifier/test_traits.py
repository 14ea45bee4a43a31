"""What kind of statement a text is, by its form: packed as stored, unpacked as served."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifier.traits import MEMORY_TRAITS, QUERY_TRAITS, pack_traits, query_traits, unpack_traits


def traits_of(text: str) -> dict[str, float]:
    traits, _ = unpack_traits([pack_traits(text)])
    return dict(zip(MEMORY_TRAITS, traits[0].tolist(), strict=True))


def words_of(text: str) -> float:
    return math.expm1(float(unpack_traits([pack_traits(text)])[1][0]))


@pytest.mark.parametrize(
    ("text", "present"),
    [
        ("where is it?", {"asks", "asked"}),
        ("where is it?  \n", {"asks", "asked"}),
        ("where is it? it is here.", {"asked"}),
        ("どこですか？", {"asks", "asked"}),
        ("どこですか？そこです。", {"asked"}),
        ("it has 12 rooms", {"digit"}),
        ("it was built in 1648", {"digit", "year"}),
        ("it costs 12019 crowns", {"digit"}),
        ("they left on friday", {"date"}),
        ("the fridays of old", set()),
        ("my dog sleeps", {"first_person"}),
        ("mymy dog sleeps", set()),
        ("she prefers nothing, but would rather avoid it", {"liking"}),
        ("the lovely glove", set()),
        ("Rome is a city", set()),
        ("a city named Rome", {"capitals"}),
        ("it ends. Rome begins", set()),
        ("the NATO summit", set()),
        ("yours truly and your friend", {"you"}),
        ("yours truly", set()),
        ("def f(x): return a[x] + {}", {"symbols"}),
        (
            "the end of it all (or so it seemed to those who were there, and others who heard of it much later on)",
            set(),
        ),
        ("", set()),
        ("tout va bien", set()),
        ("Жду тебя в 5 часов", {"digit"}),
    ],
)
def test_each_trait_is_told_by_its_words(text: str, present: set[str]) -> None:
    assert {name for name, value in traits_of(text).items() if value} == present


def test_case_does_not_matter_where_it_does_not_in_english() -> None:
    assert traits_of("I LOVE MONDAYS, MY FRIEND, DO YOU") == traits_of("i love mondays, my friend, do you")


@pytest.mark.parametrize(
    ("name", "one", "most"), [("first_person", " my", 3), ("liking", " love", 3), ("capitals", " of Rome", 5)]
)
def test_occurrences_count_as_far_as_there_is_room(name: str, one: str, most: int) -> None:
    """And leave the other traits alone."""
    for times in range(most + 3):
        traits = traits_of("so" + one * times)
        assert traits.pop(name) == pytest.approx(min(times, most) / most)
        assert not any(traits.values())


@pytest.mark.parametrize(("symbols", "share"), [(0, 0), (2, 0), (4, 1 / 3), (9, 2 / 3), (15, 1), (60, 1)])
def test_symbols_count_by_the_character(symbols: int, share: float) -> None:
    """One in twenty is a step, in whatever script."""
    for letter in ("a", "あ"):
        text = "#" * symbols + letter * (100 - symbols)
        assert traits_of(text)["symbols"] == pytest.approx(share)


def test_of_a_long_text_the_end_tells_whether_it_asks_and_the_beginning_the_rest() -> None:
    long = "a " * 3_000 + "I love Rome in 1999, do you?"
    assert {name for name, value in traits_of(long).items() if value} == {"asks", "asked"}
    assert words_of(long) == pytest.approx(3_007, rel=1e-5)


@pytest.mark.parametrize(("words", "counted"), [(0, 0), (1, 1), (65_535, 65_535), (70_000, 65_535)])
def test_words_are_counted_up_to_what_fits(words: int, counted: int) -> None:
    assert words_of("a " * words) == pytest.approx(counted, rel=1e-5, abs=1e-6)


@given(st.text(max_size=300) | st.text("I my love? Rome 2019 you\n.", max_size=300))
def test_every_text_fits_a_column_of_four_bytes(text: str) -> None:
    packed = pack_traits(text)
    assert 0 <= packed < 2**31
    traits, words = unpack_traits([packed])
    assert traits.dtype == words.dtype == np.float32
    assert ((traits >= 0) & (traits <= 1)).all()
    assert words[0] == pytest.approx(math.log1p(min(len(text.split()), 65_535)), rel=1e-6)


@given(st.lists(st.text("I love? Rome 2019\n.", max_size=40), max_size=8))
def test_texts_are_unpacked_each_on_its_own(texts: list[str]) -> None:
    traits, words = unpack_traits([pack_traits(text) for text in texts])
    assert traits.shape == (len(texts), len(MEMORY_TRAITS))
    assert words.shape == (len(texts),)
    for row, text in zip(traits.tolist(), texts, strict=True):
        assert dict(zip(MEMORY_TRAITS, row, strict=True)) == traits_of(text)


@pytest.mark.parametrize(
    ("text", "present"),
    [
        ("When did she leave?", {"when", "question_mark"}),
        ("WHERE does my sister live", {"where", "first_person"}),
        ("who is that", {"who"}),
        ("how many dogs", {"how_many", "how"}),
        ("how much is it", {"how_much", "how"}),
        ("how long did it take", {"how_long", "how"}),
        ("why, and in which year", {"why", "which"}),
        ("what would she do", {"what", "supposing"}),
        ("recommend a good restaurant", {"suggesting"}),
        ("room 101", {"digit"}),
        ("whatever, whose show", set()),
        ("哪一天？", {"question_mark"}),
        ("", set()),
    ],
)
def test_a_query_is_told_by_its_question_words_and_form(text: str, present: set[str]) -> None:
    values = dict(zip(QUERY_TRAITS, query_traits(text), strict=True))
    assert values.pop("words") == pytest.approx(math.log1p(len(text.split())) / 3)
    assert {name for name, value in values.items() if value} == present
    assert set(values.values()) <= {0.0, 1.0}
