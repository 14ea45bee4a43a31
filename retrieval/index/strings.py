"""Compact columns of strings, by slot, and finding names in texts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, islice
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from graph.names import normalize
from retrieval.index.slots import GrowableArray

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

    def restore(self, codes: NDArray[np.int32], encoded: NDArray[np.uint8]) -> None:
        """Take the codes of another column and its `encoded` strings."""
        self.codes.values = codes
        self.values.extend(msgspec.json.decode(encoded.data, type=list[str]))
        self._code_of.update(zip(self.values, range(len(self.values)), strict=True))

    @property
    def encoded(self) -> NDArray[np.uint8]:
        """The distinct strings by code, as JSON."""
        return np.frombuffer(msgspec.json.encode(self.values), np.uint8)

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
        self._text = GrowableArray(np.uint8, 0)
        self._end = 0
        self._starts = GrowableArray(np.int64, 0)
        self._sizes = GrowableArray(np.int32, 0)

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take the `arrays` of another column."""
        self._text.values = arrays["text"]
        self._starts.values, self._sizes.values = arrays["starts"], arrays["sizes"]
        [self._end] = arrays["end"].tolist()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that there is to it; the arrays in use, not copies."""
        return {"text": self._text.values, "starts": self._starts.values, "sizes": self._sizes.values,
                "end": np.array([self._end])}  # fmt: skip

    @property
    def nbytes(self) -> int:
        """Bytes that it takes, approximately."""
        return self._text.nbytes + self._starts.nbytes + self._sizes.nbytes

    def put(self, docs: NDArray[np.int64], text: bytes, sizes: NDArray[np.int32]) -> None:
        """Set the strings of some memories, given as concatenated UTF-8 and their sizes in bytes."""
        ends = self._end + np.cumsum(sizes, dtype=np.int64)
        self._starts.put(docs, ends - sizes)
        self._sizes.put(docs, sizes)
        end = self._end + len(text)
        self._text.ensure(end)
        self._text.values[self._end : end] = np.frombuffer(text, np.uint8)
        self._end = end

    def get(self, docs: NDArray[np.int64]) -> list[str]:
        """The strings of some memories."""
        text, starts = self._text.values.data, self._starts.values[docs]
        ends = starts + self._sizes.values[docs]
        return [str(text[start:end], "utf-8") for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def cut(text: bytes, sizes: Sequence[int]) -> list[str | None]:
    """Split concatenated UTF-8 into strings, given their sizes in bytes; None for a size of -1."""
    ends = accumulate(size if size > 0 else 0 for size in sizes)
    if text.isascii():
        chars = text.decode()
        return [chars[end - size : end] if size >= 0 else None for size, end in zip(sizes, ends, strict=True)]
    return [text[end - size : end].decode() if size >= 0 else None for size, end in zip(sizes, ends, strict=True)]


class NameMatcher:
    """Finds names of an append-only list that a text mentions by the words of the text, not by trying every name."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._read = 0
        self._of_key: dict[str, list[str]] = {}
        self._sizes: dict[str, set[int]] = {}
        """By first word: the lengths, in words, of the names that begin with it."""

    def read(self) -> None:
        """Index the names added since the last call."""
        for name in self._names[self._read :]:
            if key := normalize(name):
                first, *others = key.split(" ")
                self._of_key.setdefault(key, []).append(name)
                self._sizes.setdefault(first, set()).add(1 + len(others))
        self._read = len(self._names)

    def names_in(self, text: str) -> list[str]:
        """The names whose words occur consecutively in a text, after normalization."""
        words = normalize(text).split(" ")
        keys = (
            " ".join(words[position : position + size])
            for position, word in enumerate(words)
            if word in self._sizes
            for size in self._sizes[word]
        )
        return [name for key in keys for name in self._of_key.get(key, ())]
