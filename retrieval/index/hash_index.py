"""Numbers by the hashes of strings, in sorted arrays, so that a file of them is used as it is mapped."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from graph.persistent import Persistent

Numbers = NDArray[np.int32]

Entries = tuple[NDArray[np.uint64], Numbers]
"""Hashes, ascending, and the number of each."""

_NONE: Entries = np.empty(0, np.uint64), np.empty(0, np.int32)

MERGED_FROM = 1_024
"""New entries are merged into the main arrays once they exceed this, or 1/`MERGED_PART` of those if that is more."""

MERGED_PART = 8


def hashes_of(strings: Collection[str]) -> NDArray[np.uint64]:
    """The strings' 64-bit hashes; different strings may have the same one."""
    encoded = (each.encode("utf-8", "surrogatepass") for each in strings)
    return np.fromiter(map(xxhash.xxh3_64_intdigest, encoded), np.uint64, len(strings))


class HashIndex(Persistent):
    """Numbers by hash, several for some; different strings may have the same one.

    New entries go into separate arrays, which are merged into the main ones now and then, so that those are seldom
    copied.
    """

    def __init__(self) -> None:
        self._merged = self._added = _NONE

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Use the `arrays` of another instance."""
        self._merged = arrays["hashes"], arrays["numbers"]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All its arrays; they never change."""
        hashes, numbers = _merged(self._merged, self._added)
        return {"hashes": hashes, "numbers": numbers}

    def entries(self) -> set[tuple[int, int]]:
        """All hashes with their numbers."""
        hashes, numbers = self.arrays().values()
        return {*zip(hashes.tolist(), numbers.tolist(), strict=True)}

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return sum(array.nbytes for array in (*self._merged, *self._added))

    def add(self, hashes: NDArray[np.uint64], numbers: Numbers) -> None:
        """Add a number for each hash."""
        order = np.argsort(hashes)
        self._added = _merged(self._added, (hashes[order], numbers[order]))
        if len(self._added[0]) > max(MERGED_FROM, len(self._merged[0]) // MERGED_PART):
            self._merged, self._added = _merged(self._merged, self._added), _NONE

    def numbers(self, hashes: NDArray[np.uint64]) -> list[Numbers]:
        """All numbers of each hash."""
        found = [_NONE[1]] * len(hashes)
        for position, numbers in self._ranges(hashes):
            found[position] = np.concatenate([found[position], numbers]) if len(found[position]) else numbers
        return found

    def find(self, hashes: NDArray[np.uint64]) -> list[tuple[int, int]]:
        """Pairs of a hash's position and a number of that hash."""
        return [(position, number) for position, numbers in self._ranges(hashes) for number in numbers.tolist()]

    def _ranges(self, hashes: NDArray[np.uint64]) -> Iterator[tuple[int, Numbers]]:
        """The position of each hash found, with its numbers; twice if some were added recently."""
        for known, numbers in (self._merged, self._added):
            ends = known.searchsorted(hashes, "right").tolist()
            for position, first in enumerate(known.searchsorted(hashes).tolist()):
                if first < ends[position]:
                    yield position, numbers[first : ends[position]]


def _merged(entries: Entries, others: Entries) -> Entries:
    if not len(others[0]) or not len(entries[0]):
        return entries if len(entries[0]) else others
    positions = entries[0].searchsorted(others[0])
    return np.insert(entries[0], positions, others[0]), np.insert(entries[1], positions, others[1])
