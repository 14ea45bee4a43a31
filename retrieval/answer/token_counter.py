"""Counting tokens with a real tokenizer."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from retrieval.text.word_pieces import bundled_tokenizer, by_words

_DROPPED = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Mn", "Me"})
_SURROGATE = re.compile("[\ud800-\udfff]")

MOST_TOKEN_CHARS = 32
"""More characters than the longest piece of the bundled tokenizer, which has 18."""


def surely_exceeds(text: str, tokens: int) -> bool:
    """Whether a text certainly has more than `tokens`, by the number and length of its words: counting is slow.

    >>> surely_exceeds("two words", 1), surely_exceeds("two words", 2), surely_exceeds("long" * 25, 3)
    (True, False, True)
    """
    if len(text) <= tokens:
        return False
    words = text.split(maxsplit=tokens)
    return len(words) > tokens or sum(map(len, words)) > MOST_TOKEN_CHARS * tokens


@by_words
def count_tokens(text: str) -> int:
    """Tokens of a text by the bundled embedder's tokenizer: 0 only for whitespace, at least 1 per word.

    It ignores case and splits at every punctuation mark. Special tokens are not counted and texts are not truncated. A
    piece that is not in the vocabulary counts as one token per character, and so do characters that the tokenizer
    drops, so that a base64 blob, a run of emoji or zero-width characters cannot pass a budget as one token. The names
    of special tokens count as ordinary words.
    """
    tokenizer, valid = bundled_tokenizer(), _SURROGATE.sub("\ufffd", text)
    # Without offsets, which few texts need and which would take a fifth of the time.
    [encoding] = tokenizer.encode_batch_fast([valid], add_special_tokens=False)
    ids, unknown = encoding.ids, tokenizer.token_to_id(tokenizer.model.unk_token)
    total = len(ids)
    if unknown in ids:
        offsets = tokenizer.encode(valid, add_special_tokens=False).offsets
        total += sum(end - start - 1 for piece, (start, end) in zip(ids, offsets, strict=True) if piece == unknown)
    return total if text.isprintable() and text.isascii() else total + _unseen(text)


def _unseen(text: str) -> int:
    """Characters that the tokenizer's normalizer drops: controls, zero-width characters, marks, unassigned ones."""
    return sum(
        occurrences
        for character, occurrences in Counter(text).items()
        if character == "\ufffd" or (unicodedata.category(character) in _DROPPED and character not in "\t\n\r")
    )
