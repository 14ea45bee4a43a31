"""BM25 arithmetic: memories alone, and turns in the context of those around them. No I/O."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from native import Array, at, function
from retrieval.mirror.columns import Columns
from retrieval.mirror.terms import Postings, TermPostings

K1 = 1.2
"""How soon repetitions of a term stop to count."""

LENGTH_PIVOT = 30.0
"""Average length, in terms, at which a memory's length counts half against it."""

BEFORE_SHARES = (0.4, 0.3, 0.2, 0.1)
AFTER_SHARES = (0.3, 0.2, 0.1)
"""What a term in the turns before and after counts, nearest first, against 1 in the turn itself.

Chosen on development conversations; docs/decisions/0004-chat-turns.md.
"""

SHARES = (*BEFORE_SHARES, *AFTER_SHARES)
"""Of all turns around a turn: those before it, then those after it."""

_NOTHING = np.empty(0, np.int32)
_HEAD, _WEIGHT, _LAST = struct.Struct("q3d"), struct.Struct("d"), struct.Struct("q16xq16xd")

_integer, _number = ctypes.c_int64, ctypes.c_double
_ranked = function(
    "trivet_bm25_ranked",
    *[Array] * 4,
    *[_integer] * 5,
    Array,
    _number,
    _integer,
    Array,
    _number,
    _integer,
    Array,
    result=_integer,
)
_coverage = function("trivet_bm25_coverage", Array, _number, _number, Array, _integer, *[Array] * 3)


def length_penalty(average: float) -> float:
    """The parameter b for a namespace whose memories have that many terms on average.

    Length says little about a chat turn and much about an article; one constant is wrong for one of
    them (docs/decisions/0002-bm25-length.md).

    >>> length_penalty(10), length_penalty(90)
    (0.25, 0.75)
    """
    return average / (average + LENGTH_PIVOT)


class TermWeight(NamedTuple):
    """What one term of a query adds: its postings and its idf."""

    postings: TermPostings
    idf: float


@dataclass(frozen=True, slots=True)
class Query:
    """A query against one snapshot of a namespace.

    Attributes:
        terms: those of its terms that occur.
        average: terms per memory.
        timely: ordinals of the memories of the period that the query speaks of, ascending.
        timeliness: what being of that period adds to a score.
        layout: all that as `struct query` of native/bm25.h; good as long as the query is.
    """

    terms: Sequence[TermWeight]
    average: float
    timely: NDArray[np.int32]
    timeliness: float
    layout: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        b = length_penalty(self.average)
        parts = [_HEAD.pack(len(self.terms) + (self.timely.size > 0), K1, 1 - b, b / self.average)]
        for postings, idf in self.terms:
            parts += (postings.layout, _WEIGHT.pack(idf))
        if self.timely.size:
            parts.append(_LAST.pack(at(self.timely), self.timely.size, self.timeliness))
        object.__setattr__(self, "layout", b"".join(parts))


@dataclass(frozen=True, slots=True)
class Sought:
    """What a query looks for.

    Attributes:
        query: its terms that occur; None if none does.
        attainable: the BM25 of a memory that had all its terms without end.
        terms: how many it has, those that do not occur included.
    """

    query: Query | None
    attainable: float
    terms: int


class Coverage(NamedTuple):
    """How much of a query stands in each of some memories, float32 of shape (n,) in [0, 1].

    Attributes:
        covered: the share of its idf.
        shared: the share of its terms.
        rarest: the greatest idf of a term in the memory, as a share of the query's greatest that occurs.
    """

    covered: NDArray[np.float32]
    shared: NDArray[np.float32]
    rarest: NDArray[np.float32]


