"""Merges segments one range of terms at a time, so that memory use does not depend on their size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from retrieval.store.bm25.blocks import joined, pack, unpack


def term_ranges(number: int) -> Iterator[tuple[int, int]]:
    """Split the 64-bit term space into `number` ranges of equal size; yields (first, last) of each.

    >>> list(term_ranges(2)) == [(-(2**63), -1), (0, 2**63 - 1)]
    True
    """
    bounds = [2**64 * step // number - 2**63 for step in range(number + 1)] if number else []
    for first, end in pairwise(bounds):
        yield first, end - 1


class Merge:
    """An incremental merge of several segments into one."""

    def __init__(self, alive: NDArray[np.bool_], first_doc: int) -> None:
        """`alive` is a mask over the ordinals from `first_doc`; it covers all postings."""
        self._alive = alive
        self._first_doc = first_doc
        self._seen = np.zeros(alive.size, np.bool_)
        self._left = unpack([])

    @property
    def docs(self) -> int:
        """Number of distinct memories merged so far."""
        return int(np.count_nonzero(self._seen))

    def step(self, rows: Sequence[bytes], last_term: int) -> list[tuple[int, bytes]]:
        """Merge the next range of terms.

        Args:
            rows: all rows whose first term is above the previous step's `last_term` and at most this one's.
            last_term: last term of the range; later terms in the last rows are kept for the next step.

        Returns:
            Rows of the merged segment, each with its first term.
        """
        table = joined([self._left, unpack(rows)])
        table = table.only(self._alive[table.docs - self._first_doc])
        in_range = table.terms <= last_term
        self._left = table.only(~in_range)
        table = table.only(in_range).sorted()
        self._seen[table.docs - self._first_doc] = True
        return list(pack(table))
