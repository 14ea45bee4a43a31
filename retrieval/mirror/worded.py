"""The words of the strings of a column, found out when a memory that has one is first looked at."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Collection, Iterable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

import native
from retrieval.mirror.growing import Growing
from retrieval.mirror.strings import NONE, Interned

UNKNOWN = -1

_NOTHING = np.empty(0)

_shares = native.function(
    "trivet_shares",
    ctypes.c_int64, native.Array, native.Array, native.Array, native.Array, ctypes.c_int64, native.Array, native.Array,
    result=ctypes.c_int64,
)  # fmt: skip


class Words:
    """The different words of the strings of one column, as numbers."""

    def __init__(self, column: Interned, words_of: Callable[[str], Iterable[str]]) -> None:
        """Start with none; `words_of` says what the words of a string are."""
        self._strings = column.values  # and not the column, which would be kept with its words
        self._words_of = words_of
        self._number_of: dict[str, int] = {}
        self._numbers = Growing(np.int32, UNKNOWN)
        self._first = Growing(np.int64, UNKNOWN)
        self._count = Growing(np.int32, 0)
        self._end = 0
        self._laid_out: tuple[NDArray[Any], ...] = (_NOTHING,) * 3
        self._addresses: tuple[int, ...] = ()

    def shares(self, codes: NDArray[np.int32], asked: Collection[str]) -> NDArray[np.float32]:
        """Which share of the words of each string is asked for; 0 for no string or one without words.

        Args:
            codes: of strings of the column, `NONE` for none; contiguous.
            asked: words, each once.
        """
        if not self._strings or not asked or codes.max(initial=NONE) == NONE:
            return np.zeros(len(codes), np.float32)
        shares = np.empty(len(codes), np.float32)
        if self._count_unknown(codes, asked, shares):
            self._learn(codes)
            self._count_unknown(codes, asked, shares)
        return shares

    def _count_unknown(self, codes: NDArray[np.int32], asked: Collection[str], shares: NDArray[np.float32]) -> int:
        """Set the shares as far as the words are known; how many strings are not."""
        self._first.reach(len(self._strings))
        self._count.reach(len(self._strings))
        known = array("i", [self._number_of[word] for word in asked if word in self._number_of])
        unknown: int = _shares(
            len(codes), native.at(codes), *self._layout(), len(known), known.buffer_info()[0], native.at(shares)
        )
        return unknown

    def _layout(self) -> tuple[int, ...]:
        """Where the arrays are."""
        now = (self._first.values, self._count.values, self._numbers.values)
        if now[0] is not self._laid_out[0] or now[1] is not self._laid_out[1] or now[2] is not self._laid_out[2]:
            self._laid_out, self._addresses = now, tuple(map(native.at, now))
        return self._addresses

    def _learn(self, codes: NDArray[np.int32]) -> None:
        """Have the words of these strings."""
        numbers: list[int] = []
        for code in set(codes[self._first.values[codes] == UNKNOWN].tolist()) - {NONE}:
            words = set(self._words_of(self._strings[code]))
            self._first.values[code], self._count.values[code] = self._end + len(numbers), len(words)
            numbers += [self._number_of.setdefault(word, len(self._number_of)) for word in words]
        self._numbers.put(np.arange(self._end, self._end + len(numbers)), numbers)
        self._end += len(numbers)


class WordsOf:
    """The words of each of many columns, kept as long as the column is there."""

    def __init__(self, words_of: Callable[[str], Iterable[str]]) -> None:
        """Start with none; `words_of` says what the words of a string are."""
        self._words_of = words_of
        self._kept: WeakKeyDictionary[Interned, Words] = WeakKeyDictionary()

    def __call__(self, column: Interned) -> Words:
        """Those of a column."""
        words = self._kept.get(column)
        if words is None:
            words = self._kept[column] = Words(column, self._words_of)
        return words
