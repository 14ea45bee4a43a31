"""A cache of decoded postings, updated with the writes since they were fetched."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import NamedTuple

import msgspec
import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

import native
from graph.adjacency import in_mask
from graph.persistent import Persistent
from retrieval.index.columns import Columns
from retrieval.index.packed_postings import PackedPostings
from retrieval.index.slots import GrowableArray
from retrieval.store.bm25.blocks import PostingArrays, PostingTable

MOST_BYTES = 32 * 1024 * 1024
"""Budget for the decoded postings of one namespace; the least recently used terms are evicted first."""

NO_DOCS = np.empty(0, np.int32)


@dataclass(frozen=True)
class TermPostings:
    """The live memories that contain one term.

    Attributes:
        docs: slots, ascending, shape (df,), int32.
        tfs: the term's frequency in each, shape (df,), uint16.
        lengths: each memory's number of terms, shape (df,), int32.
    """

    docs: NDArray[np.int32]
    tfs: NDArray[np.uint16]
    lengths: NDArray[np.int32]

    def without(self, docs: Sequence[int]) -> TermPostings:
        """The postings without some memories; the same object if it has none of them."""
        if not docs or not self.docs.size:
            return self
        gone = np.array(docs, np.int32)
        positions = self.docs.searchsorted(gone)
        there = positions[self.docs.take(positions, mode="clip") == gone]
        if not there.size:
            return self
        return TermPostings(np.delete(self.docs, there), np.delete(self.tfs, there), np.delete(self.lengths, there))

    def joined(self, more: TermPostings) -> TermPostings:
        """These postings and more; these win for a memory in both."""
        if not more.docs.size:
            return self
        docs = np.concatenate([self.docs, more.docs])
        tfs = np.concatenate([self.tfs, more.tfs])
        lengths = np.concatenate([self.lengths, more.lengths])
        latest = docs[max(self.docs.size - 1, 0) :]
        if not (latest[1:] > latest[:-1]).all():  # new memories are mostly the last
            docs, first = np.unique(docs, return_index=True)
            tfs, lengths = tfs[first], lengths[first]
        return TermPostings(docs, tfs, lengths)

    @cached_property
    def layout(self) -> bytes:
        """The arrays as the beginning of `struct part` of native/bm25.h, valid as long as the arrays are.

        Raises ValueError for wrong types, or arrays of different sizes.
        """
        arrays = (self.docs, np.int32), (self.tfs, np.uint16), (self.lengths, np.int32)
        if any(
            each.dtype != dtype or each.shape != self.docs.shape or not each.flags.c_contiguous
            for each, dtype in arrays
        ):
            raise ValueError("the postings of a term are not three contiguous arrays of one size and of their types")
        extremes = int(self.tfs.max()), int(self.lengths.min())
        return native.structure(self.docs, self.tfs, self.lengths, self.docs.size, *extremes)

    @property
    def nbytes(self) -> int:
        """Their approximate size in bytes."""
        return self.docs.nbytes + self.tfs.nbytes + self.lengths.nbytes + 500


class Vocabulary(NamedTuple):
    """The terms that occur in a namespace, ascending, shape (n,), and how many memories have those before each.

    `starts` has shape (n + 1,): the last is the number of postings.
    """

    terms: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def from_terms(cls, terms: NDArray[np.int64]) -> Vocabulary:
        """The vocabulary of some postings, given the term of each."""
        distinct, counts = np.unique(terms, return_counts=True)
        return cls(distinct, np.concatenate([[0], counts.cumsum()]))

    def occurrences(self, terms: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many memories have each of some terms."""
        ends, starts = (self.starts[self.terms.searchsorted(terms, side)] for side in ("right", "left"))
        return ends - starts


class Postings(msgspec.Struct, frozen=True):
    """The input of BM25 for one query, as of one moment.

    Attributes:
        terms: postings of the wanted terms that occur.
        memories: live memories of the namespace.
        length: sum of their lengths, in terms.
        period_docs: slots of the memories of the query's periods, ascending.
    """

    terms: Mapping[int, TermPostings]
    memories: int
    length: int
    period_docs: NDArray[np.int32] = NO_DOCS


@dataclass(slots=True)
class _Cached:
    """Postings, and how many of the additions and removals they include."""

    postings: TermPostings
    additions: int
    removals: int


