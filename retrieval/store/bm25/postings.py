"""The BM25 index in PostgreSQL: a tail of new memories, and packed segments.

A write appends one row per memory to the tail; compaction (`compaction.py`) packs the tail into segments, whose rows
are described in `blocks.py`. Postings are immutable: a memory that is indexed again gets a new ordinal. The postings of
a term are therefore the union over the tail and the segments. They may include deleted memories, whose postings are
dropped when their segment is merged; only the `memory` table says which memories exist.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import LiteralString

import numpy as np
from numpy.typing import NDArray

from postgres.arrays import array_text
from postgres.connection import Connection, fetch
from retrieval.store.bm25.blocks import PostingArrays, PostingTable, find
from retrieval.text.analysis import TermBag

# Concatenates four columns; int4send writes big-endian.
_TOGETHER: LiteralString = """
    int4send(count(*)::integer) || string_agg(int4send(doc), '') || string_agg(int4send(octet_length(terms) / 8), '')
        || string_agg(terms, '') || string_agg(tfs, '')
"""

TAIL: LiteralString = (
    "select" + _TOGETHER + """ from (
        select doc, terms, tfs from bm25_tail where ns = %(ns)s and doc > %(after)s order by doc limit %(most)s
    ) as tail having count(*) > 0
    """
)  # fmt: skip
"""The first `most` memories of a tail after an ordinal, for `unpack_tail`; no row if there are none."""

# One statement, hence one snapshot: a concurrent compaction is seen either completely or not at all.
FETCH_TERMS: LiteralString = (
    """
    select wanted.term, found.postings
    from bm25_segment s
        cross join unnest(%(terms)s::bigint[]) as wanted (term)
        cross join lateral (
            select p.postings from bm25_posting p
            where p.ns = s.ns and p.segment = s.segment and p.first_term <= wanted.term
            order by p.first_term desc limit 1
        ) as found
    where s.ns = %(ns)s and s.live
    union all
    select null, """ + _TOGETHER + "from bm25_tail where ns = %(ns)s having count(*) > 0"
)  # fmt: skip
"""Rows (term, postings) for `decode_terms`: one per wanted term and segment, and one for the tail, with a null term.

Parameters: `ns`, and `terms`, a bigint[] without duplicates. Requires a binary cursor.
"""

_APPEND: LiteralString = """
    insert into bm25_tail (ns, doc, terms, tfs)
    select %(ns)s, * from unnest(%(docs)s::integer[], %(terms)b::bytea[], %(tfs)b::bytea[])
"""

# Rows locked by another are skipped. A running compaction packs a memory that no longer exists, and the tombstone marks
# it; if a writer's deletion rolls back, the memory is packed twice.
_REMOVE_FROM_TAIL = """
    delete from bm25_tail where ctid = any(array(
        select ctid from bm25_tail where ns = %(ns)s and doc = any(%(docs)s::int[]) for update skip locked
    )) returning doc
"""

_BURY = "insert into bm25_tombstone (ns, doc) select %(ns)s, unnest(%(docs)s::int[])"


async def append(conn: Connection, ns: int, bags: Mapping[int, TermBag]) -> None:
    """Add new memories, keyed by ordinal, to the tail, in the caller's transaction."""
    terms = [bag.terms.astype("<i8", copy=False).tobytes() for bag in bags.values()]
    tfs = [bag.tfs.astype("<u2", copy=False).tobytes() for bag in bags.values()]
    await conn.execute(_APPEND, {"ns": ns, "docs": array_text(bags), "terms": terms, "tfs": tfs})


async def remove(conn: Connection, ns: int, docs: Collection[int]) -> None:
    """Remove memories from the index, in the transaction that deletes their rows. Does not block."""
    if not docs:
        return
    in_tail = await remove_from_tail(conn, ns, docs)
    packed = [doc for doc in sorted(docs) if doc not in in_tail]
    if packed:
        await conn.execute(_BURY, {"ns": ns, "docs": packed})


async def remove_from_tail(conn: Connection, ns: int, docs: Collection[int]) -> set[int]:
    """Remove memories from the tail; returns those found, except any that another transaction is removing."""
    return {doc for (doc,) in await fetch(conn, _REMOVE_FROM_TAIL, {"ns": ns, "docs": array_text(sorted(docs))})}


def decode_terms(rows: Iterable[tuple[int | None, bytes]], terms: Collection[int]) -> dict[int, PostingArrays]:
    """Decode the rows of `FETCH_TERMS`, in any order: postings by requested term.

    Terms without postings are absent. May include deleted memories.
    """
    parts: dict[int, list[PostingArrays]] = {}
    for term, postings in rows:
        if term is None:
            for tail_term, found in _in_tail(unpack_tail(postings), terms):
                parts.setdefault(tail_term, []).append(found)
        elif (found_in_row := find(postings, term)) is not None:
            parts.setdefault(term, []).append(found_in_row)
    return {term: _union(found) for term, found in parts.items()}


def tail_docs(tail: bytes) -> NDArray[np.int32]:
    """Ordinals of a tail's memories, in its order."""
    return np.frombuffer(tail, ">i4", int.from_bytes(tail[:4], "big"), 4).astype(np.int32)


def unpack_tail(tail: bytes) -> PostingTable:
    """The postings of a tail in the format of `TAIL` and `FETCH_TERMS`, memory by memory."""
    docs = tail_docs(tail)
    sizes = np.frombuffer(tail, ">i4", docs.size, 4 + 4 * docs.size)
    offset, postings = 4 + 8 * docs.size, int(sizes.sum())
    return PostingTable(
        terms=np.frombuffer(tail, "<i8", postings, offset),
        docs=np.repeat(docs, sizes),
        tfs=np.frombuffer(tail, "<u2", postings, offset + 8 * postings),
    )


def _in_tail(tail: PostingTable, wanted: Collection[int]) -> Iterator[tuple[int, PostingArrays]]:
    """Yield the tail's postings of each wanted term, sorted by ordinal."""
    hits = tail.only(np.isin(tail.terms, np.fromiter(wanted, np.int64, len(wanted)))).sorted()
    starts = np.flatnonzero(np.diff(hits.terms, prepend=0))
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), hits.terms.size], strict=False):
        yield int(hits.terms[start]), (hits.docs[start:stop], hits.tfs[start:stop])


def _union(parts: Sequence[PostingArrays]) -> PostingArrays:
    """Merge the postings of one term from several sources, without duplicates."""
    if len(parts) == 1:
        return parts[0]
    in_order = sorted(parts, key=lambda found: int(found[0][0]))
    docs = np.concatenate([found[0] for found in in_order])
    tfs = np.concatenate([found[1] for found in in_order])
    if all(before[0][-1] < after[0][0] for before, after in pairwise(in_order)):
        return docs, tfs
    docs, first = np.unique(docs, return_index=True)
    return docs, tfs[first]
