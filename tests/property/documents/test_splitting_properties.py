"""Invariants of splitting, for any text and structure."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.documents.splitting import (
    CHUNK_PIECES,
    MAX_CHUNK_CHARS,
    SMALL_PIECES,
    DocumentSplitter,
    Structure,
    headings,
)
from retrieval.installation import models_dir
from retrieval.text.word_pieces import TOKENIZER_FILE, count_pieces, load_tokenizer

STRUCTURES: list[Structure] = ["markdown", "text", "code", "table"]

PARTS = st.sampled_from(
    [
        "# Tea\n", "## Green tea\n\n", "Black tea\n=========\n", "A title\n-------\n", "```\n", "class Tea:\n",
        "    def brew(self):\n", "\n\n", "\n", " ", "| a | b |\n", "|--|--|\n", "- item\n",
        "Steep it for three minutes. ", "\t", "word " * 150, "x" * 5_000, "東京タワー", "🎉", "\u2028", "\r\n",
        "a" * 90 + " ", "--- ", "***\n", "\x0c",
    ]
)  # fmt: skip
TEXTS = st.lists(PARTS | st.text(st.characters(codec="utf-8"), max_size=20), max_size=40).map("".join)


@cache
def splitter() -> DocumentSplitter:
    return DocumentSplitter(count_pieces)


@settings(deadline=None)
@given(TEXTS, st.sampled_from(STRUCTURES))
def test_chunks_are_the_text_and_fit_the_window(text: str, structure: Structure) -> None:
    """Joined they are the text; none is blank or too long; a blank text has none."""
    chunks = splitter().split(text, structure)
    assert "".join(chunk.text for chunk in chunks) == (text if text.strip() else "")
    assert all(chunk.text.strip() for chunk in chunks)
    for chunk in chunks:
        assert count_pieces(chunk.text) <= CHUNK_PIECES + SMALL_PIECES
        assert len(chunk.text.strip()) <= MAX_CHUNK_CHARS


@settings(deadline=None)
@given(TEXTS)
def test_pieces_are_counted_as_the_tokenizer_does(text: str) -> None:
    tokenizer = load_tokenizer(models_dir() / TOKENIZER_FILE)
    assert count_pieces(text) == len(tokenizer.encode(text, add_special_tokens=False).ids)


@settings(deadline=None)
@given(TEXTS, st.sampled_from(STRUCTURES))
def test_headings_are_where_they_say(text: str, structure: Structure) -> None:
    """In the text's order, each with its title in its own lines."""
    found = list(headings(text, structure))
    assert [each.start for each in found] == sorted(each.start for each in found)
    for each in found:
        assert each.title.strip()
        assert each.title in text[each.start : each.end]


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("piece", ["#", "`", "|", "[", ">", "* ", "- ", "=", "x\n", "# a\n", "\n", "(", "a.", "١"])
def test_hostile_texts_are_split(piece: str, structure: Structure) -> None:
    """Of one thing over and over."""
    text = piece * 3_000 + "end"
    assert "".join(chunk.text for chunk in splitter().split(text, structure)) == text
