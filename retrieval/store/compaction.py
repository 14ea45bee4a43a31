"""Packing of the BM25 tail into segments, and merging of segments.

Segments are merged by tiers, as in a log-structured merge tree: when `TIER_WIDTH` segments of one size class exist
they become one of the next, so that n memories lie in O(log n) segments and each posting is rewritten O(log n) times.

Nobody waits for it. A segment is written beside what readers use, piece by piece, and takes the place of what it was
made of in one short transaction; what it replaced is removed after that. Postings are facts that do not change, so a
memory deleted or packed twice meanwhile does no harm: readers see the union of postings and ask `memory` who is
there. What a crash leaves behind are segments that are not live, which the next compaction removes.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, LiteralString

import numpy as np
from numpy.typing import NDArray
from psycopg import AsyncConnection

from graph.arrays import array_text
from retrieval.store.blocks import pack
from retrieval.store.merging import Merge, term_ranges
from retrieval.store.postings import TAIL, tail_docs, unpack_tail
from retrieval.store.segments import NamespaceIsGone, Segment, Segments

TIER_WIDTH = 8
"""Segments of one size class that are merged into one of the next."""

TOMBSTONE_SHARE = 0.25
"""Share of dead memories from which a namespace's segments are all merged."""

PACKED_AT_ONCE = 20_000
"""Most memories of a tail that become one segment: bounds what is in memory at once."""

MERGED_AT_ONCE = 8_000
"""Memories whose postings a step of a merge has at once, about: it takes so large a part of all terms."""

_ORDINALS_AT_ONCE = 100_000

# The number is arbitrary; it keeps this lock apart from other uses of advisory locks. It is the connection's, since
# a compaction is many transactions.
_LOCK: LiteralString = "select pg_try_advisory_lock(8321, %(ns)s)"
_UNLOCK: LiteralString = "select pg_advisory_unlock(8321, %(ns)s)"

_CANDIDATES: LiteralString = """
    select ns from bm25_tail group by ns having count(*) >= %(least)s
    union
    select ns from bm25_tombstone group by ns having count(*) >= %(least)s
    union
    select ns from bm25_segment where not live
    order by ns
"""

_COUNT_TAIL: LiteralString = "select count(*) from bm25_tail where ns = %(ns)s"

# A row that a writer is deleting is left to him: if he does not, the memory is packed twice.
_TAKE_FROM_TAIL: LiteralString = """
    delete from bm25_tail where ctid = any(array(
        select ctid from bm25_tail where ns = %(ns)s and doc = any(%(docs)s::int[]) for update skip locked
    ))
"""

_COUNT_TOMBSTONES: LiteralString = "select count(*) from bm25_tombstone where ns = %(ns)s"
_TOMBSTONES: LiteralString = "select string_agg(int4send(doc), '') from bm25_tombstone where ns = %(ns)s"
_REMOVE_TOMBSTONES: LiteralString = "delete from bm25_tombstone where ns = %(ns)s and doc = any(%(docs)s::int[])"

_ALIVE: LiteralString = """
    select string_agg(int4send(doc), '') from memory where ns = %(ns)s and doc between %(first)s and %(last)s
"""


async def namespaces_to_compact(conn: AsyncConnection[Any], *, least: int) -> list[int]:
    """Namespaces with `least` memories that are not packed, or deleted since they were, or with what a crash left."""
    cursor = await conn.execute(_CANDIDATES, {"least": least})
    return [ns for (ns,) in await cursor.fetchall()]


async def compact(conn: AsyncConnection[Any], ns: int, *, least: int = 1) -> int:
    """Pack a namespace's tail if it has `least` memories, then merge segments where that is due.

    Does nothing while another process compacts the same namespace; stops when the namespace is deleted.

    Args:
        conn: in autocommit mode.
        ns: number of the namespace.
        least: memories in the tail that are worth a segment.

    Returns:
        The number of memories taken out of the tail.
    """
    packed = 0
    async with _alone(conn, ns) as alone:
        if not alone:
            return 0
        compaction = _Compaction(conn, ns)
        with suppress(NamespaceIsGone):
            await compaction.segments.clean()
            unpacked = await compaction.count(_COUNT_TAIL)
            if unpacked >= least:
                after = -1
                for _ in range(math.ceil(unpacked / PACKED_AT_ONCE)):
                    taken, after = await compaction.pack(after)
                    packed += taken
            while (due := await compaction.due()) is not None:
                await compaction.merge(due)
    return packed