def weigh(found: Postings, *, periods: Collection[int] = (), period_weight: float = 0.0) -> Query | None:
    """The query's terms with their idf; None where none occurs.

    idf(t) = ln(1 + (N - df + 0.5) / (df + 0.5)): Robertson and Zaragoza, "The Probabilistic Relevance
    Framework: BM25 and Beyond", 2009, in the form that cannot be negative.

    Args:
        found: postings of the terms.
        periods: the terms among them that stand for a calendar period. Together they are one term,
            which a memory has or has not: having been written then is a preference, not a filter.
        period_weight: what that term adds, times its idf.
    """
    terms = [
        TermWeight(postings, _idf(found.memories, postings.docs.size))
        for term, postings in found.terms.items()
        if term not in periods
    ]
    dated = [found.terms[term].docs for term in periods if term in found.terms] if period_weight else []
    timely = np.unique(np.concatenate(dated)) if dated else _NOTHING
    if not terms and not timely.size:
        return None
    return Query(
        terms=terms,
        average=max(found.length / found.memories, 1.0),  # there may be memories without any term
        timely=timely,
        timeliness=period_weight * _idf(found.memories, timely.size) if dated else 0.0,
    )


@lru_cache(maxsize=4_096)
def _idf(memories: int, df: int) -> float:
    return float(np.log1p((memories - df + 0.5) / (df + 0.5)))


def attainable(found: Postings, terms: Collection[int]) -> float:
    """The BM25 of a memory that had all these terms without end, those that no memory has included."""
    known = [found.terms[term].docs.size if term in found.terms else 0 for term in terms]
    return (K1 + 1) * sum(_idf(found.memories, df) for df in known)


def coverage(sought: Sought | None, docs: ArrayLike) -> Coverage:
    """How much of a query stands in memories, each on its own; nothing of one that looked for no terms."""
    docs = np.ascontiguousarray(docs, np.int64)
    shares = np.zeros((3, docs.size), np.float32)
    if sought is not None and sought.query is not None and sought.query.terms:
        row, nbytes = at(shares), shares.nbytes // 3
        rows = (row, row + nbytes, row + 2 * nbytes)
        _coverage(sought.query.layout, sought.attainable, sought.terms, at(docs), docs.size, *rows)
    return Coverage(*shares)


def ranked(
    query: Query,
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
    """The eligible memories with the best scores, and turns near the best ones in the context of those around them.

    score(d) = sum over terms t of idf(t) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * |d| / avg|d|)),
    b of `length_penalty`; and the query's `timeliness` where the memory is of its period. Sums are of one order, so
    that equals are equal.

    The best are found by MaxScore (Turtle and Flood, "Query evaluation: strategies and optimizations", IPM 1995,
    doi:10.1016/0306-4573(95)00020-H): as soon as memories that only the terms of the least bounds are in cannot be
    among the best any more, these terms are looked up for the others alone.

    A turn's neighbours are a field of small weight: tf(t, d) + share * sum over neighbours n of share(n) * tf(t, n)
    stands for tf. Fields are added before saturation, so that a term in the turn and beside it does not count twice
    (BM25F: Robertson, Zaragoza and Taylor, CIKM 2004, doi:10.1145/1031171.1031181). Turns that only fail the filters
    are looked at too: what was said beside them may be eligible.

    Args:
        query: any.
        memories: of the namespace.
        visible: which of them the query may see, by ordinal.
        eligible: which of those meet its filters.
        count: of memories that are looked for, at least 1; more come where the last ones are equals.
        near: turns this near to the best `2 * count` are scored too, even if they share no term with the query.
        share: scales what the turns around a turn count (`SHARES`); with 0 all memories are scored alone.
        asking: what the score of a turn counts that only asks.
        speakers: codes of speakers.
        boost: what the score of a memory counts that one of them said.

    Returns:
        Ordinals and scores of those above 0, best first, equals by ordinal; shape (n,) each.
    """
    here = at(visible)
    there = here if eligible is visible else at(eligible)
    ordinals = min(visible.size, eligible.size)
    shares = _shares(share) if share else None
    codes = struct.pack(f"{len(speakers)}i", *speakers)
    capacity = count + 16
    while True:
        out = np.empty((2, capacity), np.int64)
        found = _ranked(
            query.layout, memories.layout(), here, there, ordinals, count, near, len(BEFORE_SHARES), len(AFTER_SHARES),
            shares, asking, len(speakers), codes, boost, capacity, at(out),
        )  # fmt: skip
        if found < 0:
            raise MemoryError
        if found <= capacity:
            return out[0, :found], out[1, :found].view(np.float64)
        capacity = found


@lru_cache(maxsize=16)
def _shares(share: float) -> bytes:
    return struct.pack(f"{len(SHARES)}d", *(share * each for each in SHARES))
