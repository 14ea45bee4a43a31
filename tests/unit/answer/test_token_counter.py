"""Token counts that texts cannot manipulate."""

import pytest
from tokenizers import Tokenizer

from retrieval.answer.token_counter import count_tokens
from retrieval.installation import models_dir
from retrieval.text.word_pieces import TOKENIZER_FILE


@pytest.mark.parametrize(
    "text", ["Hello, world!", "I went to the LGBTQ support group.", "unbelievable antidisestablishmentarianism", "café"]
)
def test_known_words_count_as_the_tokenizer_says(text: str) -> None:
    tokenizer = Tokenizer.from_file(str(models_dir() / TOKENIZER_FILE))
    assert count_tokens(text) == len(tokenizer.encode(text, add_special_tokens=False).ids)


def test_hand_counted() -> None:
    assert count_tokens("hello, world") == 3
    assert count_tokens("[1] see it") == 5  # [ 1 ] see it


@pytest.mark.parametrize("text", ["", " \n\t "])
def test_whitespace_is_free(text: str) -> None:
    assert count_tokens(text) == 0


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("x" * 300, 300),
        ("😀" * 50, 50),
        ("\u200b" * 50, 50),
        ("\x07" * 9, 9),
        ("\ud800" * 7, 7),
        ("\ufffd" * 8, 8),
        ("\ufdd0\ue000\u0378", 3),
        ("e" + "\u200d" * 99 + "e", 100),
    ],
)
def test_what_the_vocabulary_does_not_know_counts_by_its_characters(text: str, least: int) -> None:
    assert count_tokens(text) >= least


def test_nothing_is_cut_off() -> None:
    assert count_tokens("word " * 5_000) == 5_000


def test_lines_add_up() -> None:
    parts = ["I went to the group.", "😀 and tea", "", "2023-05-08, x" * 9]
    assert count_tokens("\n".join(parts)) == sum(count_tokens(part) for part in parts)
