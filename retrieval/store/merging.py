"""Several segments as one, a range of terms at a time, so that it does not matter how long they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from retrieval.store.blocks import joined, pack, unpack


def term_ranges(number: int) -> Iterator[tuple[int, int]]:
    """All terms, hashes of 64 bits, in a number of ranges of equal size: first and last of each.

    >>> list(term_ranges(2)) == [(-(2**63), -1), (0, 2**63 - 1)]
    True
    """
    bounds = [2**64 * step // number - 2**63 for step in range(number + 1)] if number else []
    for first, end in pairwise(bounds):
        yield first, end - 1


class Merge:
    """The postings of several segments as those of one."""

    def __init__(self, alive: NDArray[np.bool_], first_doc: int) -> None:
        """`alive` says of each ordinal from `first_doc` on whether it is kept; none is outside."""
        self._alive = alive
        self._first_doc = first_doc
        self._seen = np.zeros(alive.size, np.bool_)
        self._left = unpack([])

    @property
    def docs(self) -> int:
        """Memories among the postings so far."""
        return int(np.count_nonzero(self._seen))

    def step(self, rows: Sequence[bytes], last_term: int) -> list[tuple[int, bytes]]:
        """The next rows of what they become.

        Args:
            rows: all that begin after the last step's `last_term` and not after this one's.
            last_term: terms after it, which the last rows may have, are left to the next step.

        Returns:
            Rows, each with its first term.
        """
        table = joined([self._left, unpack(rows)])
        table = table.only(self._alive[table.docs - self._first_doc])
        now = table.terms <= last_term
        self._left = table.only(~now)
        table = table.only(now).sorted()
        self._seen[table.docs - self._first_doc] = True
        return list(pack(table))
