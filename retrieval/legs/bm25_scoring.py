"""BM25 scoring of memories, with turns scored in the context of their neighbours. No I/O."""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from native import address, function
from retrieval.index.columns import Columns
from retrieval.index.terms import NO_DOCS, Postings, TermPostings

K1 = 1.2
"""Saturation of term frequency: the larger, the longer repetitions keep adding to the score."""

LENGTH_PIVOT = 30.0
"""Average length, in terms, at which the length penalty b is 0.5."""

BEFORE_SHARES = (0.4, 0.3, 0.2, 0.1)
AFTER_SHARES = (0.3, 0.2, 0.1)
"""Weights of a term in the turns before and after, nearest first; 1 in the turn itself.

Chosen on development conversations; docs/decisions/0004-chat-turns.md.
"""

_HEAD, _WEIGHT, _LAST = struct.Struct("q3d"), struct.Struct("d"), struct.Struct("q16xq16xd")

_ranked = function("trivet_bm25_ranked", "PPPPqqPdqPdqP", "q")
_coverage = function("trivet_bm25_coverage", "PddPqP")


def length_penalty(average: float) -> float:
    """The parameter b for a namespace whose memories have `average` terms on average.

    Length says little about a chat turn and much about an article, so that no constant suits both
    (docs/decisions/0002-bm25-length.md).

    >>> length_penalty(10), length_penalty(90)
    (0.25, 0.75)
    """
    return average / (average + LENGTH_PIVOT)


class TermWeight(NamedTuple):
    """A term of a query: its postings and its idf."""

    postings: TermPostings
    idf: float


@dataclass(frozen=True, slots=True)
class TermQuery:
    """A query against one snapshot of a namespace.

    Attributes:
        terms: the query's terms that occur in the namespace.
        term_count: the number of its terms, including those that do not occur.
        score_upper_bound: the limit of BM25 for a memory with all of these, as their frequency grows.
        average: average number of terms of a memory.
        k1: saturation of term frequency.
        b: length penalty, in [0, 1].
        period_docs: slots of the memories of the query's period, ascending.
        timeliness: added to the score of a memory of that period.
        layout: the query as `struct query` of native/bm25.h; its pointers are valid as long as the query is.
    """

    terms: Sequence[TermWeight]
    term_count: int
    score_upper_bound: float
    average: float
    k1: float
    b: float
    period_docs: NDArray[np.int32]
    timeliness: float
    layout: bytes = field(init=False, repr=False)

    @classmethod
    def from_postings(
        cls,
        postings: Postings,
        terms: Collection[int] = (),
        *,
        k1: float = K1,
        b: float | None = None,
        period_weight: float = 0.0,
    ) -> TermQuery:
        """The query's terms with their idf; `terms` are all of them, including those that no memory contains.

        idf(t) = ln(1 + (N - df + 0.5) / (df + 0.5)): Robertson and Zaragoza, "The Probabilistic Relevance
        Framework: BM25 and Beyond", 2009, in the form that cannot be negative.

        A `b` of None is the `length_penalty` of the namespace's average.

        The query's periods are scored as one term, present or absent, with `period_weight` times its idf: a memory's
        time is a preference, not a filter.
        """
        period_docs = postings.period_docs if period_weight else NO_DOCS
        average = max(postings.length / max(postings.memories, 1), 1.0)  # memories may have no terms
        dfs = [postings.terms[term].docs.size if term in postings.terms else 0 for term in terms]
        return cls(
            terms=[TermWeight(each, _idf(postings.memories, each.docs.size)) for each in postings.terms.values()],
            term_count=len(terms),
            score_upper_bound=(k1 + 1) * sum(_idf(postings.memories, df) for df in dfs),
            average=average,
            k1=k1,
            b=length_penalty(average) if b is None else b,
            period_docs=period_docs,
            timeliness=period_weight * _idf(postings.memories, period_docs.size),
        )

    def __post_init__(self) -> None:
        head = (self.k1, 1 - self.b, self.b / self.average)
        parts = [_HEAD.pack(len(self.terms) + (self.period_docs.size > 0), *head)]
        for postings, idf in self.terms:
            parts += (postings.layout, _WEIGHT.pack(idf))
        if self.period_docs.size:
            parts.append(_LAST.pack(address(self.period_docs), self.period_docs.size, self.timeliness))
        object.__setattr__(self, "layout", b"".join(parts))