@asynccontextmanager
async def _alone(conn: AsyncConnection[Any], ns: int) -> AsyncIterator[bool]:
    """Keep other processes from compacting the same namespace; False where one does already."""
    row = await (await conn.execute(_LOCK, {"ns": ns})).fetchone()
    locked = row is not None and bool(row[0])
    try:
        yield locked
    finally:
        if locked and not conn.closed:  # a connection that is lost has no locks
            await conn.execute(_UNLOCK, {"ns": ns})


class _Compaction:
    """The steps of a compaction of one namespace."""

    def __init__(self, conn: AsyncConnection[Any], ns: int) -> None:
        self._conn = conn
        self._ns = ns
        self.segments = Segments(conn, ns)

    async def count(self, statement: LiteralString) -> int:
        """What a statement counts in the namespace."""
        row = await (await self._conn.execute(statement, {"ns": self._ns})).fetchone()
        return int(row[0]) if row else 0

    async def pack(self, after: int) -> tuple[int, int]:
        """Make a segment of memories of the tail whose ordinals are greater; how many, and the last of them."""
        tail = await self._bytes(TAIL, after=after, most=PACKED_AT_ONCE)
        if not tail:
            return 0, after
        docs = tail_docs(tail)
        first, last = int(docs[0]), int(docs[-1])
        alive = await self._alive(first, last)
        rows = await asyncio.to_thread(_packed, tail, alive, first)
        segment = await self.segments.begin() if rows else None
        if segment is not None:
            await self.segments.write(segment, rows)
        async with self.segments.holding():
            await self._conn.execute(_TAKE_FROM_TAIL, {"ns": self._ns, "docs": array_text(docs.tolist())})
            if segment is not None:
                packed = int(np.count_nonzero(alive[docs - first]))
                await self.segments.go_live(Segment(segment, packed, first, last))
        return docs.size, last

    async def due(self) -> Sequence[Segment] | None:
        """The segments that should become one; None where all may stay as they are."""
        segments = await self.segments.live()
        if await self.count(_COUNT_TOMBSTONES) > TOMBSTONE_SHARE * sum(segment.docs for segment in segments):
            return segments
        tiers: dict[int, list[Segment]] = defaultdict(list)
        for segment in segments:
            tiers[int(math.log(max(segment.docs, 1), TIER_WIDTH))].append(segment)
        return next((tier for tier in tiers.values() if len(tier) >= TIER_WIDTH), None)

    async def merge(self, segments: Sequence[Segment]) -> None:
        """Make one segment of several, without the memories that are gone."""
        dead = await self._integers(_TOMBSTONES)  # before those alive are read, so that none of them is among those
        first = min((segment.first_doc for segment in segments), default=0)
        last = max((segment.last_doc for segment in segments), default=-1)
        everything = len(segments) == len(await self.segments.live())
        purged = dead if everything else dead[(dead >= first) & (dead <= last)]
        numbers = [segment.segment for segment in segments]
        merge = Merge(await self._alive(first, last), first)
        merged = await self.segments.begin()
        for first_term, last_term in term_ranges(math.ceil(sum(each.docs for each in segments) / MERGED_AT_ONCE)):
            rows = await self.segments.rows(numbers, first_term, last_term)
            await self.segments.write(merged, await asyncio.to_thread(merge.step, rows, last_term))
        async with self.segments.holding():
            await self.segments.retire(numbers)
            if merge.docs:
                await self.segments.go_live(Segment(merged, merge.docs, first, last))
            await self._conn.execute(_REMOVE_TOMBSTONES, {"ns": self._ns, "docs": array_text(purged.tolist())})
        await self.segments.clean()

    async def _alive(self, first: int, last: int) -> NDArray[np.bool_]:
        """Which of the ordinals `first` to `last` have a memory."""
        alive = np.zeros(last - first + 1, np.bool_)
        for start in range(first, last + 1, _ORDINALS_AT_ONCE):
            there = await self._integers(_ALIVE, first=start, last=min(last, start + _ORDINALS_AT_ONCE - 1))
            alive[there - first] = True
        return alive

    async def _integers(self, statement: LiteralString, **scope: int) -> NDArray[np.int32]:
        """Integers that a statement sends in one value."""
        return np.frombuffer(await self._bytes(statement, **scope), ">i4").astype(np.int32)

    async def _bytes(self, statement: LiteralString, **scope: int) -> bytes:
        row = await (await self._conn.execute(statement, {"ns": self._ns, **scope}, binary=True)).fetchone()
        return (row and row[0]) or b""


def _packed(tail: bytes, alive: NDArray[np.bool_], first_doc: int) -> list[tuple[int, bytes]]:
    """The rows of a segment of those memories of a tail that are alive."""
    table = unpack_tail(tail)
    return list(pack(table.only(alive[table.docs - first_doc]).sorted()))
