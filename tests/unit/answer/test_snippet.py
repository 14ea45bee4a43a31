"""Snippets: short, around the match, cut where it does not hurt."""

import pytest

from retrieval.answer.snippet import MAX_CHARS, SEARCHED_CHARS, snippet
from retrieval.errors import InvalidInput

ENGLAND = "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
FILL = "Nothing much of note took place here. " * 20


def test_a_short_text_comes_whole_and_squeezed() -> None:
    for text in ("  I like\n\n tea \t now ", " I like tea now", "I like tea now "):
        assert snippet(text, "tea") == "I like tea now"


def test_the_match_is_inside_with_an_ellipsis_on_each_cut_side() -> None:
    shown = snippet(FILL + "Caroline joined the choir. " + FILL, "When did Caroline join?")
    assert "Caroline joined the choir." in shown
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert 200 <= len(shown) <= MAX_CHARS
    assert abs(shown.index("Caroline") - MAX_CHARS / 2) < 30


def test_a_match_at_either_end_is_cut_on_the_other_side_only() -> None:
    first, last = snippet("Choir! " + FILL, "choir"), snippet(FILL + "A choir.", "choir")
    assert first.startswith("Choir!")
    assert first.endswith("…")
    assert last.startswith("…")
    assert last.endswith("A choir.")
    assert len(first) <= MAX_CHARS
    assert len(last) <= MAX_CHARS


def test_without_a_match_it_is_the_beginning() -> None:
    assert snippet(FILL, "zebra").startswith("Nothing much of note")


def test_stems_match_in_a_language_and_words_in_simple() -> None:
    text = FILL + "They were running home. " + FILL
    assert "running" in snippet(text, "runs", "english")
    assert "running" not in snippet(text, "runs", "simple")


def test_function_words_are_not_what_matched() -> None:
    shown = snippet("Where it was, it was. " + FILL + "The choir sang. " + FILL, "where was the choir")
    assert "choir" in shown


def test_parts_of_an_identifier_are_not_what_matched_if_the_whole_is_there() -> None:
    text = f"Plan E: {FILL}The oven shows error E-412. {FILL}"
    assert "E-412" in snippet(text, "What does E-412 mean?")
    assert snippet(text, "What does E-413 mean?").startswith("Plan E")


def test_words_stay_whole() -> None:
    text = FILL + "choir " + FILL
    words = set(text.split())
    assert set(snippet(text, "choir").strip("…").split()) <= words
    assert snippet("one two three four five six seven", "four", max_chars=18) == "…three four five…"


@pytest.mark.parametrize(
    ("query", "found", "fill"),
    [
        ("東京タワー", "喝茶在東京タワー", "我们在北方的大城市里"),
        ("茶", "喝茶在東京タワー", "我们在北方的大城市里"),
        ("กุญแจสำรอง", "กุญแจสำรอง", "ที่นี่มีน้ำดื่ม"),  # most characters have marks
    ],
)
def test_scripts_without_spaces_are_searched(query: str, found: str, fill: str) -> None:
    text = fill * 60 + found + fill * 60
    shown = snippet(text, query)
    assert found in shown
    assert len(shown) <= MAX_CHARS


@pytest.mark.parametrize("unit", ["👨‍👩‍👧", "👍🏽", "🇳🇴", "q\u0323\u0307", "วั", "น้ำ", "क्ष", ENGLAND])
def test_a_grapheme_is_not_cut(unit: str) -> None:
    """Also where a match in the middle makes both ends fall anywhere."""
    for shift in range(len(unit)):
        shown = snippet(unit * 100 + " choir " + "x" * shift + " " + unit * 100, "choir").strip("…")
        left, _, right = shown.partition(" choir ")
        assert left.replace(unit, "") == ""
        assert right.lstrip("x").strip().replace(unit, "") == ""


@pytest.mark.parametrize("text", ["a" * 1_000, "\ud83d" * 1_000, "\u0301" * 1_000, "…" * 1_000, "\x00" * 999])
def test_hopeless_texts_stay_within_bounds(text: str) -> None:
    assert 0 < len(snippet(text, "a")) <= MAX_CHARS


@pytest.mark.parametrize("query", ["", "?!", "😀", "the"])
def test_a_query_without_words_gives_the_beginning(query: str) -> None:
    assert snippet("Nothing " * 100, query).startswith("Nothing")


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(InvalidInput):
        snippet(FILL, "choir", "klingon")


def test_a_long_text_is_searched_as_far_as_that_is_quick() -> None:
    text = "water " * (SEARCHED_CHARS // 6) + "kettle " + "water " * 1_000
    assert "kettle" in snippet(text[100:], "kettle")
    assert snippet(text, "kettle").startswith("water water")
