"""The speakers that a query names, and which speakers are assistants."""

from __future__ import annotations

import pytest

from retrieval.text.speakers import is_assistant, named_speakers


@pytest.mark.parametrize(
    ("text", "speakers", "named"),
    [
        ("What did Caroline say?", ["Caroline", "Melanie", None], {"Caroline"}),
        ("what did caroline and MELANIE say?", ["Caroline", "Melanie"], {"Caroline", "Melanie"}),
        ("Caroline's dog", ["Caroline"], {"Caroline"}),
        ("Carolines dog", ["Caroline"], set()),
        ("What did Ana Silva do?", ["Ana Silva", "Ana", "Silva Santos"], {"Ana Silva", "Ana"}),
        ("What did Mary Ann do?", ["Mary Ann", "Ann"], {"Mary Ann"}),
        ("What did Mary Ann and Ann do?", ["Mary Ann", "Ann"], {"Mary Ann", "Ann"}),
        ("Was sagte Jürgen?", ["Jürgen", "Jurgen", "Jörgen"], {"Jürgen", "Jurgen"}),
        ("What did Jose and Zoe say?", ["José", "Zoë", "Joseph"], {"José", "Zoë"}),
        ("李明住在哪里？", ["李明", "王芳", "住"], {"李明"}),
        ("山田太郎はどこですか", ["太郎", "山田太郎"], {"山田太郎"}),
        ("山田太郎と太郎はどこですか", ["太郎", "山田太郎"], {"太郎", "山田太郎"}),
        ("What did they say?", [None], set()),
        ("What did they say?", [], set()),
        ("", ["Ana"], set()),
    ],
)
def test_a_speaker_is_named_in_full(text: str, speakers: list[str | None], named: set[str]) -> None:
    assert named_speakers(text, speakers) == named


@pytest.mark.parametrize(
    ("text", "speakers", "named"),
    [
        ("What did Ana do?", ["Ana Silva", "Ben Silva"], {"Ana Silva"}),
        ("what did ana do?", ["Ana Silva"], {"Ana Silva"}),
        ("What did Ana do?", ["Ana Silva", "Ana Lima"], set()),
        ("What did Ana do?", ["Ana Silva", "Ana"], {"Ana"}),
        ("What did Ana Lima do?", ["Ana Lima", "Lima Costa"], {"Ana Lima"}),
        ("Where is Dave's shed?", ["Big Dave", "Big Ben"], {"Big Dave"}),
        ("What did Patel and TSHEPO say?", ["Dr. Patel", "Tshepo Mokoena"], {"Dr. Patel", "Tshepo Mokoena"}),
        ("Tshepo, what did patel say about Mokoena?", ["Dr. Patel", "Tshepo Mokoena"], set()),
        ("Что сказала Зинаида?", ["Зинаида Пална"], {"Зинаида Пална"}),
        ("What did Liz and Bill say?", ["Elizabeth", "William Orr"], {"Elizabeth", "William Orr"}),
        ("What did Elizabeth say?", ["Liz"], {"Liz"}),
        ("What did Liz say?", ["Elizabeth", "Liz"], {"Liz"}),
        ("What did Sam say of the bill?", ["Samuel", "Samantha", "William"], set()),
        ("When will it rain?", ["Will Smith"], set()),
        ("When did Will leave?", ["Will Smith"], {"Will Smith"}),
        ("What did we do in New York?", ["New Hire"], set()),
        ("WHAT IS MY ADDRESS?", ["My Mom"], set()),
        ("What did Mom say?", ["My Mom"], {"My Mom"}),
        ("What did Mr Smith buy?", ["Mr. T"], set()),
    ],
)
def test_a_speaker_is_named_by_a_short_name_of_nobody_else(text: str, speakers: list[str], named: set[str]) -> None:
    assert named_speakers(text, speakers) == named


def test_a_name_that_is_also_a_word_is_one_by_a_capital_inside_the_text() -> None:
    assert named_speakers("When will it rain?", ["Will"]) == set()
    assert named_speakers("Will it rain?", ["Will"]) == set()
    assert named_speakers("When did Will leave?", ["Will"]) == {"Will"}
    assert named_speakers("with grace", ["Gráce"]) == set()
    assert named_speakers("with Grace", ["Gráce"]) == {"Gráce"}


@pytest.mark.parametrize("speaker", ["assistant", "Assistant", " AI ", "bot", "Chatbot", "system"])
def test_the_machine_by_its_usual_names(speaker: str) -> None:
    assert is_assistant(speaker)


@pytest.mark.parametrize("speaker", [None, "", "user", "Ana", "assistant manager", "Aibot"])
def test_everybody_else_is_a_person(speaker: str | None) -> None:
    assert not is_assistant(speaker)
