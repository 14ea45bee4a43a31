"""Keys of names."""

from __future__ import annotations

import pytest

from graph.names import MAX_KEY_CHARS, entity_id, name_tokens, normalize, singular_key


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("The Beatles", "beatles"),
        ("Caroline\u2019s", "caroline"),
        ("Caroline's", "caroline"),
        ("O'Brien", "o brien"),
        ("  New\u00a0York ", "new york"),
        ("ＡＢＣ", "abc"),
        ("Stra\u00dfe", "strasse"),
        ("cafe\u0301", "caf\u00e9"),
        ("ABC-123", "abc 123"),
        ("snake_case", "snake_case"),
        ("C++", "c++"),
        ("C#", "c#"),
        ("C", "c"),
        ("#python", "python"),
        ("The", "the"),
        ("हिन्दी", "हिन्दी"),
        ("\U0001f389", "\U0001f389"),
        ("!!!", "!!!"),
        (" \t", ""),
        ("\ud800", ""),
    ],
)
def test_a_name_has_the_key(name: str, key: str) -> None:
    assert normalize(name) == key


def test_an_entity_number_is_stable() -> None:
    """It is stored: a change of the hash would cut every graph from its names."""
    assert entity_id("caroline") == -6478114694298055261


def test_keys_and_tokens_are_bounded() -> None:
    key = normalize("\ufdfa" * 300)
    assert 0 < len(key) <= MAX_KEY_CHARS
    assert all(len(token) <= 64 for token in name_tokens("x" * 200 + " y"))


def test_tokens_are_distinct_and_in_order() -> None:
    assert name_tokens("new york new york") == ("new", "york")


@pytest.mark.parametrize("name", ["Andreas", "Nicolas", "Carlos", "Marcos", "Jens", "Lucas", "Andrés", "James"])
def test_a_name_that_ends_like_a_plural_is_none(name: str) -> None:
    """Andreas is not Andrea."""
    assert singular_key(normalize(name)) == normalize(name)


def test_the_singular_keeps_names_apart_from_their_plural_only() -> None:
    assert singular_key("support groups") == "support group"
    assert singular_key("glass bus") == "glass bus"
