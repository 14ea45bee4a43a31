"""Memories without a database for the tests of BM25, and its scores by plain arithmetic."""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from retrieval.index.columns import Columns
from retrieval.index.terms import TermPostings
from retrieval.legs import bm25_scoring
from retrieval.legs.bm25_scoring import AFTER_SHARES, BEFORE_SHARES, TermQuery

NONE = -1


@dataclass(frozen=True, kw_only=True)
class Said:
    """The data of memories.

    Attributes:
        ordinals: number of ordinals, including those without a memory.
        lengths: numbers of terms, for memories with any.
        sessions: their turns, in order.
        asks: memories that only ask a question.
        speakers: codes of the speakers of some.
    """

    ordinals: int
    lengths: Mapping[int, int] = field(default_factory=dict)
    sessions: Sequence[Sequence[int]] = ()
    asks: Collection[int] = ()
    speakers: Mapping[int, int] = field(default_factory=dict)

    @property
    def everything(self) -> NDArray[np.bool_]:
        """A mask of all."""
        return np.ones(self.ordinals, np.bool_)

    def columns(self) -> Columns:
        """The same data as an index has them."""
        columns = Columns()
        every = (columns.previous, columns.next, columns.length, columns.asks)
        for array in (*every, columns.sessions.codes, columns.speakers.codes):
            array.ensure(self.ordinals)
        for doc, length in self.lengths.items():
            columns.length.values[doc] = length
        for doc, code in self.speakers.items():
            columns.speakers.codes.values[doc] = code
        columns.asks.values[list(self.asks)] = True
        for code, session in enumerate(self.sessions):
            columns.sessions.codes.values[list(session)] = code
            link(columns, session)
        return columns


def link(columns: Columns, session: Sequence[int], *, last: int = NONE) -> None:
    """Make turns those of one session, and set what comes after them."""
    turns = (session, [NONE, *session[:-1]][: len(session)], [*session[1:], last][: len(session)])
    columns.link(*(struct.pack(f">{len(each)}i", *each) for each in turns))


def term_postings(counts: Mapping[int, int], lengths: Mapping[int, int]) -> TermPostings:
    """The postings of a term, given how often it stands in each memory, and how long every memory is."""
    docs = sorted(counts)
    tfs = np.array([counts[doc] for doc in docs], np.uint16)
    return TermPostings(np.array(docs, np.int32), tfs, np.array([lengths[doc] for doc in docs], np.int32))


def plain_score(query: TermQuery, doc: int) -> float:
    """A memory's score; 0 if it has no term of the query."""
    k1, b, score = query.k1, query.b, 0.0
    for postings, idf in query.terms:
        for at in np.flatnonzero(postings.docs == doc).tolist():
            tf, length = float(postings.tfs[at]), float(postings.lengths[at])
            score += idf * (k1 + 1) * tf / (tf + k1 * (1 - b + b / query.average * length))
    return score + (query.timeliness if doc in query.period_docs else 0.0)


def plain_score_in_context(
    query: TermQuery, doc: int, length: int, before: Sequence[int], after: Sequence[int], share: float
) -> float:
    """A turn's score given those before and after it, nearest first."""
    k1, b, score = query.k1, query.b, 0.0
    for postings, idf in query.terms:
        tfs = dict(zip(postings.docs.tolist(), postings.tfs.astype(float).tolist(), strict=True))
        tf = tfs.get(doc, 0.0)
        for turns, shares in ((before, BEFORE_SHARES), (after, AFTER_SHARES)):
            for turn, one_share in zip(turns, shares, strict=False):
                tf += share * one_share * tfs.get(turn, 0.0)
        if tf:
            score += idf * (tf * (k1 + 1) / (tf + k1 * (1 - b + b / query.average * length)))
    return score + (query.timeliness if doc in query.period_docs else 0.0)


def best(query: TermQuery, allowed: NDArray[np.bool_], count: int) -> list[tuple[int, float]]:
    """The best memories, all scored alone."""
    docs, scores = bm25_scoring.ranked(query, Said(ordinals=allowed.size).columns(), allowed, allowed, count=count)
    return list(zip(docs.tolist(), scores.tolist(), strict=True))


def first(scores: Mapping[int, float], count: int) -> list[tuple[int, float]]:
    """The best of all, equals by ordinal, and the equals of the last one."""
    ranked = sorted((-score, doc) for doc, score in scores.items() if score > 0)
    least = ranked[min(count, len(ranked)) - 1][0] if ranked else 0.0
    return [(doc, -score) for score, doc in ranked if score <= least]
