"""Binary layout of a segment's rows: the postings of one or more terms.

A segment is a sorted run, as in a log-structured merge tree: postings sorted by term, then ordinal, and cut into rows.
Rare terms share a row to spread PostgreSQL's per-row overhead; a frequent term has its own row. Ordinals are
offsets from a base rather than deltas, because computing running sums would dominate query time. All integers are
little-endian:

    uint32 base, uint32 postings, uint16 terms, uint8 width of an upper part, uint8 width of a frequency
    int64 terms[terms], ascending
    uint16 starts[terms], where each term's postings begin; omitted if the row has one term
    uint16 lower[postings], upper[postings], of 0, 1 or 2 bytes: an ordinal is base + lower + 65,536 upper
    frequencies[postings], of 1 or 2 bytes; omitted (width 0) if all are 1
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ROW_BYTES = 1_000
"""Target size of a row shared by several terms."""

OWN_ROW = 256
"""Terms with at least this many postings have their own row."""

_HEADER = struct.Struct("<IIHBB")
_WIDTHS: dict[int, np.dtype[np.uint8 | np.uint16]] = {1: np.dtype("u1"), 2: np.dtype("<u2")}

PostingArrays = tuple[NDArray[np.int32], NDArray[np.uint16]]
"""Ordinals of the memories that contain a term, ascending, and the term's frequency in each; shape (df,) each."""


class PostingTable(NamedTuple):
    """Postings of many terms as parallel columns, shape (n,) each."""

    terms: NDArray[np.int64]
    docs: NDArray[np.int32]
    tfs: NDArray[np.uint16]

    def only(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> PostingTable:
        """Select postings by mask or index."""
        return PostingTable(self.terms[chosen], self.docs[chosen], self.tfs[chosen])

    def sorted(self) -> PostingTable:
        """Sort by term, then ordinal, and drop duplicates."""
        order = np.lexsort((self.docs, self.terms))
        terms, docs = self.terms[order], self.docs[order]
        first = np.ones(order.size, np.bool_)
        first[1:] = (terms[1:] != terms[:-1]) | (docs[1:] != docs[:-1])
        return self.only(order[first])


def joined(tables: Sequence[PostingTable]) -> PostingTable:
    """Concatenate one or more tables."""
    return PostingTable(*map(np.concatenate, zip(*tables, strict=True)))


def find(row: bytes, term: int) -> PostingArrays | None:
    """The postings of one term in a row; None if the row does not contain it."""
    table = unpack([row])
    start, end = (table.terms.searchsorted(term, side) for side in ("left", "right"))
    return (table.docs[start:end], table.tfs[start:end]) if start < end else None


def unpack(rows: Sequence[bytes]) -> PostingTable:
    """Decode all postings of some rows, in the order of the rows."""
    if not rows:
        return PostingTable(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.uint16))
    terms, sizes, docs, tfs = [], [], [], []
    for row in rows:
        base, postings, row_terms, upper_width, tf_width = _HEADER.unpack_from(row)
        offset = _HEADER.size
        terms.append(np.frombuffer(row, "<i8", row_terms, offset))
        offset += 8 * row_terms
        ends = np.full(row_terms + 1, postings, np.int64)
        ends[0] = 0
        if row_terms > 1:
            ends[:-1] = np.frombuffer(row, "<u2", row_terms, offset)
            offset += 2 * row_terms
        sizes.append(ends[1:] - ends[:-1])
        row_docs = np.frombuffer(row, "<u2", postings, offset).astype(np.int32)
        offset += 2 * postings
        if upper_width:
            upper = np.frombuffer(row, _WIDTHS[upper_width], postings, offset)
            row_docs += np.left_shift(upper, 16, dtype=np.int32)
            offset += upper_width * postings
        docs.append(row_docs + base)
        row_tfs = np.frombuffer(row, _WIDTHS[tf_width], postings, offset) if tf_width else np.ones(postings, np.uint16)
        tfs.append(row_tfs.astype(np.uint16, copy=False))
    return PostingTable(
        terms=np.repeat(np.concatenate(terms), np.concatenate(sizes)),
        docs=np.concatenate(docs),
        tfs=np.concatenate(tfs),
    )


def pack(table: PostingTable) -> Iterator[tuple[int, bytes]]:
    """Encode a table sorted by `PostingTable.sorted`; yields (first term, row)."""
    size = table.terms.size
    if not size:
        return
    term_starts = np.flatnonzero(np.r_[True, table.terms[1:] != table.terms[:-1]])
    ids = table.terms[term_starts].astype("<i8", copy=False)
    row_terms = _first_terms(np.diff(term_starts, append=size))
    row_starts = term_starts[row_terms]
    bases = np.minimum.reduceat(table.docs, row_starts)
    offsets = table.docs - np.repeat(bases, np.diff(row_starts, append=size))
    lower, upper = offsets.astype("<u2"), offsets >> 16
    uppers = {width: upper.astype(dtype) for width, dtype in _WIDTHS.items()}
    frequencies = {width: table.tfs.astype(dtype) for width, dtype in _WIDTHS.items()}
    columns = (
        row_terms, np.r_[row_terms[1:], ids.size], row_starts, np.r_[row_starts[1:], size],
        bases, _widths(upper, row_starts, none=0), _widths(table.tfs, row_starts, none=1),
    )  # fmt: skip
    for first, last, start, stop, base, upper_width, tf_width in zip(*(each.tolist() for each in columns), strict=True):
        shared = last - first > 1
        yield (
            int(ids[first]),
            b"".join(
                (
                    _HEADER.pack(base, stop - start, last - first, upper_width, tf_width),
                    ids[first:last].tobytes(),
                    (term_starts[first:last] - start).astype("<u2").tobytes() if shared else b"",
                    lower[start:stop].tobytes(),
                    uppers[upper_width][start:stop].tobytes() if upper_width else b"",
                    frequencies[tf_width][start:stop].tobytes() if tf_width else b"",
                )
            ),
        )


def _first_terms(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Indices of the terms that begin a row, from the number of postings of each term."""
    taken = 10 + 4 * counts
    bucket = (np.cumsum(taken) - taken) // ROW_BYTES
    alone = counts >= OWN_ROW
    return np.flatnonzero(np.r_[True, (bucket[1:] != bucket[:-1]) | alone[1:] | alone[:-1]])


def _widths(values: NDArray[np.integer], row_starts: NDArray[np.int64], *, none: int) -> NDArray[np.int64]:
    """Bytes needed for the greatest value of each row; 0 if it equals `none`."""
    greatest = np.maximum.reduceat(values, row_starts)
    return np.where(greatest == none, 0, np.where(greatest < 256, 1, 2))
