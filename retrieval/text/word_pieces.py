"""The tokenizer of the bundled embedder, and counting with it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache, wraps
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


def by_words(count: Callable[[str], int]) -> Callable[[str], int]:
    """Count a text as the sum over its words, the pieces between spaces and punctuation marks; thread-safe.

    `count` counts a word with the tokenizer. Counts are cached in lower case, as the tokenizer ignores case.
    """
    remembered = lru_cache(maxsize=_CACHED_PARTS)(count)

    @wraps(count)
    def count_by_words(text: str) -> int:
        # Outside ASCII, lower case may change the characters.
        parts = _PART.findall(text.lower() if text.isascii() else text)
        if max(map(len, parts), default=0) <= _LONGEST_CACHED:  # the usual case, in half the time
            return sum(map(remembered, parts))
        return sum(remembered(part) if len(part) <= _LONGEST_CACHED else count(part) for part in parts)

    return count_by_words


@by_words
def count_pieces(text: str) -> int:
    """The word pieces of a text for the bundled embedder, without the markers of its beginning and end."""
    # Without offsets, which take a fifth of the time.
    [encoding] = bundled_tokenizer().encode_batch_fast([text], add_special_tokens=False)
    return len(encoding.ids)
