"""BM25 arithmetic: memories alone, and turns in the context of those around them. No I/O."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

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

_ROUNDING = 1 + 1e-9
"""Sums of the same numbers in another order differ by less."""

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


class _Scratch(threading.local):
    """An array of zeros that is used again and again: to make one takes longer than to score by it."""

    _zeros: NDArray[np.float64] = np.zeros(0)

    def zeros(self, length: int) -> NDArray[np.float64]:
        """At least so many; whoever changes some sets them back."""
        if length > self._zeros.size:
            self._zeros = np.zeros(length + length // 4)
        return self._zeros


_scratch = _Scratch()


@dataclass(frozen=True, slots=True)
class Part:
    """What a term or a period adds to the scores of the memories that it has.

    Attributes:
        docs: ordinals, ascending.
        factor: what it would add to a memory that had it without end; what it adds, if there is no `term`.
        term: its frequencies, from which follows which share of the factor counts.
        average: terms per memory.
    """

    docs: NDArray[np.int32]
    factor: float
    term: TermPostings | None = None
    average: float = 1.0

    @classmethod
    def of(cls, weight: TermWeight, average: float) -> Part:
        """What a term adds."""
        return cls(weight.postings.docs, weight.idf * (K1 + 1), weight.postings, average)

    @property
    def bound(self) -> float:
        """No memory gets more of it."""
        if self.term is None:
            return self.factor
        most, shortest = self.term.extremes
        b = length_penalty(self.average)
        return self.factor * most / (most + K1 * (1 - b + b / self.average * shortest))

    def scored(self, allowed: NDArray[np.bool_]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The allowed memories that have it and what it adds to each, above 0."""
        there = np.flatnonzero(allowed[self.docs])
        return self.docs[there], self._of(there)

    def added_to(self, docs: NDArray[np.int32], scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """The scores of memories with what it adds to them."""
        at, there = _places(self.docs, docs)
        sums = scores.copy()
        sums[there] += self._of(at[there])
        return sums

    def _of(self, places: NDArray[np.intp]) -> NDArray[np.float64]:
        if self.term is None:
            return np.full(places.size, self.factor)
        tfs = self.term.tfs[places]
        return np.asarray(self.factor * tfs / (tfs + _saturation(self.term.lengths[places], self.average)))


@dataclass(frozen=True, slots=True)
class Query:
    """A query against one snapshot of a namespace.

    Attributes:
        terms: those of its terms that occur.
        average: terms per memory.
        timely: ordinals of the memories of the period that the query speaks of, ascending.
        timeliness: what being of that period adds to a score.
    """

    terms: Sequence[TermWeight]
    average: float
    timely: NDArray[np.int32]
    timeliness: float

    @property
    def parts(self) -> Sequence[Part]:
        """What a score is the sum of, in the order of the sum."""
        timely = [Part(self.timely, self.timeliness)] if self.timely.size else []
        return [*(Part.of(term, self.average) for term in self.terms), *timely]


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
    if not terms and not timely.size:
        return None
    return Query(
        terms=terms,
        average=max(found.length / found.memories, 1.0),  # there may be memories without any term
        timely=timely,
        timeliness=period_weight * _idf(found, timely.size),
    )


def _idf(found: Postings, df: int) -> float:
    return float(np.log1p((found.memories - df + 0.5) / (df + 0.5)))


def attainable(found: Postings, terms: Collection[int]) -> float:
    """The BM25 of a memory that had all these terms without end, those that no memory has included."""
    known = [found.terms[term].docs.size if term in found.terms else 0 for term in terms]
    return (K1 + 1) * sum(_idf(found, df) for df in known)


def coverage(sought: Sought | None, docs: ArrayLike) -> Coverage:
    """How much of a query stands in memories, each on its own; nothing of one that looked for no terms."""
    docs = np.asarray(docs, np.int64)
    if sought is None or sought.query is None or not sought.query.terms:
        nothing = np.zeros(len(docs), np.float32)
        return Coverage(nothing, nothing, nothing)
    there = _frequencies(sought.query, docs) > 0
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
    docs = np.unique(np.concatenate([part.docs for part in query.parts]))
    return docs, _scores(query.parts, docs)


def best(query: Query, allowed: NDArray[np.bool_], count: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The allowed memories with the best scores, as `score` would give them, without scoring all.

    MaxScore (Turtle and Flood, "Query evaluation: strategies and optimizations", IPM 1995,
    doi:10.1016/0306-4573(95)00020-H), a term at a time: once the memories that only the commonest terms are in
    cannot be among the best any more, these terms are looked up for the others alone.

    Args:
        query: any.
        allowed: by ordinal, for every ordinal of the postings.
        count: of memories; more come where the last ones are equals.

    Returns:
        Ordinals and scores, best first, equals by ordinal; shape (n,) each.
    """
    in_order = query.parts
    bounded = sorted(((part.bound, part) for part in in_order), key=lambda each: -each[0])
    ahead = [*accumulate((bound for bound, _ in reversed(bounded)), initial=0.0)][
        ::-1
    ]  # it and those after it add less
    parts = [part for _, part in bounded]
    partial = _scratch.zeros(len(allowed))
    met: list[NDArray[np.int32]] = []
    least, place = 0.0, 0
    try:
        while place < len(parts) and least <= ahead[place] * _ROUNDING:
            docs, added = parts[place].scored(allowed)
            before = partial[docs]
            met.append(docs[before == 0])
            partial[docs] = before + added
            least = _least(partial[np.concatenate(met)], count)
            place += 1
        docs = np.sort(np.concatenate(met))
        scores = partial[docs]
    finally:
        for docs_met in met:
            partial[docs_met] = 0
    for rest in range(place, len(parts)):
        docs, scores = _hopeful(docs, scores, least - ahead[rest])
        scores = parts[rest].added_to(docs, scores)
        least = max(least, _least(scores, count))
    docs, _ = _hopeful(docs, scores, least)
    exact = _scores(in_order, docs)
    order = np.lexsort((docs, -exact))
    kept = order[: int(np.searchsorted(-exact[order], -_least(exact, count), side="right"))]
    return docs[kept], exact[kept]


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


def _scores(parts: Sequence[Part], docs: NDArray[np.int32]) -> NDArray[np.float64]:
    """The scores of some memories; sums in the order of the terms, so that equals are equal."""
    scores = np.zeros(docs.size)
    for part in parts:
        scores = part.added_to(docs, scores)
    return scores


def _least(scores: NDArray[np.float64], count: int) -> float:
    """The score of the last of the best `count`; 0 where there are fewer."""
    return float(np.partition(scores, -count)[-count]) if scores.size >= count else 0.0


def _hopeful(
    docs: NDArray[np.int32], scores: NDArray[np.float64], least: float
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Those that have at least that much, but for rounding."""
    kept = scores * _ROUNDING >= least
    return docs[kept], scores[kept]


def _places(among: NDArray[np.int32], docs: NDArray[np.integer]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Where memories stand among others, ascending, and whether they do."""
    if not among.size:
        return np.zeros(docs.size, np.intp), np.zeros(docs.size, np.bool_)
    at = np.minimum(np.searchsorted(among, docs), among.size - 1)
    return at, among[at] == docs


def _frequencies(query: Query, docs: NDArray[np.int64]) -> NDArray[np.float64]:
    """How often each term stands in each of some memories; shape (terms, memories)."""
    frequencies = np.zeros((len(query.terms), docs.size))
    for row, term in enumerate(query.terms):
        at, there = _places(term.postings.docs, docs)
        frequencies[row, there] = term.postings.tfs[at[there]]
    return frequencies
