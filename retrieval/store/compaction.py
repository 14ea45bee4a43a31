"""Packing of the BM25 tail into segments, and merging of segments.

Segments are merged by tiers, as in a log-structured merge tree: when `TIER_WIDTH` segments of one
size class exist they become one of the next, so that n memories lie in O(log n) segments and each
posting is rewritten O(log n) times. Readers go on with their snapshot; writers wait only when they
delete a memory that is being packed at that moment.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import AsyncConnection

BLOCK_DOCS = 1_000
"""Most memories of one posting row: 8 bytes each, so that a block fits a page of PostgreSQL."""

TIER_WIDTH = 8
"""Segments of one size class that are merged into one of the next."""

TOMBSTONE_SHARE = 0.25
"""Share of dead memories from which a namespace's segments are all merged."""

# The number is arbitrary; it keeps this lock apart from other uses of advisory locks.
_LOCK = "select pg_try_advisory_xact_lock(8321, %(ns)s)"

_CANDIDATES = "select ns from bm25_tail group by ns having count(*) >= %(least)s order by ns"

_COUNT_TAIL = "select count(*) from bm25_tail where ns = %(ns)s"

# What counts is what this transaction itself removed: a memory deleted meanwhile is not among it.
_TAKE_TAIL = "delete from bm25_tail where ns = %(ns)s returning doc, length, terms, tfs"

_SEGMENTS = "select segment, docs, length from bm25_segment where ns = %(ns)s"

_COUNT_TOMBSTONES = "select count(*) from bm25_tombstone where ns = %(ns)s"

_TAKE_POSTINGS = """
    delete from bm25_posting where ns = %(ns)s and segment = any(%(segments)s)
    returning term, docs, tfs, lengths
"""

_TAKE_TOMBSTONES = """
    delete from bm25_tombstone where ns = %(ns)s and (%(all)s or doc = any(%(docs)s::int[])) returning doc, length
"""

_OTHER_SEGMENTS = "select count(*) from bm25_segment where ns = %(ns)s and not segment = any(%(segments)s)"

_DROP_SEGMENTS = "delete from bm25_segment where ns = %(ns)s and segment = any(%(segments)s)"

_NEW_SEGMENT = """
    insert into bm25_segment (ns, docs, length) values (%(ns)s, %(docs)s, %(length)s) returning segment
"""

_WRITE_POSTINGS = """
    copy bm25_posting (ns, term, segment, first_doc, docs, tfs, lengths) from stdin with (format binary)
"""


@dataclass(frozen=True, slots=True)
class PostingTable:
    """Postings of many terms as parallel columns, shape (n,) each."""

    terms: NDArray[np.int64]
    docs: NDArray[np.int32]
    tfs: NDArray[np.uint16]
    lengths: NDArray[np.uint16]

    def only(self, chosen: NDArray[np.bool_]) -> PostingTable:
        """The chosen rows."""
        return PostingTable(self.terms[chosen], self.docs[chosen], self.tfs[chosen], self.lengths[chosen])

    def blocks(self) -> Iterator[tuple[int, NDArray[np.int32], NDArray[np.uint16], NDArray[np.uint16]]]:
        """Term by term, runs of at most `BLOCK_DOCS` postings with ascending ordinals."""
        order = np.lexsort((self.docs, self.terms))
        terms, docs, tfs, lengths = self.terms[order], self.docs[order], self.tfs[order], self.lengths[order]
        ends = np.r_[np.flatnonzero(terms[1:] != terms[:-1]) + 1, terms.size]
        for start, end in zip(np.r_[0, ends[:-1]], ends, strict=True):
            for at in range(start, end, BLOCK_DOCS):
                cut = slice(at, min(at + BLOCK_DOCS, end))
                yield int(terms[start]), docs[cut], tfs[cut], lengths[cut]


async def namespaces_to_compact(conn: AsyncConnection[Any], *, least: int) -> list[int]:
    """Namespaces with at least `least` unpacked memories."""
    cursor = await conn.execute(_CANDIDATES, {"least": least})
    return [ns for (ns,) in await cursor.fetchall()]


async def compact(conn: AsyncConnection[Any], ns: int, *, least: int = 1) -> int:
    """Pack a namespace's tail if it has `least` memories, then merge segments where that is due.

    Does nothing while another process compacts the same namespace.

    Returns:
        The number of memories packed.
    """
    async with conn.transaction():
        locked = await (await conn.execute(_LOCK, {"ns": ns})).fetchone()
        if locked is None or not locked[0]:
            return 0
        counted = await (await conn.execute(_COUNT_TAIL, {"ns": ns})).fetchone()
        if counted is None or counted[0] < least:
            return 0
        packed = await _pack_tail(conn, ns)
        while segments := await _due_for_merge(conn, ns):
            await _merge(conn, ns, segments)
        return packed