class TermCache:
    """Decoded postings by term; later additions and removals are applied when a term is next used."""

    def __init__(self, columns: Columns, packed: PackedPostings | None = None) -> None:
        """Start empty, decoding terms from `packed` if given; `columns` are those of the same namespace."""
        self.packed = packed
        """Postings from before `additions`, or None."""
        self.vocabulary: Vocabulary | None = None if packed is None else Vocabulary(packed.terms, packed.starts)
        """The terms of all memories but those added since; None until a query needs it."""
        self._columns = columns
        self._cached: LRUCache[int, _Cached] = LRUCache(inf, getsizeof=lambda each: each.postings.nbytes)
        self._removed: list[int] = []
        self._added = _Additions()

    @property
    def nbytes(self) -> int:
        """Its approximate size in bytes."""
        read = 0 if self.packed or self.vocabulary is None else sum(each.nbytes for each in self.vocabulary)
        return int(self._cached.currsize) + self._added.nbytes + read

    @property
    def additions(self) -> int:
        """Number of postings added so far: postings fetched after reading this include them."""
        return self._added.count

    def missing(self, terms: Collection[int]) -> list[int]:
        """The terms that must be fetched; packed ones are decoded instead."""
        missing = [term for term in terms if term not in self._cached]
        if missing and self.packed is not None:
            for term, (docs, tfs) in zip(missing, self.packed.postings_of(missing), strict=True):
                self._cached[term] = _Cached(self._of_alive(docs, tfs), 0, len(self._removed))
            self.shrink(spare=terms)
            return []
        return missing

    def knows(self, doc: int) -> bool:
        """Whether the postings of a memory, given by slot, are packed, so that it need not be added."""
        return self.packed is not None and doc < len(self.packed.known) and bool(self.packed.known[doc])

    def tables(self) -> Iterator[PostingTable]:
        """The packed postings and those added since, by slot; some may be of memories that are no longer alive."""
        if self.packed is not None:
            yield from self.packed.tables()
        yield self._added.table

    def add(self, docs: Sequence[int], bags: Sequence[tuple[NDArray[np.int64], NDArray[np.uint16]]]) -> None:
        """Add new memories, given by slot, with the terms of each and their frequencies."""
        for doc, (terms, tfs) in zip(docs, bags, strict=True):
            self._added.append(doc, terms, tfs)

    def remove(self, docs: Sequence[int]) -> None:
        """Note that some memories, given by slot, are no longer alive."""
        self._removed += docs

    def clear(self) -> None:
        """Drop everything, as there are new memories whose terms are unknown."""
        self._cached.clear()
        self.packed = self.vocabulary = None
        self._added = _Additions()

    def occurrences(self, terms: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many memories have each of some terms, deleted ones included; without a vocabulary, of those added."""
        added = self._added.table.terms
        counts = Vocabulary.from_terms(added[np.isin(added, terms)]).occurrences(terms)
        return counts if self.vocabulary is None else counts + self.vocabulary.occurrences(terms)

    def put(self, fetched: Mapping[int, PostingArrays], terms: Collection[int], *, additions: int) -> None:
        """Add the postings of `missing` terms, fetched when `additions` had at least the given value.

        They are by ordinal, may include dead and unknown memories, and lack terms without postings.
        """
        nothing = np.empty(0, np.int32), np.empty(0, np.uint16)
        for term in terms:
            ordinals, tfs = fetched.get(term, nothing)
            postings = self._of_alive(self._columns.slots.from_ordinals(ordinals), tfs)
            self._cached[term] = _Cached(postings, additions, len(self._removed))

    def postings(self, terms: Iterable[int]) -> Postings:
        """The live postings of some terms, none of which may be missing."""
        found = {term: self._current(term) for term in terms}
        occurring = {term: postings for term, postings in found.items() if postings.docs.size}
        return Postings(occurring, self._columns.count, self._columns.total_length)

    def _current(self, term: int) -> TermPostings:
        cached = self._cached[term]
        if cached.additions < self._added.count or cached.removals < len(self._removed):
            added = self._of_alive(*self._added.since(term, since=cached.additions))
            postings = cached.postings.without(self._removed[cached.removals :]).joined(added)
            cached = self._cached[term] = _Cached(postings, self._added.count, len(self._removed))
        return cached.postings

    def _of_alive(self, docs: NDArray[np.int32], tfs: NDArray[np.uint16]) -> TermPostings:
        live = in_mask(docs, self._columns.alive.values)
        if not live.all():
            docs, tfs = docs[live], tfs[live]
        return TermPostings(docs, tfs, self._columns.length[docs])

    def shrink(self, *, spare: Collection[int]) -> None:
        """Evict the least recently used terms until the rest fits the budget, except those in `spare`."""
        if self._cached.currsize > MOST_BYTES:
            for term in spare:
                self._cached.get(term)  # marks it as most recently used
            while self._cached.currsize > MOST_BYTES and len(self._cached) > len(spare):
                self._cached.popitem()


class _Additions(Persistent):
    """The terms of new memories in order of addition."""

    PARTS = ("_terms", "_docs", "_tfs")

    def __init__(self) -> None:
        self._terms, self._docs = GrowableArray(np.int64, 0), GrowableArray(np.int32, 0)
        self._tfs = GrowableArray(np.uint16, 0)

    @property
    def count(self) -> int:
        return self._terms.needed

    @property
    def table(self) -> PostingTable:
        return PostingTable(*(column[: self.count] for column in (self._terms, self._docs, self._tfs)))

    def append(self, doc: int, terms: NDArray[np.int64], tfs: NDArray[np.uint16]) -> None:
        positions = self.count + np.arange(len(terms))
        for column, values in ((self._terms, terms), (self._docs, doc), (self._tfs, tfs)):
            column.put(positions, values)

    def since(self, term: int, *, since: int) -> PostingArrays:
        """The postings of a term, from addition number `since` on."""
        hits = since + np.flatnonzero(self._terms[since : self.count] == term)
        return self._docs[hits], self._tfs[hits]
