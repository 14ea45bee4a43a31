"""Compaction of the BM25 index: packs the tail into segments and merges segments.

Segments are merged by tiers, as in a log-structured merge tree: `TIER_WIDTH` segments of one size class become one of
the next. So n memories lie in O(log n) segments and each posting is rewritten O(log n) times.

Compaction blocks no reader or writer. A new segment is written in pieces while readers use the old ones, swapped in by
one short transaction, and the segments it replaces are removed afterwards. Postings are immutable, so a memory that is
deleted or packed twice in the meantime does no harm: readers take the union of the postings and look up in `memory`
which memories exist. A crash leaves segments that are not live, which the next compaction removes.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from typing import LiteralString

import numpy as np
from numpy.typing import NDArray

from postgres.arrays import array_text, integers
from postgres.connection import Connection, fetch
from retrieval.errors import NotFound
from retrieval.store.bm25.blocks import PostingTable, pack
from retrieval.store.bm25.postings import TAIL, remove_from_tail, tail_docs, unpack_tail
from retrieval.store.bm25.segments import Segment, Segments

TIER_WIDTH = 8
"""Number of segments of one size class that are merged into one of the next."""

TOMBSTONE_SHARE = 0.25
"""Share of deleted memories above which all segments of a namespace are merged."""

_IS_OLD: LiteralString = "at not between now() - interval '1 day' and now()"
"""A tombstone above whose age all segments are merged as well, as they have hashes of deleted words.

One from when the clock was ahead counts as old.
"""

PACKED_AT_ONCE = 20_000
"""Most memories packed into one segment; bounds memory use."""

# The class number is arbitrary and separates this lock from other advisory locks. The lock belongs to the session
# because a compaction spans many transactions.
_LOCK: LiteralString = "select pg_try_advisory_lock(8321, %(ns)s)"
_UNLOCK: LiteralString = "select pg_advisory_unlock(8321, %(ns)s)"

# The first part reads no rows of small namespaces, which are many and cannot have `least` of either.
_CANDIDATES: LiteralString = f"""
    select ns from namespace n where next_doc >= %(least)s and (
        (select count(*) from (select from bm25_tail t where t.ns = n.ns limit %(least)s) as tail) >= %(least)s
        or (select count(*) from (select from bm25_tombstone t where t.ns = n.ns limit %(least)s) as gone) >= %(least)s
    )
    union
    select ns from bm25_segment where not live
    union
    select ns from bm25_tombstone where {_IS_OLD}
    order by ns
"""

_RETIRE: LiteralString = "update bm25_segment set live = false where ns = %(ns)s and segment = any(%(segments)s)"

_COUNT_TAILS: LiteralString = """
    select n.name, count(*) from bm25_tail t join namespace n on n.ns = t.ns group by n.name order by n.name
"""
_COUNT_TAIL: LiteralString = "select count(*) from bm25_tail where ns = %(ns)s"

_COUNT_TOMBSTONES: LiteralString = "select count(*) from bm25_tombstone where ns = %(ns)s"
_HAS_OLD: LiteralString = f"select exists (select from bm25_tombstone where ns = %(ns)s and {_IS_OLD})"
_TOMBSTONES: LiteralString = "select string_agg(int4send(doc), '') from bm25_tombstone where ns = %(ns)s"
_REMOVE_TOMBSTONES: LiteralString = "delete from bm25_tombstone where ns = %(ns)s and doc = any(%(docs)s::int[])"

_ALIVE: LiteralString = """
    select string_agg(int4send(doc), '') from memory where ns = %(ns)s and doc between %(first)s and %(last)s
