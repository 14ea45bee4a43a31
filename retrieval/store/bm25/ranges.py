"""Postings by ranges of terms, so that memory use does not depend on how many there are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import pairwise
from typing import Any

from psycopg import AsyncConnection

from retrieval.store.bm25.blocks import PostingTable, joined, unpack
from retrieval.store.bm25.postings import TAIL, unpack_tail
from retrieval.store.bm25.segments import Segments

MEMORIES_AT_ONCE = 8_000
"""Approximate number of memories whose postings are held at a time; determines the number of ranges."""

_MOST_IN_TAIL = 2**31 - 1


def term_ranges(memories: int) -> Iterator[tuple[int, int]]:
    """Split the 64-bit term space into ranges of equal size for that many memories; yields (first, last) of each."""
    number = -(-memories // MEMORIES_AT_ONCE)
    bounds = [2**64 * step // number - 2**63 for step in range(number + 1)] if number else []
    for first, end in pairwise(bounds):
        yield first, end - 1


class RowCutter:
    """Cuts the rows of segments at the ends of ranges: the last row of a range may have terms of the next."""

    def __init__(self) -> None:
        self._left = unpack([])

    def cut(self, rows: Sequence[bytes], last_term: int) -> PostingTable:
        """The postings of the next range, up to `last_term`; `rows` are all whose first term is in it."""
        table = joined([self._left, unpack(rows)])
        in_range = table.terms <= last_term
        self._left = table.only(~in_range)
        return table.only(in_range)


async def read_all(conn: AsyncConnection[Any], ns: int, *, memories: int) -> AsyncIterator[PostingTable]:
    """All postings of a namespace of about so many `memories`, in the snapshot of `conn`'s transaction.

    They come by ascending ranges of terms, each as `PostingTable.sorted` has them, and may include deleted memories.
    """
    found = await (await conn.execute(TAIL, {"ns": ns, "after": -1, "most": _MOST_IN_TAIL}, binary=True)).fetchone()
    tail, cutter, segments = unpack_tail(found[0]) if found else unpack([]), RowCutter(), Segments(conn, ns)
    numbers = [each.segment for each in await segments.live()]

    def in_range(rows: Sequence[bytes], first: int, last: int) -> PostingTable:
        in_tail = tail.only((tail.terms >= first) & (tail.terms <= last))
        return joined([cutter.cut(rows, last), in_tail]).sorted()

    for first, last in term_ranges(max(memories, 1)):
        rows = await segments.rows(numbers, first, last)
        yield await asyncio.to_thread(in_range, rows, first, last)