@lru_cache(maxsize=4_096)
def _idf(memories: int, df: int) -> float:
    return float(np.log1p((memories - df + 0.5) / (df + 0.5)))


def coverage(query: TermQuery | None, docs: ArrayLike) -> NDArray[np.float32]:
    """How much of a query each memory contains, scored without context; 0 if there is no query.

    Rows of shape (n,) in [0, 1]: the share of the query's idf, the share of its terms, and the highest idf of its terms
    in the memory relative to the highest of all that occur.
    """
    docs = np.ascontiguousarray(docs, np.int64)
    shares = np.zeros((3, docs.size), np.float32)
    if query is not None and query.terms:
        _coverage(query.layout, query.score_upper_bound, query.term_count, address(docs), docs.size, address(shares))
    return shares


def ranked(
    query: TermQuery,
    memories: Columns,
    visible: NDArray[np.bool_],
    eligible: NDArray[np.bool_],
    *,
    count: int,
    near: int = 0,
    share: float = 0.0,
    asking: float = 1.0,
    speakers: Collection[int] = (),
    boost: float = 1.0,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The eligible memories with the best scores; turns near the best ones are scored in context.

    score(d) = sum over terms t of idf(t) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * |d| / avg|d|)),
    plus the query's `timeliness` if the memory is of its period. The terms are added in one order, so that equal
    memories have equal scores.

    The best are found with MaxScore (Turtle and Flood, "Query evaluation: strategies and optimizations", IPM 1995,
    doi:10.1016/0306-4573(95)00020-H): once memories that contain only the terms with the lowest bounds cannot be among
    the best, these terms are only looked up in the candidates of the other terms.

    A turn's neighbours are a field of small weight: tf is replaced by tf(t, d) + share * sum over neighbours n of
    share(n) * tf(t, n). Fields are added before saturation, so that a term in the turn and beside it does not count
    twice (BM25F: Robertson, Zaragoza and Taylor, CIKM 2004, doi:10.1145/1031171.1031181). Turns that only fail the
    filters are expanded too: the turns beside them may be eligible.

    Args:
        query: with its postings.
        memories: of the namespace.
        visible: by slot, which of them the query may see.
        eligible: by slot, which of those match its filters.
        count: memories wanted, at least 1; more are returned if others tie with the last.
        near: turns within this distance of the best `2 * count` are scored too, even without a term of the query.
        share: scales `BEFORE_SHARES` and `AFTER_SHARES`; 0 scores every memory alone.
        asking: factor on the score of a turn that only asks.
        speakers: codes of the speakers to boost.
        boost: factor on the score of their memories.

    Returns:
        Slots and scores above 0, best first, ties by slot; shape (n,) each.
    """
    visible_address = address(visible)
    eligible_address = visible_address if eligible is visible else address(eligible)
    slots = min(visible.size, eligible.size)
    context = _context(near, share) if share else None
    codes = struct.pack(f"{len(speakers)}i", *speakers)
    capacity = count + 16
    while True:
        out = np.empty((2, capacity), np.int64)
        found = _ranked(
            query.layout, memories.layout(), visible_address, eligible_address, slots, count, context,
            asking, len(speakers), codes, boost, capacity, address(out),
        )  # fmt: skip
        if found <= capacity:
            return out[0, :found], out[1, :found].view(np.float64)
        capacity = found


@lru_cache(maxsize=16)
def _context(near: int, share: float) -> bytes:
    """`struct context` of native/bm25_context.c."""
    shares = [share * each for each in (*BEFORE_SHARES, *AFTER_SHARES)]
    return struct.pack(f"3q{len(shares)}d", near, len(BEFORE_SHARES), len(AFTER_SHARES), *shares)
