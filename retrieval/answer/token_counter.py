"""Counting tokens with a real tokenizer."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cached_property

from tokenizers import Tokenizer

from retrieval.installation import models_dir
from retrieval.text.word_pieces import TOKENIZER_FILE, CountByWords, load_tokenizer

_DROPPED = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Mn", "Me"})
_SURROGATE = re.compile("[\ud800-\udfff]")

MOST_TOKEN_CHARS = 32
"""More characters than the longest piece of the bundled tokenizer has, which is of 18."""


def surely_exceeds(text: str, tokens: int) -> bool:
    """Whether a text certainly has more tokens than that, by its words and their length: counting a long one is slow.

    >>> surely_exceeds("two words", 1), surely_exceeds("two words", 2), surely_exceeds("long" * 25, 3)
    (True, False, True)
    """
    if len(text) <= tokens:
        return False
    words = text.split(maxsplit=tokens)
    return len(words) > tokens or sum(map(len, words)) > MOST_TOKEN_CHARS * tokens


class TokenCounter:
    """Counts the word pieces of a text; thread-safe.

    Special tokens are not counted and texts are not truncated. A piece that is not in the vocabulary counts
    as many tokens as it has characters, and so do characters that the tokenizer drops, so that a base64 blob,
    a run of emoji or zero-width characters cannot pass a budget as one token. The names of special tokens are words
    like any other.
    """

    def __init__(self) -> None:
        """Check that the tokenizer of the bundled embedder exists; FileNotFoundError if not.

        It is loaded at the first count. It ignores case and splits at each mark, as those of uncased BERT models do.
        """
        self._path = models_dir() / TOKENIZER_FILE
        if not self._path.is_file():
            raise FileNotFoundError(f"no tokenizer at {self._path}")
        self._by_words = CountByWords(self._count)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return load_tokenizer(self._path)

    @cached_property
    def _unknown_id(self) -> int | None:
        unknown = self._tokenizer.model.unk_token
        return self._tokenizer.token_to_id(unknown) if unknown else None

    def count(self, text: str) -> int:
        """Tokens of the text: 0 only for whitespace, at least 1 per word."""
        return self._by_words(text)

    def _count(self, text: str) -> int:
        valid = _SURROGATE.sub("\ufffd", text)
        # Without offsets, which few texts need and which take a fifth of the time.
        [encoding] = self._tokenizer.encode_batch_fast([valid], add_special_tokens=False)
        ids = encoding.ids
        total = len(ids)
        if self._unknown_id in ids:
            offsets = self._tokenizer.encode(valid, add_special_tokens=False).offsets
            for piece, (start, end) in zip(ids, offsets, strict=True):
                if piece == self._unknown_id:
                    total += end - start - 1
        return total if text.isprintable() and text.isascii() else total + _unseen(text)


def _unseen(text: str) -> int:
    """Characters that the tokenizer's normalizer drops: controls, zero-width characters, marks, unassigned ones."""
    return sum(
        occurrences
        for character, occurrences in Counter(text).items()
        if character == "\ufffd" or (unicodedata.category(character) in _DROPPED and character not in "\t\n\r")
    )
