"""Numbers by the hashes of strings, in sorted arrays, so that a file of them is used as it is mapped."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

Entries = tuple[NDArray[np.uint64], NDArray[np.int32]]
"""Hashes, ascending, and the number of each."""

MERGED_FROM = 1_024
"""Entries that are added before they are merged into those that were there, or 1/`MERGED_PART` of these if more."""

MERGED_PART = 8

_NONE: Entries = np.empty(0, np.uint64), np.empty(0, np.int32)


def hashes_of(strings: Collection[str]) -> NDArray[np.uint64]:
    """Their 64-bit hashes; different strings may have the same one."""
    encoded = (each.encode("utf-8", "surrogatepass") for each in strings)
    return np.fromiter(map(xxhash.xxh3_64_intdigest, encoded), np.uint64, len(strings))


class HashIndex:
    """Numbers by hash, several for some; whoever finds one makes sure that it belongs to the string.

    What is added goes into arrays of its own, which are merged into the others now and then, so that these are seldom
    copied.
    """

    def __init__(self) -> None:
        self._merged, self._added = _NONE, _NONE

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Use the `arrays` of another instance."""
        self._merged = arrays["hashes"], arrays["numbers"]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that there is to it; these never change."""
        hashes, numbers = _merged(self._merged, self._added)
        return {"hashes": hashes, "numbers": numbers}

    def entries(self) -> set[tuple[int, int]]:
        """All hashes with their numbers."""
        hashes, numbers = self.arrays().values()
        return {*zip(hashes.tolist(), numbers.tolist(), strict=True)}

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""
        return sum(array.nbytes for array in (*self._merged, *self._added))

    def add(self, hashes: NDArray[np.uint64], numbers: NDArray[np.int32]) -> None:
        """Add a number for each hash."""
        order = np.argsort(hashes)
        self._added = _merged(self._added, (hashes[order], numbers[order]))
        if len(self._added[0]) > max(MERGED_FROM, len(self._merged[0]) // MERGED_PART):
            self._merged, self._added = _merged(self._merged, self._added), _NONE

    def numbers(self, hashes: NDArray[np.uint64]) -> list[NDArray[np.int32]]:
        """All numbers of each of some hashes."""
        found: list[NDArray[np.int32]] = [_NONE[1]] * len(hashes)
        for known, numbers in (self._merged, self._added):
            if len(known):
                starts, ends = known.searchsorted(hashes), known.searchsorted(hashes, "right")
                for position in (ends > starts).nonzero()[0].tolist():
                    more = numbers[starts[position] : ends[position]]
                    found[position] = np.concatenate([found[position], more]) if len(found[position]) else more
        return found

    def find(self, hashes: NDArray[np.uint64]) -> list[tuple[int, int]]:
        """All numbers of some hashes, each after the position of its hash."""
        found = list[tuple[int, int]]()
        for known, numbers in (self._merged, self._added):
            if len(known):
                starts, ends = known.searchsorted(hashes), known.searchsorted(hashes, "right")
                for position in (ends > starts).nonzero()[0].tolist():
                    found += [(position, number) for number in numbers[starts[position] : ends[position]].tolist()]
        return found


def _merged(entries: Entries, others: Entries) -> Entries:
    if not len(others[0]) or not len(entries[0]):
        return entries if len(entries[0]) else others
    places = entries[0].searchsorted(others[0])
    return np.insert(entries[0], places, others[0]), np.insert(entries[1], places, others[1])
