"""The BM25 index in PostgreSQL: a tail of new memories, and packed segments.

A write appends one row per memory to the tail; compaction (`compaction.py`) packs tails into segments, whose rows
`blocks.py` describes. A posting says that a memory contains a term, and never changes: what is indexed anew gets a
new ordinal. So the postings of a term are the union of what tail and segments say, and whether a memory is still
there is not said here but by its row in `memory`: those of a deleted one are dropped when its segment is merged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, LiteralString

import numpy as np
from numpy.typing import NDArray
from psycopg import AsyncConnection

from retrieval.store.blocks import Found, PostingTable, find
from retrieval.text.analysis import TermBag

# Of four columns, one after the other; int4send writes big-endian.
_TOGETHER: LiteralString = """
    int4send(count(*)::integer) || string_agg(int4send(doc), '') || string_agg(int4send(octet_length(terms) / 8), '')
        || string_agg(terms, '') || string_agg(tfs, '')
"""

TAIL: LiteralString = (
    "select"
    + _TOGETHER
    + """ from (
        select doc, terms, tfs from bm25_tail where ns = %(ns)s and doc > %(after)s order by doc limit %(most)s
    ) as tail having count(*) > 0
    """
)
"""The first `most` memories of a tail after an ordinal, for `unpack_tail`; no row where there is none."""

# One statement, hence one snapshot: of a compaction that commits meanwhile it sees all or nothing.
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
    select null, """
    + _TOGETHER
    + "from bm25_tail where ns = %(ns)s having count(*) > 0"
)
"""Rows (term, postings) for `decode_terms`: one per wanted term and segment, and one of the tail, whose term is null.

Parameters: `ns`, and `terms`, a bigint[] without repeats. Read it with a binary cursor.
"""

_APPEND = "copy bm25_tail (ns, doc, terms, tfs) from stdin with (format binary)"

# A compaction that is taking rows out of the tail at this moment is not waited for: it packs a memory that is gone,
# which is what the tombstone is for.
_REMOVE_FROM_TAIL = """
    delete from bm25_tail where ctid = any(array(
        select ctid from bm25_tail where ns = %(ns)s and doc = any(%(docs)s::int[]) for update skip locked
    )) returning doc
"""

_BURY = "insert into bm25_tombstone (ns, doc) select %(ns)s, unnest(%(docs)s::int[])"


async def append(conn: AsyncConnection[Any], ns: int, bags: Mapping[int, TermBag]) -> None:
    """Index new memories, keyed by ordinal, in the caller's transaction."""
    async with conn.cursor() as cursor, cursor.copy(_APPEND) as copy:
        copy.set_types(["int4", "int4", "bytea", "bytea"])
        for doc, bag in bags.items():
            terms = bag.terms.astype("<i8", copy=False).tobytes()
            await copy.write_row((ns, doc, terms, bag.tfs.astype("<u2", copy=False).tobytes()))


async def remove(conn: AsyncConnection[Any], ns: int, docs: Collection[int]) -> None:
    """Take memories out of the index, in the transaction that deletes their rows. Waits for nobody."""
    if not docs:
        return
    cursor = await conn.execute(_REMOVE_FROM_TAIL, {"ns": ns, "docs": sorted(docs)})
    in_tail = {doc for (doc,) in await cursor.fetchall()}
    packed = [doc for doc in sorted(docs) if doc not in in_tail]
    if packed:
        await conn.execute(_BURY, {"ns": ns, "docs": packed})


def decode_terms(rows: Iterable[tuple[int | None, bytes]], terms: Collection[int]) -> dict[int, Found]:
    """The postings of terms, from rows of `FETCH_TERMS`.

    Args:
        rows: in any order.
        terms: those that were asked for.

    Returns:
        By term, those that occur. Memories that are deleted since may be among the postings.
    """
    parts: dict[int, list[Found]] = {}
    for term, postings in rows:
        if term is None:
            for tail_term, found in _in_tail(unpack_tail(postings), terms):
                parts.setdefault(tail_term, []).append(found)
        elif (found_in_row := find(postings, term)) is not None:
            parts.setdefault(term, []).append(found_in_row)
    return {term: _union(found) for term, found in parts.items()}


def tail_docs(tail: bytes) -> NDArray[np.int32]:
    """The ordinals of the memories of a tail, in its order."""
    return np.frombuffer(tail, ">i4", int.from_bytes(tail[:4], "big"), 4).astype(np.int32)


def unpack_tail(tail: bytes) -> PostingTable:
    """The postings of a tail, as `TAIL` and `FETCH_TERMS` send it, memory by memory."""
    docs = tail_docs(tail)
    sizes = np.frombuffer(tail, ">i4", docs.size, 4 + 4 * docs.size)
    at, postings = 4 + 8 * docs.size, int(sizes.sum())
    return PostingTable(
        terms=np.frombuffer(tail, "<i8", postings, at),
        docs=np.repeat(docs, sizes),
        tfs=np.frombuffer(tail, "<u2", postings, at + 8 * postings),
    )


def _in_tail(tail: PostingTable, wanted: Collection[int]) -> Iterator[tuple[int, Found]]:
    """The tail's postings of each wanted term that occurs in it, in order of the ordinals."""
    hits = tail.only(np.isin(tail.terms, np.fromiter(wanted, np.int64, len(wanted)))).sorted()
    starts = np.flatnonzero(np.diff(hits.terms, prepend=0) != 0) if hits.terms.size else np.empty(0, np.int64)
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), hits.terms.size], strict=False):
        yield int(hits.terms[start]), (hits.docs[start:stop], hits.tfs[start:stop])


def _union(parts: Sequence[Found]) -> Found:
    """The postings of one term from several places; what stands in two of them counts once."""
    if len(parts) == 1:
        return parts[0]
    in_order = sorted(parts, key=lambda found: int(found[0][0]))
    docs = np.concatenate([found[0] for found in in_order])
    tfs = np.concatenate([found[1] for found in in_order])
    if all(before[0][-1] < after[0][0] for before, after in pairwise(in_order)):
        return docs, tfs
    docs, first = np.unique(docs, return_index=True)
    return docs, tfs[first]
