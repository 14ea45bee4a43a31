"""Postings by ranges of terms, so that memory use does not depend on how many there are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from typing import Any

from psycopg import AsyncConnection

from retrieval.store.bm25.blocks import PostingTable, joined, unpack
from retrieval.store.bm25.postings import TAIL, unpack_tail
from retrieval.store.bm25.segments import Segments

MEMORIES_AT_ONCE = 8_000
"""Approximate number of memories whose postings are held at a time; determines the number of ranges."""

_MOST_IN_TAIL = 2**31 - 1

_NOTHING = unpack([])


async def by_ranges(
    segments: Segments, numbers: Sequence[int], *, memories: int, tail: PostingTable = _NOTHING
) -> AsyncIterator[PostingTable]:
    """The postings of some segments and a tail, of about so many `memories`, by ascending ranges of equal size.

    Each as `PostingTable.sorted` has them.
    """
    left = tail  # the last row of a range may have terms of the next

    def cut(rows: Sequence[bytes], last_term: int) -> tuple[PostingTable, PostingTable]:
        table = joined([left, unpack(rows)])
        in_range = table.terms <= last_term
        return table.only(in_range).sorted(), table.only(~in_range)

    number = max(1, -(-memories // MEMORIES_AT_ONCE))
    for first, end in pairwise(2**64 * step // number - 2**63 for step in range(number + 1)):
        rows = await segments.rows(numbers, first, end - 1)
        table, left = await asyncio.to_thread(cut, rows, end - 1)
        yield table


async def read_all(conn: AsyncConnection[Any], ns: int, *, memories: int) -> AsyncIterator[PostingTable]:
    """All postings of a namespace of about so many `memories`, in the snapshot of `conn`'s transaction.

    As `by_ranges` has them; they may include deleted memories.
    """
    found = await (await conn.execute(TAIL, {"ns": ns, "after": -1, "most": _MOST_IN_TAIL}, binary=True)).fetchone()
    tail, segments = unpack_tail(found[0]) if found else _NOTHING, Segments(conn, ns)
    numbers = [each.segment for each in await segments.live()]
    async for table in by_ranges(segments, numbers, memories=memories, tail=tail):
        yield table
