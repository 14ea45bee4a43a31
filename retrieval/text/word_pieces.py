"""The tokenizer of the bundled embedder, and counting with it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path

from tokenizers import Tokenizer

from retrieval.installation import models_dir

TOKENIZER_FILE = "embedder.tokenizer.json"
"""The tokenizer's file in the folder of the models."""

_PART = re.compile(r"[^ \t\n\r!-/:-@\[-`{-~]+|[^ \t\n\r]")
"""Text between ASCII spaces and punctuation marks, or one such mark: the tokenizer always splits there.

It drops some of the other white space. Words with their marks would miss the cache three times as often.
"""

_CACHED_PARTS = 16_384
_LONGEST_CACHED = 200
"""Characters; words of languages without spaces are long."""


@cache
def load_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer in a file, without padding or truncation; thread-safe. It takes 13 MB and is loaded once."""
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


@cache
def bundled_tokenizer() -> Tokenizer:
    """The bundled embedder's tokenizer."""
    return load_tokenizer(models_dir() / TOKENIZER_FILE)


class CountByWords:
    """Counts a text as the sum over its words; thread-safe.

    Counts of words are cached in lower case, as the tokenizer ignores case.
    """

    def __init__(self, count: Callable[[str], int]) -> None:
        """`count` counts, with the tokenizer, a piece of text between spaces and punctuation marks."""
        self._count = count
        self._remembered = lru_cache(maxsize=_CACHED_PARTS)(count)

    def __call__(self, text: str) -> int:
        """The count of a text."""
        # Outside ASCII, lower case may change the characters.
        parts = _PART.findall(text.lower() if text.isascii() else text)
        if max(map(len, parts), default=0) <= _LONGEST_CACHED:  # the usual case, in half the time
            return sum(map(self._remembered, parts))
        return sum(self._remembered(part) if len(part) <= _LONGEST_CACHED else self._count(part) for part in parts)


def _pieces(part: str) -> int:
    # Without offsets, which take a fifth of the time.
    [encoding] = bundled_tokenizer().encode_batch_fast([part], add_special_tokens=False)
    return len(encoding.ids)


count_pieces = CountByWords(_pieces)
"""The word pieces of a text for the bundled embedder, without the markers of its beginning and end."""
