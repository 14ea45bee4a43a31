"""The segments of one namespace, written in short transactions while readers use others.

A segment that is not live is being written or removed, and readers ignore it. The caller puts segments live and retires
others in one transaction; after a crash, unfinished segments are not live.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, LiteralString, NamedTuple

from graph.adjacency import id_ranges
from postgres.connection import Connection, fetch
from retrieval.store import namespaces
from retrieval.store.bm25.blocks import PostingTable, joined, unpack
from retrieval.store.bm25.postings import TAIL, unpack_tail

MEMORIES_AT_ONCE = 8_000
"""Postings held at a time, for a range of terms: about as many as this many memories have."""

_MOST_IN_TAIL = 2**31 - 1

_NOTHING = unpack([])

_LIVE: LiteralString = """
    select segment, docs, first_doc, last_doc from bm25_segment where ns = %(ns)s and live order by segment
"""
_OTHERS: LiteralString = "select segment from bm25_segment where ns = %(ns)s and not live"
_BEGIN: LiteralString = "insert into bm25_segment (ns) values (%(ns)s) returning segment"
_GO_LIVE: LiteralString = """
    update bm25_segment set live = true, docs = %(docs)s, first_doc = %(first_doc)s, last_doc = %(last_doc)s
    where ns = %(ns)s and segment = %(segment)s
"""
_REMOVE_POSTINGS: LiteralString = "delete from bm25_posting where ns = %(ns)s and segment = %(segment)s"
_REMOVE: LiteralString = "delete from bm25_segment where ns = %(ns)s and segment = %(segment)s"

_WRITE: LiteralString = "copy bm25_posting (ns, segment, first_term, postings) from stdin with (format binary)"

_ROWS: LiteralString = """
    select postings from bm25_posting
    where ns = %(ns)s and segment = any(%(segments)s) and first_term between %(first)s and %(last)s
"""


class Segment(NamedTuple):
    """A live segment: its number, how many memories are packed into it, and bounds of their ordinals."""

    segment: int
    docs: int
    first_doc: int
    last_doc: int


class Segments:
    """The segments of one namespace. Writing requires the namespace's compaction lock."""

    def __init__(self, conn: Connection, ns: int) -> None:
        """`conn` is in autocommit mode."""
        self._conn = conn
        self._ns = ns

    async def value(self, statement: LiteralString, **scope: int) -> Any:
        """The value that a statement about the namespace returns; None without a row."""
        rows = await fetch(self._conn, statement, {"ns": self._ns, **scope}, binary=True)
        return rows[0][0] if rows else None

    async def live(self) -> list[Segment]:
        """The segments that readers use, oldest first."""
        return [Segment(*row) for row in await fetch(self._conn, _LIVE, {"ns": self._ns})]

    async def by_ranges(
        self, segments: Sequence[int], *, memories: int, tail: PostingTable = _NOTHING
    ) -> AsyncIterator[PostingTable]:
        """The postings of some segments and a tail, of about `memories` memories, by ascending ranges of terms.

        Each range is sorted like `PostingTable.sorted`. The ranges are of equal size, so that memory use is bounded.
        """
        left = tail  # the last row of a range may have terms of the next

        def cut(rows: Sequence[tuple[bytes]], last_term: int) -> tuple[PostingTable, PostingTable]:
            table = joined([left, unpack([row for (row,) in rows])])
            in_range = table.terms <= last_term
            return table.only(in_range).sorted(), table.only(~in_range)

        for first, last in id_ranges(max(1, -(-memories // MEMORIES_AT_ONCE))):
            scope = {"ns": self._ns, "segments": segments, "first": first, "last": last}
            rows = await fetch(self._conn, _ROWS, scope, binary=True)
            table, left = await asyncio.to_thread(cut, rows, last)
            yield table

    @asynccontextmanager
    async def locked_namespace(self) -> AsyncIterator[None]:
        """A transaction that keeps the namespace from being deleted; raises NotFound if it already is."""
        async with self._conn.transaction():
            await namespaces.lock(self._conn, self._ns)
            yield

    async def begin(self) -> int:
        """Create a segment that is not live; returns its number."""
        async with self.locked_namespace():
            return int(await self.value(_BEGIN))

    async def write(self, segment: int, rows: Iterable[tuple[int, bytes]]) -> None:
        """Add rows, given as (first term, row), to a segment that is not live."""
        async with self.locked_namespace(), self._conn.cursor() as cursor, cursor.copy(_WRITE) as copy:
            copy.set_types(["int4", "int4", "int8", "bytea"])
            for first_term, postings in rows:
                await copy.write_row((self._ns, segment, first_term, postings))

    async def go_live(self, segment: Segment) -> None:
        """Make a segment visible to readers; call inside `locked_namespace`."""
        await self._conn.execute(_GO_LIVE, {"ns": self._ns, **segment._asdict()})

    async def clean(self) -> None:
        """Delete the segments that are not live."""
        for (segment,) in await fetch(self._conn, _OTHERS, {"ns": self._ns}):
            async with self.locked_namespace():
                for statement in (_REMOVE_POSTINGS, _REMOVE):
                    await self._conn.execute(statement, {"ns": self._ns, "segment": segment})


async def read_all(conn: Connection, ns: int, *, memories: int) -> AsyncIterator[PostingTable]:
    """All postings of a namespace of about `memories` memories, in the snapshot of `conn`'s transaction.

    In the order of `Segments.by_ranges`; they may include deleted memories.
    """
    segments = Segments(conn, ns)
    tail = await segments.value(TAIL, after=-1, most=_MOST_IN_TAIL)
    numbers = [each.segment for each in await segments.live()]
    async for table in segments.by_ranges(numbers, memories=memories, tail=unpack_tail(tail) if tail else _NOTHING):
        yield table