"""


async def unpacked(conn: Connection) -> dict[str, int]:
    """The number of memories not yet packed into segments, by namespace, if above 0."""
    return dict(await fetch(conn, _COUNT_TAILS))


async def namespaces_to_compact(conn: Connection, *, least: int) -> list[int]:
    """Namespaces with at least `least` unpacked memories or tombstones, an old tombstone, or leftovers of a crash."""
    return [ns for (ns,) in await fetch(conn, _CANDIDATES, {"least": least})]


async def compact(conn: Connection, ns: int, *, least: int = 1) -> int:
    """Pack a namespace's tail if it has at least `least` memories, then merge the segments that are due.

    Does nothing if another process is compacting the namespace; stops if the namespace is deleted. `conn` is in
    autocommit mode. Returns the number of memories removed from the tail.
    """
    [(is_locked,)] = await fetch(conn, _LOCK, {"ns": ns})
    if not is_locked:
        return 0
    packed, compaction = 0, _Compaction(conn, ns)
    try:
        with suppress(NotFound):
            await compaction.clean()
            unpacked = await compaction.value(_COUNT_TAIL)
            if unpacked >= least:
                after = -1
                for _ in range(math.ceil(unpacked / PACKED_AT_ONCE)):
                    taken, after = await compaction.pack(after)
                    packed += taken
            while (due := await compaction.due()) is not None:
                await compaction.merge(due)
    finally:
        if not conn.closed:  # a lost connection holds no locks
            await conn.execute(_UNLOCK, {"ns": ns})
    return packed


class _Compaction(Segments):
    """The steps of compacting the segments of one namespace."""

    async def pack(self, after: int) -> tuple[int, int]:
        """Pack memories of the tail with ordinals above `after`; returns their number and the last ordinal."""
        tail = await self.value(TAIL, after=after, most=PACKED_AT_ONCE)
        if not tail:
            return 0, after
        docs = tail_docs(tail)
        first, last = int(docs[0]), int(docs[-1])
        alive = await self._alive(first, last)
        rows = await asyncio.to_thread(_packed, tail, alive, first)
        segment = await self.begin() if rows else None
        if segment is not None:
            await self.write(segment, rows)
        async with self.locked_namespace():
            await remove_from_tail(self._conn, self._ns, docs.tolist())
            if segment is not None:
                packed = int(np.count_nonzero(alive[docs - first]))
                await self.go_live(Segment(segment, packed, first, last))
        return docs.size, last

    async def due(self) -> Sequence[Segment] | None:
        """The segments to merge next; None if no merge is due."""
        segments = await self.live()
        most = TOMBSTONE_SHARE * sum(segment.docs for segment in segments)
        if await self.value(_COUNT_TOMBSTONES) > most or await self.value(_HAS_OLD):
            return segments
        tiers: dict[int, list[Segment]] = defaultdict(list)
        for segment in segments:
            tiers[int(math.log(max(segment.docs, 1), TIER_WIDTH))].append(segment)
        return next((tier for tier in tiers.values() if len(tier) >= TIER_WIDTH), None)

    async def merge(self, segments: Sequence[Segment]) -> None:
        """Merge segments into one, dropping deleted memories, a range of terms at a time to bound memory use."""
        dead = integers(await self.value(_TOMBSTONES))  # read before the live memories, so that no memory is in both
        first = min((segment.first_doc for segment in segments), default=0)
        last = max((segment.last_doc for segment in segments), default=-1)
        everything = len(segments) == len(await self.live())
        purged = dead if everything else dead[(dead >= first) & (dead <= last)]
        numbers = [segment.segment for segment in segments]
        alive = await self._alive(first, last)
        seen = np.zeros(alive.size, np.bool_)  # `zeros_like` would write to every page

        def merged_rows(table: PostingTable) -> list[tuple[int, bytes]]:
            table = table.only(alive[table.docs - first])
            seen[table.docs - first] = True
            return list(pack(table))

        merged = await self.begin()
        async for table in self.by_ranges(numbers, memories=sum(each.docs for each in segments)):
            await self.write(merged, await asyncio.to_thread(merged_rows, table))
        async with self.locked_namespace():
            await self._conn.execute(_RETIRE, {"ns": self._ns, "segments": numbers})
            if docs := int(np.count_nonzero(seen)):
                await self.go_live(Segment(merged, docs, first, last))
            await self._conn.execute(_REMOVE_TOMBSTONES, {"ns": self._ns, "docs": array_text(purged.tolist())})
        await self.clean()

    async def _alive(self, first: int, last: int) -> NDArray[np.bool_]:
        """Mask over the ordinals `first` to `last`: True if the memory exists."""
        alive = np.zeros(last - first + 1, np.bool_)
        alive[integers(await self.value(_ALIVE, first=first, last=last)) - first] = True
        return alive


def _packed(tail: bytes, alive: NDArray[np.bool_], first_doc: int) -> list[tuple[int, bytes]]:
    """Build the segment rows for the memories of a tail that still exist."""
    table = unpack_tail(tail)
    return list(pack(table.only(alive[table.docs - first_doc]).sorted()))
