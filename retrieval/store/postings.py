"""The BM25 index in PostgreSQL: a tail of new memories, packed segments, tombstones.

A write appends one row per memory to the tail. Compaction (`compaction.py`) packs tails into
segments, one row per term and block of memories. A deleted memory leaves the tail, or becomes a
tombstone until its segment is merged. All counts that BM25 needs (memories, lengths, document
frequencies) follow from what a query reads, so no row of statistics is contended and every
committed write and delete is exact at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import AsyncConnection

from retrieval.text.analysis import TermBag

_APPEND = "copy bm25_tail (ns, doc, terms, tfs, length) from stdin with (format binary)"

_REMOVE_FROM_TAIL = "delete from bm25_tail where ns = %(ns)s and doc = any(%(docs)s) returning doc"

_BURY = """
    insert into bm25_tombstone (ns, doc, length)
    select %(ns)s, doc, length from unnest(%(docs)s::int[], %(lengths)s::int[]) as gone (doc, length)
"""

# One statement, hence one snapshot: a memory is in the tail or in a segment, never in both.
# Integers of the tail are big-endian, as int4send writes them.
_READ = """
    select 'posting' as part, term, docs, tfs, lengths,
        null::bytea as terms, null::bytea as sizes, 0::bigint as memories, 0::bigint as length
    from bm25_posting where ns = %(ns)s and term = any(%(terms)s::bigint[])
    union all
    select 'tail', null, string_agg(int4send(doc), ''), string_agg(tfs, ''), string_agg(int4send(length), ''),
        string_agg(terms, ''), string_agg(int4send(octet_length(terms) / 8), ''),
        count(*), coalesce(sum(length), 0)::bigint
    from bm25_tail where ns = %(ns)s
    union all
    select 'segment', null, null, null, null, null, null,
        coalesce(sum(docs), 0)::bigint, coalesce(sum(length), 0)::bigint
    from bm25_segment where ns = %(ns)s
    union all
    select 'tombstone', null, string_agg(int4send(doc), ''), null, null, null, null,
        -count(*), -coalesce(sum(length), 0)::bigint
    from bm25_tombstone where ns = %(ns)s
"""


@dataclass(frozen=True, slots=True)
class TermPostings:
    """The live memories that contain one term.

    Attributes:
        docs: ordinals of memories, shape (df,), int32.
        tfs: how often the term stands in each, shape (df,), uint16.
        lengths: each memory's number of terms, shape (df,), int32.
    """

    docs: NDArray[np.int32]
    tfs: NDArray[np.uint16]
    lengths: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Postings:
    """All that BM25 needs for one query, from one snapshot.

    Attributes:
        terms: postings of each wanted term that occurs.
        memories: live memories of the namespace.
        length: sum of their lengths, in terms.
    """

    terms: Mapping[int, TermPostings]
    memories: int
    length: int


async def append(conn: AsyncConnection[Any], ns: int, bags: Mapping[int, TermBag]) -> None:
    """Index new memories, keyed by ordinal, in the caller's transaction."""
    async with conn.cursor() as cursor, cursor.copy(_APPEND) as copy:
        copy.set_types(["int4", "int4", "bytea", "bytea", "int4"])
        for doc, bag in bags.items():
            terms = bag.terms.astype("<i8", copy=False).tobytes()
            tfs = bag.tfs.astype("<u2", copy=False).tobytes()
            await copy.write_row((ns, doc, terms, tfs, bag.length))


async def remove(conn: AsyncConnection[Any], ns: int, lengths: Mapping[int, int]) -> None:
    """Take memories (ordinal to length) out of the index, in the caller's transaction."""
    if not lengths:
        return
    cursor = await conn.execute(_REMOVE_FROM_TAIL, {"ns": ns, "docs": sorted(lengths)})
    in_tail = {doc for (doc,) in await cursor.fetchall()}
    packed = [doc for doc in sorted(lengths) if doc not in in_tail]
    if packed:
        await conn.execute(_BURY, {"ns": ns, "docs": packed, "lengths": [lengths[doc] for doc in packed]})


async def read(conn: AsyncConnection[Any], ns: int, terms: Sequence[int]) -> Postings:
    """The live postings of some terms with the namespace's statistics, from one snapshot."""
    cursor = conn.cursor(binary=True)
    await cursor.execute(_READ, {"ns": ns, "terms": list(terms)})
    found: dict[int, list[TermPostings]] = {}
    tombstones = np.empty(0, np.int32)
    memories = length = 0
    for part, term, docs, tfs, lengths, tail_terms, sizes, part_memories, part_length in await cursor.fetchall():
        memories += part_memories
        length += part_length
        if part == "posting":
            found.setdefault(term, []).append(_block(docs, tfs, lengths))
        elif part == "tombstone" and docs is not None:
            tombstones = _int32(docs)
        elif part == "tail" and docs is not None:
            tail = TermPostings(_int32(docs), np.frombuffer(tfs, "<u2"), _int32(lengths))
            for tail_term, postings in _by_term(tail, np.frombuffer(tail_terms, "<i8"), _int32(sizes), terms):
                found.setdefault(tail_term, []).append(postings)
    live = {term: _without(_joined(parts), tombstones) for term, parts in found.items()}
    return Postings({term: postings for term, postings in live.items() if postings.docs.size}, memories, length)


def _int32(big_endian: bytes) -> NDArray[np.int32]:
    return np.frombuffer(big_endian, ">i4").astype(np.int32)


def _block(docs: bytes, tfs: bytes, lengths: bytes) -> TermPostings:
    """One stored block."""
    return TermPostings(
        np.frombuffer(docs, "<i4"), np.frombuffer(tfs, "<u2"), np.frombuffer(lengths, "<u2").astype(np.int32)
    )


def _by_term(
    tail: TermPostings, tail_terms: NDArray[np.int64], sizes: NDArray[np.int32], wanted: Sequence[int]
) -> Iterable[tuple[int, TermPostings]]:
    """The tail's postings of each wanted term.

    Args:
        tail: `docs` and `lengths` one per memory, `tfs` one per memory and term.
        tail_terms: the memories' terms one after another, as many as `tail.tfs`.
        sizes: how many of them each memory has.
        wanted: terms asked for.
    """
    hits = np.flatnonzero(np.isin(tail_terms, np.array(wanted, np.int64)))
    row = np.repeat(np.arange(sizes.size), sizes)[hits]
    for term in np.unique(tail_terms[hits]):
        chosen = tail_terms[hits] == term
        rows = row[chosen]
        yield int(term), TermPostings(tail.docs[rows], tail.tfs[hits[chosen]], tail.lengths[rows])


def _joined(parts: Sequence[TermPostings]) -> TermPostings:
    """The postings of one term from all its parts, which share no memory."""
    if len(parts) == 1:
        return parts[0]
    return TermPostings(
        np.concatenate([part.docs for part in parts]),
        np.concatenate([part.tfs for part in parts]),
        np.concatenate([part.lengths for part in parts]),
    )


def _without(postings: TermPostings, tombstones: NDArray[np.int32]) -> TermPostings:
    """The postings without deleted memories."""
    if not tombstones.size:
        return postings
    live = np.isin(postings.docs, tombstones, invert=True)
    return TermPostings(postings.docs[live], postings.tfs[live], postings.lengths[live])
