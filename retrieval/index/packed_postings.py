"""The postings of all terms of a namespace, packed into arrays that a file maps."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from graph.adjacency import in_mask
from postgres.connection import Connection
from retrieval.index.slots import Slots
from retrieval.store.bm25.blocks import PostingArrays, PostingTable
from retrieval.store.bm25.segments import read_all

_TERMS_AT_ONCE = 50_000


class PackedPostings(NamedTuple):
    """Postings by term, then slot, of the memories that existed when they were packed.

    They may include memories that have been deleted since. They never change.

    Attributes:
        known: mask by slot of the memories whose postings are all here.
        terms: ascending, shape (n,).
        starts: where the postings of each begin, and the end of the last, shape (n + 1,).
        docs, tfs: as of `TermPostings`.
    """

    known: NDArray[np.bool_]
    terms: NDArray[np.int64]
    starts: NDArray[np.int64]
    docs: NDArray[np.int32]
    tfs: NDArray[np.uint16]

    def postings_of(self, terms: Sequence[int]) -> Iterator[PostingArrays]:
        """The postings of each term, by slot."""
        wanted = np.array(terms, np.int64)
        positions = self.terms.searchsorted(wanted)
        ends = self.terms.searchsorted(wanted, "right")
        for start, end in zip(self.starts[positions].tolist(), self.starts[ends].tolist(), strict=True):
            yield self.docs[start:end], self.tfs[start:end]

    @property
    def is_consistent(self) -> bool:
        """Whether its arrays fit together and are in order."""
        bounds = self.starts[[0, -1]].tolist() == [0, len(self.docs)] and len(self.docs) == len(self.tfs)
        if not bounds or len(self.starts) != len(self.terms) + 1 or (np.diff(self.starts) <= 0).any():
            return False
        ascends = np.diff(self.docs) > 0
        ascends[self.starts[1:-1] - 1] = True  # docs may descend from one term to the next
        return bool(ascends.all() and (self.terms[1:] > self.terms[:-1]).all())

    def tables(self) -> Iterator[PostingTable]:
        """All postings, in parts, by slot."""
        for first in range(0, len(self.terms), _TERMS_AT_ONCE):
            starts = self.starts[first : first + _TERMS_AT_ONCE + 1]
            some = slice(*starts[[0, -1]].tolist())
            terms = np.repeat(self.terms[first : first + _TERMS_AT_ONCE], np.diff(starts))
            yield PostingTable(terms, self.docs[some], self.tfs[some])


async def pack(conn: Connection, ns: int, slots: Slots, known: NDArray[np.bool_], folder: Path) -> PackedPostings:
    """Pack the postings of the memories in a mask by slot; `conn` is in a transaction whose snapshot has them.

    They are written to unnamed files in a folder and mapped, so that few of them are in memory. Raises OSError.
    """
    terms, counts = [np.empty(0, np.int64)], [np.zeros(1, np.int64)]
    with tempfile.TemporaryFile(dir=folder) as docs, tempfile.TemporaryFile(dir=folder) as tfs:

        def keep(table: PostingTable) -> None:
            here = of_known(table, slots, known)
            terms_here, counts_here = np.unique(here.terms, return_counts=True)
            terms.append(terms_here)
            counts.append(counts_here)
            docs.write(here.docs.data)
            tfs.write(here.tfs.data)

        async for table in read_all(conn, ns, memories=int(np.count_nonzero(known))):
            await asyncio.to_thread(keep, table)  # searches continue meanwhile
        starts = np.concatenate(counts).cumsum(dtype=np.int64)
        return PackedPostings(known, np.concatenate(terms), starts, _mapped(docs, np.int32), _mapped(tfs, np.uint16))


def of_known(table: PostingTable, slots: Slots, known: NDArray[np.bool_]) -> PostingTable:
    """The postings of the memories in a mask by slot, with slots instead of ordinals."""
    docs = slots.from_ordinals(table.docs)
    return PostingTable(table.terms, docs.astype(np.int32, copy=False), table.tfs).only(in_mask(docs, known))


def _mapped(file: IO[bytes], dtype: DTypeLike) -> NDArray[Any]:
    file.flush()
    size = file.tell() // np.dtype(dtype).itemsize
    return np.memmap(file, dtype, "r", shape=size) if size else np.empty(0, dtype)
