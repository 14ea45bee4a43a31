"""Slots, the positions of a namespace's memories in its arrays, and arrays that grow with them.

Ordinals are never reused, so after churn few of them have a memory, and arrays by ordinal would be mostly empty.
Arrays are by slot instead. Slots ascend with ordinals, so that sorting by one sorts by the other.

What is called `doc` is an ordinal in the tables and in `store`, and a slot in the index, the legs and the ranking.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from graph.persistent import Persistent
from retrieval.index.array_file import ExtendedArray
from retrieval.store.vectors import StoredVectors

NO_SLOT = -1

LATE_ORDINALS = 1_024
"""This many of the latest ordinals always get slots: a transaction that was issued one of them may still be running."""


class Slots(Persistent):
    """The slots of a namespace's ordinals as of its loading, and of all ordinals issued later.

    A slot is its ordinal minus an offset. Only if fewer than half of the ordinals are in use, the early ones are listed
    explicitly, and those not in use get no slot.
    """

    PARTS = ("_listed", "_offset", "count")

    def __init__(self, ordinals: NDArray[np.int64] | None = None, *, given_out: int = 0) -> None:
        """Assign slots to ascending ordinals and to all from `given_out` on; without any, slots are ordinals."""
        self._listed = np.empty(0, np.int64)
        self._offset = 0
        self.count = given_out
        """The number of slots for ordinals below `given_out`."""
        if ordinals is None or 2 * ordinals.size >= given_out:
            return
        half_used = 2 * np.arange(ordinals.size, 0, -1) >= given_out - ordinals
        start = int(ordinals[half_used.argmax()]) if half_used.any() else given_out
        start = min(start, max(given_out - LATE_ORDINALS, 0))
        self._listed = ordinals[ordinals < start]
        self._offset = start - self._listed.size
        self.count = given_out - self._offset

    @property
    def are_ordinals(self) -> bool:
        """Whether each slot equals its ordinal."""
        return not self._offset

    def from_ordinals(self, ordinals: NDArray[Any]) -> NDArray[Any]:
        """The slots of ordinals, `NO_SLOT` for one without; may return its argument, so do not modify the result."""
        if self.are_ordinals:
            return ordinals
        slots = ordinals - self._offset
        early = slots < self._listed.size
        if early.any():
            wanted = ordinals[early]
            positions = self._listed.searchsorted(wanted)
            is_listed = self._listed.searchsorted(wanted, "right") > positions
            slots[early] = np.where(is_listed, positions, NO_SLOT)
        return slots

    def to_ordinals(self, slots: NDArray[Any]) -> NDArray[Any]:
        """The ordinals of valid slots; may return its argument, so do not modify the result."""
        if self.are_ordinals:
            return slots
        ordinals = slots + self._offset
        early = slots < self._listed.size
        ordinals[early] = self._listed[slots[early]]
        return ordinals

    def to_ordinal_list(self, slots: Sequence[int]) -> Sequence[int]:
        """`to_ordinals` for a short list."""
        ordinals: list[int] = self.to_ordinals(np.array(slots, np.int64)).tolist()
        return ordinals


def with_room(length: int) -> int:
    """A length with room for an eighth more: the next write to a full array copies it.

    If mapped from a file, it would then no longer be shared.
    """
    return length + length // 8


class GrowableArray(Persistent):
    """An array whose unset slots all have the same value."""

    PARTS = ("values", "needed")

    def __init__(self, dtype: DTypeLike, unset: Any, *shape: int) -> None:
        """Start empty; `shape` is that of the value of a slot, which is a number by default."""
        self._unset = unset
        self.values: NDArray[Any] = np.full((1, *shape), unset, dtype)
        """Values by slot; longer than needed."""
        self.needed = 0
        """1 + the last slot in use."""

    def arrays(self) -> dict[str, Any]:
        """The array, with room for values put after it is written to a file."""
        return super().arrays() | {"values": ExtendedArray(self.values, 1 + with_room(self.needed), self._unset)}

    @property
    def nbytes(self) -> int:
        """Bytes of the needed slots: most of the other pages are not in memory."""
        return self.values[: self.needed].nbytes

    def __getitem__(self, positions: Any) -> Any:
        return self.values[positions]

    def put(self, positions: NDArray[np.int64], values: Any) -> None:
        """Set the values of some slots, growing as needed."""
        self.ensure(int(positions.max(initial=-1)) + 1)
        self.values[positions] = values

    def ensure(self, length: int) -> None:
        """Grow beyond `length`: the last value always stays unset, so that index -1 reads as unset."""
        self.needed = max(self.needed, length)
        self.reserve(length)

    def reserve(self, length: int) -> None:
        """Make room for more than `length` slots; pages of zeros are allocated on use."""
        if length >= len(self.values):
            before = len(self.values)
            grown = np.zeros((1 + with_room(length), *self.values.shape[1:]), self.values.dtype)
            grown[:before] = self.values
            if self._unset:
                grown[before:] = self._unset
            self.values = grown


def slotted(slots: Slots, stored: StoredVectors) -> StoredVectors:
    """Vectors read by ordinal, converted to slots; every ordinal must have one."""
    return stored._replace(docs=slots.from_ordinals(stored.docs), turns=slots.from_ordinals(stored.turns))
