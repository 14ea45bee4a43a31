"""Measures texts in the word pieces of an embedder, and cuts them by that."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Protocol

from semantic_text_splitter import MarkdownSplitter, TextSplitter
from tokenizers import Tokenizer


class PieceMeasure(Protocol):
    """The word pieces of texts, without those that mark a text's beginning and end."""

    def splitters(self, pieces: int) -> tuple[MarkdownSplitter, TextSplitter]:
        """Splitters into parts of at most so many pieces, which joined are the text."""

    def sizes(self, texts: Sequence[str]) -> list[int]:
        """The number of pieces of each text."""

    def head(self, text: str, pieces: int) -> str:
        """The first pieces of a text."""


class TokenizerPieces:
    """Measures with a tokenizer, which must not truncate; implements `PieceMeasure`."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def splitters(self, pieces: int) -> tuple[MarkdownSplitter, TextSplitter]:
        """Splitters into parts of at most so many pieces."""
        return (
            MarkdownSplitter.from_huggingface_tokenizer(self._tokenizer, pieces, trim=False),
            TextSplitter.from_huggingface_tokenizer(self._tokenizer, pieces, trim=False),
        )

    def sizes(self, texts: Sequence[str]) -> list[int]:
        """The number of pieces of each text."""
        return [len(encoding.ids) for encoding in self._tokenizer.encode_batch(texts, add_special_tokens=False)]

    def head(self, text: str, pieces: int) -> str:
        """The first pieces of a text."""
        offsets = self._tokenizer.encode(text, add_special_tokens=False).offsets
        return text[: offsets[pieces - 1][1]] if len(offsets) > pieces else text


class CountedPieces:
    """Measures with a function that counts and must not raise; implements `PieceMeasure`."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count

    def splitters(self, pieces: int) -> tuple[MarkdownSplitter, TextSplitter]:
        """Splitters into parts of at most so many pieces."""
        return (
            MarkdownSplitter.from_callback(self._count, pieces, trim=False),
            TextSplitter.from_callback(self._count, pieces, trim=False),
        )

    def sizes(self, texts: Sequence[str]) -> list[int]:
        """The number of pieces of each text."""
        return [*map(self._count, texts)]

    def head(self, text: str, pieces: int) -> str:
        """The first pieces of a text."""
        end = bisect_right(range(1, len(text) + 1), pieces, key=lambda length: self._count(text[:length]))
        return text[:end] if end == len(text) else text[:end].rstrip()
