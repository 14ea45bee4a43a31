"""The words of a column's strings, computed when a memory that has the string is first looked at."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Collection, Iterable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

import native
from retrieval.index.slots import GrowableArray
from retrieval.index.strings import NONE, CategoryColumn

UNKNOWN = -1

_NOTHING = np.empty(0)

_shares = native.function(
    "trivet_shares",
    ctypes.c_int64, native.Array, native.Array, native.Array, native.Array, ctypes.c_int64, native.Array, native.Array,
    result=ctypes.c_int64,
)  # fmt: skip


class WordIndex:
    """The distinct words of one column's strings, as numbers."""

    def __init__(self, column: CategoryColumn, words_of: Callable[[str], Iterable[str]]) -> None:
        """Start empty; `words_of` splits a string into words."""
        self._strings = column.values  # not the column: a strong reference would keep it in `WordIndexes`
        self._words_of = words_of
        self._number_of: dict[str, int] = {}
        self._numbers = GrowableArray(np.int32, UNKNOWN)
        self._first = GrowableArray(np.int64, UNKNOWN)
        self._count = GrowableArray(np.int32, 0)
        self._end = 0
        self._laid_out: tuple[NDArray[Any], ...] = (_NOTHING,) * 3
        self._addresses: tuple[int, ...] = ()

    def shares(self, codes: NDArray[np.int32], asked: Collection[str]) -> NDArray[np.float32]:
        """The share of each string's words that are in `asked`; 0 for a missing string or one without words.

        `codes` of the column are contiguous, shape (n,), `NONE` for a missing string; `asked` has no repeats.
        """
        if not self._strings or not asked:
            return np.zeros(len(codes), np.float32)
        shares = np.empty(len(codes), np.float32)
        if self._count_unknown(codes, asked, shares):
            self._learn(codes)
            self._count_unknown(codes, asked, shares)
        return shares

    def _count_unknown(self, codes: NDArray[np.int32], asked: Collection[str], shares: NDArray[np.float32]) -> int:
        """Set the shares of strings whose words are known; returns how many strings are not."""
        self._first.ensure(len(self._strings))
        self._count.ensure(len(self._strings))
        known = array("i", [self._number_of[word] for word in asked if word in self._number_of])
        unknown: int = _shares(
            len(codes), native.address(codes), *self._layout(), len(known), known.buffer_info()[0],
            native.address(shares),
        )  # fmt: skip
        return unknown

    def _layout(self) -> tuple[int, ...]:
        """Addresses of the arrays."""
        arrays = (self._first.values, self._count.values, self._numbers.values)
        if (
            arrays[0] is not self._laid_out[0]
            or arrays[1] is not self._laid_out[1]
            or arrays[2] is not self._laid_out[2]
        ):
            self._laid_out, self._addresses = arrays, tuple(map(native.address, arrays))
        return self._addresses

    def _learn(self, codes: NDArray[np.int32]) -> None:
        """Split these strings into words."""
        numbers: list[int] = []
        for code in set(codes[self._first.values[codes] == UNKNOWN].tolist()) - {NONE}:
            words = set(self._words_of(self._strings[code]))
            self._first.values[code], self._count.values[code] = self._end + len(numbers), len(words)
            numbers += [self._number_of.setdefault(word, len(self._number_of)) for word in words]
        self._numbers.put(np.arange(self._end, self._end + len(numbers)), numbers)
        self._end += len(numbers)


class WordIndexes:
    """Word indexes by column, each kept as long as its column."""

    def __init__(self, words_of: Callable[[str], Iterable[str]]) -> None:
        """Start empty; `words_of` splits a string into words."""
        self._words_of = words_of
        self._kept: WeakKeyDictionary[CategoryColumn, WordIndex] = WeakKeyDictionary()

    def __call__(self, column: CategoryColumn) -> WordIndex:
        """The word index of a column."""
        words = self._kept.get(column)
        if words is None:
            words = self._kept[column] = WordIndex(column, self._words_of)
        return words
