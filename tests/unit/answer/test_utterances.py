"""What kind of turn a text is."""

from __future__ import annotations

import pytest

from retrieval.answer.utterances import is_empty, is_mere_question, is_short_reply
from tests.hanging import bounded


@pytest.mark.parametrize(
    ("text", "is_mere"),
    [
        ("Where do you live?!?", True),
        ("你住在哪里？", True),
        ("我住在波尔图。你呢？", False),
        ("أين تسكن؟", True),
        ("Πού μένεις;", True),
        ("Μένω στο Πόρτο; Εσύ;", False),
        ("मैं पोर्टो में रहता हूँ। और आप?", False),
        ("Is it 3.5 km?", True),
        ("Well... where do you live?", False),
        ("I live in Porto!! And you?", False),
        ("I live in Porto.", False),
    ],
)
def test_a_mere_question_is_one_sentence(text: str, is_mere: bool) -> None:
    assert is_mere_question(text) is is_mere


@pytest.mark.parametrize("piece", ["?", "？！", "a?", "? ", "'", "a'"])
def test_a_turn_made_to_be_slow_does_not_take_for_ever(piece: str) -> None:
    text = f"{(piece * 60_000)[:60_000]}x?"
    with bounded():
        is_empty(text)
        is_short_reply(text)
        is_mere_question(text)


def test_a_word_with_vowel_signs_is_one_word() -> None:
    assert is_short_reply("दो हफ़्तों के लिए")
