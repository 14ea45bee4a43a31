"""The keyword leg: exact BM25 over all memories that contain any of the query's terms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import AsyncConnection

from graph.arrays import array_text
from retrieval.legs.base import Hit, LegQuery, LegRanking
from retrieval.store import postings
from retrieval.store.pool import Pool
from retrieval.store.postings import Postings
from retrieval.store.visibility import ELIGIBLE, eligibility
from retrieval.text.analysis import analyze, term_id
from retrieval.types import Leg

K1 = 1.2
"""How soon repetitions of a term stop to count."""

LENGTH_PIVOT = 30.0
"""Average length, in terms, at which a memory's length counts half against it."""

_ATTEMPTS = 3

_WHICH = (
    """
    select m.doc, m.id, """
    + ELIGIBLE
    + """ as eligible
    from memory m where m.ns = %(ns)s and m.doc = any(%(docs)s::integer[])
"""
)


def length_penalty(average: float) -> float:
    """The parameter b for a namespace whose memories have that many terms on average.

    Length says little about a chat turn and much about an article; one constant is wrong for one of
    them (docs/decisions/0002-bm25-length.md).

    >>> length_penalty(10), length_penalty(90)
    (0.25, 0.75)
    """
    return average / (average + LENGTH_PIVOT)


def score(found: Postings) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """BM25 of every memory that contains at least one of the terms (OR semantics).

    score(d) = sum over terms t of idf(t) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * |d| / avg|d|)),
    idf(t) = ln(1 + (N - df + 0.5) / (df + 0.5)), b of `length_penalty`. Robertson and Zaragoza, "The
    Probabilistic Relevance Framework: BM25 and Beyond", 2009, with the idf that cannot be negative.

    Returns:
        Ordinals, ascending, and their scores; shape (n,) each.
    """
    if not found.terms:
        return np.empty(0, np.int32), np.empty(0)
    first = min(int(term.docs.min()) for term in found.terms.values())
    last = max(int(term.docs.max()) for term in found.terms.values())
    scores = np.zeros(last - first + 1)
    average = found.length / found.memories
    b = length_penalty(average)
    for term in found.terms.values():
        idf = np.log1p((found.memories - term.docs.size + 0.5) / (term.docs.size + 0.5))
        saturation = K1 * (1 - b + (b / average) * term.lengths)
        scores[term.docs - first] += idf * (K1 + 1) * term.tfs / (term.tfs + saturation)
    matched = np.flatnonzero(scores)
    return (matched + first).astype(np.int32), scores[matched]


class Bm25Retriever:
    """BM25 with statistics of the namespace and filters applied before the cut."""

    leg = Leg.BM25

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def search(self, query: LegQuery) -> LegRanking:
        """The best eligible memories by BM25; nothing where no term occurs."""
        terms = {term_id(term): term for term in analyze(query.text, query.language)}
        if not terms:
            return LegRanking(hits=(), details={"terms": {}})
        async with self._pool.connection() as conn:
            for _ in range(_ATTEMPTS):
                found = await postings.read(conn, query.ns, list(terms))
                hits = await self._best(conn, query, found)
                if hits is not None:
                    break
            else:
                hits = await self._best(conn, query, found, moved_is_gone=True) or ()
        frequencies = {text: int(found.terms[term].docs.size) for term, text in terms.items() if term in found.terms}
        return LegRanking(hits=hits, details={"terms": frequencies, "memories": found.memories})

    async def _best(
        self, conn: AsyncConnection[Any], query: LegQuery, found: Postings, *, moved_is_gone: bool = False
    ) -> tuple[Hit, ...] | None:
        """The best eligible hits; None when a memory was replaced since the postings were read."""
        docs, scores = score(found)
        order = np.lexsort((docs, -scores))
        docs, scores = docs[order], scores[order]
        hits: list[Hit] = []
        at, step = 0, query.fan_out
        parameters = eligibility(query.filters, as_of=query.as_of, include_superseded=query.include_superseded)
        while at < docs.size and len(hits) < query.fan_out:
            # Up to the last of equal scores, so that ties are broken by id and not by ordinal.
            end = int(np.searchsorted(-scores, -scores[min(at + step, docs.size) - 1], side="right"))
            chunk = {int(doc): float(value) for doc, value in zip(docs[at:end], scores[at:end], strict=True)}
            cursor = await conn.execute(_WHICH, {**parameters, "ns": query.ns, "docs": array_text(chunk)}, binary=True)
            rows = await cursor.fetchall()
            if len(rows) < len(chunk) and not moved_is_gone:
                return None
            hits += [Hit(id=memory_id, score=chunk[doc]) for doc, memory_id, eligible in rows if eligible]
            at, step = end, step * 8
        hits.sort(key=lambda hit: (-hit.score, hit.id))
        return tuple(hits[: query.fan_out])
