"""BM25 arithmetic: memories alone, and turns in the context of those around them. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrieval.store.postings import Postings, TermPostings

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


def length_penalty(average: float) -> float:
    """The parameter b for a namespace whose memories have that many terms on average.

    Length says little about a chat turn and much about an article; one constant is wrong for one of
    them (docs/decisions/0002-bm25-length.md).

    >>> length_penalty(10), length_penalty(90)
    (0.25, 0.75)
    """
    return average / (average + LENGTH_PIVOT)


@dataclass(frozen=True, slots=True)
class TermWeight:
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
        first, last: least and greatest ordinal that can have a score.
    """

    terms: Sequence[TermWeight]
    average: float
    timely: NDArray[np.int32]
    timeliness: float
    first: int
    last: int


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
        TermWeight(postings, _idf(found, postings.docs.size))
        for term, postings in found.terms.items()
        if term not in periods
    ]
    dated = [found.terms[term].docs for term in periods if term in found.terms] if period_weight else []
    timely = np.unique(np.concatenate(dated)) if dated else np.empty(0, np.int32)
    bounds = [docs for docs in (timely, *(term.postings.docs for term in terms)) if docs.size]
    if not bounds:
        return None
    return Query(
        terms=terms,
        average=max(found.length / found.memories, 1.0),  # there may be memories without any term
        timely=timely,
        timeliness=period_weight * _idf(found, timely.size),
        first=min(int(docs.min()) for docs in bounds),
        last=max(int(docs.max()) for docs in bounds),
    )


def _idf(found: Postings, df: int) -> float:
    return float(np.log1p((found.memories - df + 0.5) / (df + 0.5)))


def attainable(found: Postings, terms: Collection[int]) -> float:
    """The BM25 of a memory that had all these terms without end, those that no memory has included."""
    known = [found.terms[term].docs.size if term in found.terms else 0 for term in terms]
    return (K1 + 1) * sum(_idf(found, df) for df in known)


def coverage(sought: Sought | None, docs: Sequence[int]) -> Coverage:
    """How much of a query stands in memories, each on its own; nothing of one that looked for no terms."""
    if sought is None or sought.query is None or not sought.query.terms:
        nothing = np.zeros(len(docs), np.float32)
        return Coverage(nothing, nothing, nothing)
    there = _frequencies(sought.query, np.asarray(docs, np.int64)) > 0
    idf = np.array([term.idf for term in sought.query.terms])
    return Coverage(
        covered=(idf @ there * (K1 + 1) / sought.attainable).astype(np.float32),
        shared=(there.sum(axis=0) / sought.terms).astype(np.float32),
        rarest=((idf[:, np.newaxis] * there).max(axis=0) / idf.max()).astype(np.float32),
    )


def score(query: Query) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """BM25 of every memory that contains at least one of the terms (OR semantics) or is of the period.

    score(d) = sum over terms t of idf(t) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * |d| / avg|d|)),
    b of `length_penalty`; and the query's `timeliness` where the memory is of its period.

    Returns:
        Ordinals, ascending, and their scores; shape (n,) each.
    """
    scores = np.zeros(query.last - query.first + 1)
    for term in query.terms:
        postings = term.postings
        saturation = _saturation(postings.lengths, query.average)
        scores[postings.docs - query.first] += term.idf * (K1 + 1) * postings.tfs / (postings.tfs + saturation)
    scores[query.timely - query.first] += query.timeliness
    matched = np.flatnonzero(scores)
    return (matched + query.first).astype(np.int32), scores[matched]


def score_in_context(
    query: Query,
    turns: NDArray[np.int64],
    lengths: NDArray[np.int64],
    around: NDArray[np.int64],
    *,
    share: float,
) -> NDArray[np.float64]:
    """BM25 of turns whose neighbours are a field of small weight.

    As `score`, with tf(t, d) + share * sum over neighbours n of share(n) * tf(t, n) for tf: fields are
    added before saturation, so that a term in the turn and beside it does not count twice (BM25F:
    Robertson, Zaragoza and Taylor, CIKM 2004, doi:10.1145/1031171.1031181).

    Args:
        query: the query's terms.
        turns: ordinals of the turns to be scored, shape (n,).
        lengths: their numbers of terms, shape (n,).
        around: ordinals of the turns around each, in the order of `SHARES`, -1 for none; shape (n, 7).
        share: scales the shares of all neighbours; 0 scores every turn alone.

    Returns:
        Scores, shape (n,).
    """
    docs = np.unique(np.concatenate([turns, around.ravel()]))
    frequencies = _frequencies(query, docs)
    in_context = frequencies[:, np.searchsorted(docs, turns)]
    for column, one_share in enumerate(SHARES):
        in_context = in_context + share * one_share * frequencies[:, np.searchsorted(docs, around[:, column])]
    saturation = _saturation(lengths, query.average)
    idf = np.array([term.idf for term in query.terms])
    # A sum in the order of the terms, unlike a matrix product's, gives equal turns equal scores.
    scores = (idf[:, np.newaxis] * (in_context * (K1 + 1) / (in_context + saturation))).sum(axis=0)
    scores[np.isin(turns, query.timely)] += query.timeliness
    return np.asarray(scores)


def _saturation(lengths: NDArray[np.integer], average: float) -> NDArray[np.float64]:
    b = length_penalty(average)
    return np.asarray(K1 * (1 - b + (b / average) * lengths))


def _frequencies(query: Query, docs: NDArray[np.int64]) -> NDArray[np.float64]:
    """How often each term stands in each of some memories, ascending; shape (terms, memories)."""
    frequencies = np.zeros((len(query.terms), docs.size))
    place = np.full(query.last - query.first + 1, -1, np.int32)
    known = (docs >= query.first) & (docs <= query.last)
    place[docs[known] - query.first] = np.flatnonzero(known)
    for row, term in enumerate(query.terms):
        at = place[term.postings.docs - query.first]
        hits = at >= 0
        frequencies[row, at[hits]] = term.postings.tfs[hits]
    return frequencies
