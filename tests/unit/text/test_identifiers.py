"""What is an identifier, and what only looks like one."""

from __future__ import annotations

import pytest

from retrieval.text.analysis import analyze
from retrieval.text.identifiers import find_identifiers


@pytest.mark.parametrize(
    "word",
    [
        *("INV-20481", "inv-20481", "INV-20000", "ERR_5512", "ERR_1999", "PROJ-85", "B12", "LH400", "covid-19"),
        *("0x8f3a", "0XBEEF", "550e8400", "05106ebb", "deadbe1f", "7GH2K9", "UJTF3S", "1Z999AA10123456784"),
        *("550e8400-e29b-41d4-a716-446655440000", "4711-A", "4711-a", "20481", "12345-67", "INV-20240512", "MAR-20481"),
        *("v1.2.3", "192.168.10.25", "bob42@x.org", "src/foo_bar27.py"),
    ],
)
def test_letters_with_digits_and_long_numbers_are_identifiers(word: str) -> None:
    assert find_identifiers(word) == find_identifiers(f"What about {word}, please?") == [word]


@pytest.mark.parametrize(
    "word",
    [
        *("2024", "1990s", "1990's", "1990s-2000s", "2014-15", "1564-1616", "May-2024", "may-5", "12May2024"),
        *(
            "mid-2009",
            "pre-2000",
            "Q3",
            "Q3-2024",
            "2024Q3",
            "2023h1",
            "2024-W05",
            "2024W05",
            "FY2024",
            "2024-05-12",
            "12.05.2024",
            "05/12/2024",
            "20240512",
        ),
        *("2nd", "509th", "50000th", "5pm", "7pm-9pm", "7:30pm", "2h30", "24/7"),
        *("week-12", "Day14", "top-10", "under-21", "over-60s", "Top10"),
        *("10k", "10K-20K", "5G", "100km", "15000km", "$1,200", "1,000,000", "50000", "3.14159", "48.85661"),
        *("24-hour", "3-bedroom", "5-year-old", "1500-word", "7-Eleven", "4711", "C++", "C#", "Jean-Luc", "日本2020年"),
        *("WW2", "H2O", "MP3", "PS5", "type-2", "omega-3"),
    ],
)
def test_times_quantities_ordinals_and_words_are_none(word: str) -> None:
    assert find_identifiers(word) == find_identifiers(f"What about {word}, please?") == []


@pytest.mark.parametrize(
    ("word", "members"),
    [
        ("INV-20481/ERR_5512", ["INV-20481", "ERR_5512"]),
        ("20481,20482,20483", ["20481", "20482", "20483"]),
        ("INV-20481&l'INV-20482", ["INV-20481", "l'INV-20482"]),
        ("x.org/INV-20481", []),
        ("src/foo_bar27.py", []),
        ("20481/2024", []),
    ],
)
def test_a_list_without_spaces_has_its_members(word: str, members: list[str]) -> None:
    """Besides itself, as compound numbers are written like this, too; but not the parts of a path."""
    assert find_identifiers(word) == [word, *members]


@pytest.mark.parametrize(
    "text",
    [
        *("#4711", "Who fixed (#4711)?", "order #4711, please", "#4711/#2024", "4711 or #4711"),
        *(
            "la commande n° 4711",
            "N°4711",
            "n.º 4711",
            "el pedido nº 4711",
            "заказ № 4711",
            "Auftrag Nr. 4711",
            "nr 4711",
        ),
    ],
)
def test_a_number_with_its_sign_is_one(text: str) -> None:
    assert set(find_identifiers(text)) == {"4711"}


@pytest.mark.parametrize(
    "text", ["our #1", "the #42 bus", "#2024", "#1999", "C#4711", "&#160;", "4711 #", "en 4711", "n° 42", "Nr. 2024"]
)
def test_short_numbers_and_years_with_the_sign_are_none(text: str) -> None:
    assert find_identifiers(text) == []


def test_what_is_too_long_to_be_a_term_is_none() -> None:
    """Only its parts are terms, and the first of these may be any word."""
    path = "x.org/notes/" + "a12/" * 40
    assert len(analyze(path)) > 30
    assert find_identifiers(path) == []


@pytest.mark.parametrize("word", ["l'INV-20481", "dell’INV-20481", "INV-20481's", "INV-20481'in", "l'INV-20481's"])
def test_what_is_joined_to_an_identifier_by_an_apostrophe_is_no_part_of_its_term(word: str) -> None:
    """An article, a clitic or a suffix."""
    [found] = find_identifiers(f"{word} ?")
    assert analyze(found)[0] == "inv20481"


def test_scripts_without_spaces_end_an_identifier() -> None:
    assert find_identifiers("订单INV-20481的状态") == ["INV-20481"]