async def _pack_tail(conn: AsyncConnection[Any], ns: int) -> int:
    cursor = conn.cursor(binary=True)
    await cursor.execute(_TAKE_TAIL, {"ns": ns})
    rows = await cursor.fetchall()
    if not rows:
        return 0
    sizes = np.array([len(terms) // 8 for _, _, terms, _ in rows])
    lengths = np.array([length for _, length, _, _ in rows], np.int64)
    table = PostingTable(
        terms=np.frombuffer(b"".join(row[2] for row in rows), "<i8"),
        docs=np.repeat(np.array([row[0] for row in rows], np.int32), sizes),
        tfs=np.frombuffer(b"".join(row[3] for row in rows), "<u2"),
        lengths=np.repeat(np.minimum(lengths, np.iinfo(np.uint16).max).astype(np.uint16), sizes),
    )
    await _write_segment(conn, ns, table, docs=len(rows), length=int(lengths.sum()))
    return len(rows)


async def _due_for_merge(conn: AsyncConnection[Any], ns: int) -> Sequence[tuple[int, int, int]]:
    """The segments (number, memories, length) that should become one, if any."""
    segments = await (await conn.execute(_SEGMENTS, {"ns": ns})).fetchall()
    dead = await (await conn.execute(_COUNT_TOMBSTONES, {"ns": ns})).fetchone()
    if segments and dead is not None and dead[0] > TOMBSTONE_SHARE * sum(docs for _, docs, _ in segments):
        return segments
    tiers: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for segment in segments:
        tiers[int(math.log(max(segment[1], 1), TIER_WIDTH))].append(segment)
    return next((tier for tier in tiers.values() if len(tier) >= TIER_WIDTH), ())


async def _merge(conn: AsyncConnection[Any], ns: int, segments: Sequence[tuple[int, int, int]]) -> None:
    numbers = [number for number, _, _ in segments]
    cursor = conn.cursor(binary=True)
    await cursor.execute(_TAKE_POSTINGS, {"ns": ns, "segments": numbers})
    rows = await cursor.fetchall()
    table = await asyncio.to_thread(_table, rows)
    # A memory without terms has no posting: its tombstone goes when all segments are merged.
    remaining = await (await conn.execute(_OTHER_SEGMENTS, {"ns": ns, "segments": numbers})).fetchone()
    whole = remaining is not None and remaining[0] == 0
    docs_in_merge = [] if whole else np.unique(table.docs).tolist()
    await cursor.execute(_TAKE_TOMBSTONES, {"ns": ns, "all": whole, "docs": docs_in_merge})
    dead = await cursor.fetchall()
    if dead:
        table = table.only(np.isin(table.docs, np.array([doc for doc, _ in dead], np.int32), invert=True))
    await conn.execute(_DROP_SEGMENTS, {"ns": ns, "segments": numbers})
    docs = sum(docs for _, docs, _ in segments) - len(dead)
    length = sum(length for _, _, length in segments) - sum(length for _, length in dead)
    if docs:
        await _write_segment(conn, ns, table, docs=docs, length=length)


def _table(rows: Sequence[tuple[int, bytes, bytes, bytes]]) -> PostingTable:
    """The rows of stored blocks as one table."""
    return PostingTable(
        terms=np.repeat(np.array([row[0] for row in rows], np.int64), [len(row[2]) // 2 for row in rows]),
        docs=np.frombuffer(b"".join(row[1] for row in rows), "<i4"),
        tfs=np.frombuffer(b"".join(row[2] for row in rows), "<u2"),
        lengths=np.frombuffer(b"".join(row[3] for row in rows), "<u2"),
    )


async def _write_segment(conn: AsyncConnection[Any], ns: int, table: PostingTable, *, docs: int, length: int) -> None:
    cursor = conn.cursor()
    await cursor.execute(_NEW_SEGMENT, {"ns": ns, "docs": docs, "length": length})
    row = await cursor.fetchone()
    if row is None:
        raise RuntimeError("insert into bm25_segment returned no row")
    segment = row[0]
    blocks = await asyncio.to_thread(lambda: list(table.blocks()))
    async with cursor.copy(_WRITE_POSTINGS) as copy:
        copy.set_types(["int4", "int8", "int4", "int4", "bytea", "bytea", "bytea"])
        for term, block_docs, tfs, lengths in blocks:
            first_doc = int(block_docs[0])
            columns = (block_docs.tobytes(), tfs.tobytes(), lengths.tobytes())
            await copy.write_row((ns, term, segment, first_doc, *columns))
