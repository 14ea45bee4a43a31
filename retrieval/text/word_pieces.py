"""The tokenizer of the bundled embedder."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tokenizers import Tokenizer

TOKENIZER_FILE = "embedder.tokenizer.json"
"""Its name in the folder of the models."""


@cache
def load_tokenizer(path: Path) -> Tokenizer:
    """A file's tokenizer, which neither pads nor truncates; thread-safe. It takes 13 MB and is loaded once."""
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
