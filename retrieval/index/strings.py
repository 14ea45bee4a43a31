"""Compact columns of strings, by slot."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import accumulate, islice

import numpy as np
from numpy.typing import NDArray

from retrieval.index.arrays import GrowableArray

NONE = -1
"""The code of a missing string."""


class CategoryColumn:
    """A column of strings with few distinct values, stored as codes."""

    def __init__(self) -> None:
        self.values: list[str] = []
        self.codes = GrowableArray(np.int32, NONE)
        self._code_of: dict[str | None, int] = {None: NONE}

    @property
    def nbytes(self) -> int:
        """Bytes that it takes, approximately."""
        return self.codes.nbytes + 150 * len(self.values)

    def put(self, docs: NDArray[np.int64], strings: Sequence[str | None]) -> None:
        """Set the strings of some memories."""
        code_of, known = self._code_of, len(self._code_of)
        self.codes.put(docs, [code_of.setdefault(each, len(code_of) - 1) for each in strings])
        self.values.extend(each for each in islice(code_of, known, None) if each is not None)

    def get(self, docs: NDArray[np.int64]) -> list[str | None]:
        """The strings of some memories."""
        values = self.values
        return [None if code == NONE else values[code] for code in self.codes.values[docs].tolist()]

    def codes_of(self, strings: Collection[str]) -> list[int]:
        """The codes of those strings that occur."""
        return [self._code_of[each] for each in strings if each in self._code_of]


class StringColumn:
    """A column of distinct strings, concatenated as UTF-8."""

    def __init__(self) -> None:
        self._text = bytearray()
        self._starts = GrowableArray(np.int64, 0)
        self._sizes = GrowableArray(np.int32, 0)

    @property
    def nbytes(self) -> int:
        """Bytes that it takes, approximately."""
        return len(self._text) + self._starts.nbytes + self._sizes.nbytes

    def put(self, docs: NDArray[np.int64], text: bytes, sizes: NDArray[np.int32]) -> None:
        """Set the strings of some memories, given as concatenated UTF-8 and their sizes in bytes."""
        ends = len(self._text) + np.cumsum(sizes, dtype=np.int64)
        self._starts.put(docs, ends - sizes)
        self._sizes.put(docs, sizes)
        self._text += text

    def get(self, docs: NDArray[np.int64]) -> list[str]:
        """The strings of some memories."""
        text, starts = self._text, self._starts.values[docs]
        ends = starts + self._sizes.values[docs]
        return [text[start:end].decode() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def cut(text: bytes, sizes: Sequence[int]) -> list[str | None]:
    """Split concatenated UTF-8 into strings, given their sizes in bytes; None for a size of -1."""
    ends = accumulate(size if size > 0 else 0 for size in sizes)
    if text.isascii():
        chars = text.decode()
        return [chars[end - size : end] if size >= 0 else None for size, end in zip(sizes, ends, strict=True)]
    return [text[end - size : end].decode() if size >= 0 else None for size, end in zip(sizes, ends, strict=True)]
