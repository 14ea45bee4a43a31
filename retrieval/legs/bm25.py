"""The keyword leg: BM25 over all memories that contain any of the query's terms, turns in their context."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
from psycopg import AsyncConnection

from graph.arrays import array_text
from graph.names import normalize
from retrieval.legs import okapi
from retrieval.legs.base import Hit, LegQuery, LegRanking
from retrieval.legs.okapi import AFTER_SHARES, BEFORE_SHARES
from retrieval.profiles import Profile
from retrieval.store import postings, windows
from retrieval.store.pool import Pool
from retrieval.store.visibility import ELIGIBLE, eligibility
from retrieval.text.analysis import analyze, term_id
from retrieval.text.calendar_terms import Period, period_terms
from retrieval.text.periods import find_periods
from retrieval.types import Leg

BESIDE = 2
"""Turns this near to a good one are scored too, even if they share no term with the query."""

GRACE = timedelta(days=1)
"""How much later than the period that a query speaks of a memory of it may have been written."""

SHORT_CHARS = 160
"""A turn up to this long that ends with a question mark only asks."""

_REACH = BESIDE + max(len(BEFORE_SHARES), len(AFTER_SHARES))
_ATTEMPTS = 3

_WHICH = (
    """
    select m.doc, m.id, m.speaker, m.session_id is not null as is_turn, m.length,
        length(m.text) <= %(short)s and right(rtrim(m.text), 1) = '?' as asks, """
    + ELIGIBLE
    + """ as eligible
    from memory m where m.ns = %(ns)s and m.doc = any(%(docs)s::integer[])
"""
)


class _Row(NamedTuple):
    doc: int
    id: str
    speaker: str | None
    is_turn: bool
    length: int
    asks: bool
    eligible: bool


class Bm25Retriever:
    """BM25 with statistics of the namespace and filters applied before the cut."""

    leg = Leg.BM25

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def search(self, query: LegQuery) -> LegRanking:
        """The best eligible memories by BM25; nothing where no term occurs."""
        terms = {term_id(term): term for term in analyze(query.text, query.language)}
        periods = find_periods(query.text, asked_at=query.asked_at or query.as_of or datetime.now(UTC))
        dates = {term_id(term): term for period in periods for term in period_terms(_told(period))}
        async with self._pool.connection() as conn:
            for _ in range(_ATTEMPTS):
                found = await postings.read(conn, query.ns, [*terms, *dates])
                weighed = okapi.weigh(found, periods=dates, period_weight=query.profile.period_weight)
                best = await self._best(conn, query, weighed)
                if best is not None:
                    break
            else:
                best = await self._best(conn, query, weighed, moved_is_gone=True) or {}
            hits = await self._in_context(conn, query, weighed, best)
        details: dict[str, Any] = {
            "terms": {text: int(found.terms[term].docs.size) for term, text in terms.items() if term in found.terms},
            "memories": found.memories,
        }
        if periods:
            details["periods"] = [str(period) for period in periods]
        return LegRanking(hits=hits, details=details, attainable=okapi.attainable(found, terms))

    async def _best(
        self,
        conn: AsyncConnection[Any],
        query: LegQuery,
        weighed: okapi.Query | None,
        *,
        moved_is_gone: bool = False,
    ) -> dict[_Row, float] | None:
        """The best eligible memories, each on its own; None when one was replaced since the postings were read."""
        best: dict[_Row, float] = {}
        if weighed is None:
            return best
        docs, scores = okapi.score(weighed)
        order = np.lexsort((docs, -scores))
        docs, scores = docs[order], scores[order]
        at, step = 0, query.fan_out
        while at < docs.size and len(best) < query.fan_out:
            # Up to the last of equal scores, so that ties are broken by id and not by ordinal.
            end = int(np.searchsorted(-scores, -scores[min(at + step, docs.size) - 1], side="right"))
            chunk = {int(doc): float(value) for doc, value in zip(docs[at:end], scores[at:end], strict=True)}
            rows = await _which(conn, query, chunk)
            if len(rows) < len(chunk) and not moved_is_gone:
                return None
            best |= {row: chunk[row.doc] for row in rows if row.eligible}
            at, step = end, step * 8
        return best

    async def _in_context(
        self, conn: AsyncConnection[Any], query: LegQuery, weighed: okapi.Query | None, best: Mapping[_Row, float]
    ) -> tuple[Hit, ...]:
        """The hits, best first, turns scored anew with what was said around them."""
        scores = dict(best)
        share = query.profile.neighbour_share
        turns = [row.doc for row in best if row.is_turn] if share else []
        if weighed is not None and turns:
            around = await _windows(conn, query, turns)
            rows = {row.doc: row for row in best}
            beside = {doc for doc, window in around.items() if doc not in rows}
            rows |= {row.doc: row for row in await _which(conn, query, beside) if row.eligible}
            lengths = {doc: rows[doc].length for doc in around if doc in rows}
            before = {doc: window.before for doc, window in around.items()}
            after = {doc: window.after for doc, window in around.items()}
            in_context = okapi.score_in_context(weighed, lengths, before, after, share=share)
            scores |= {rows[doc]: value for doc, value in in_context.items() if value > 0}
        named = _named(query.text, (row.speaker for row in scores))
        hits = [
            Hit(id=row.id, doc=row.doc, score=value * _prior(row, named, query.profile))
            for row, value in scores.items()
        ]
        hits.sort(key=lambda hit: (-hit.score, hit.id))
        return tuple(hits[: query.fan_out])


async def _which(conn: AsyncConnection[Any], query: LegQuery, docs: Iterable[int]) -> list[_Row]:
    parameters = eligibility(query.filters, as_of=query.as_of, include_superseded=query.include_superseded)
    parameters |= {"ns": query.ns, "docs": array_text(docs), "short": SHORT_CHARS}
    return [_Row(*row) for row in await (await conn.execute(_WHICH, parameters, binary=True)).fetchall()]


async def _windows(conn: AsyncConnection[Any], query: LegQuery, turns: Sequence[int]) -> dict[int, windows.Window]:
    """What is around each of these turns and around those beside them, as far as it counts."""
    wide = await windows.around(conn, query.ns, turns, reach=_REACH, as_of=query.as_of)
    around: dict[int, windows.Window] = {}
    for window in wide:
        session = [*reversed(window.before), window.doc, *window.after]
        centre = len(window.before)
        for at in range(max(0, centre - BESIDE), min(len(session), centre + BESIDE + 1)):
            before = session[max(0, at - len(BEFORE_SHARES)) : at][::-1]
            around[session[at]] = windows.Window(session[at], before, session[at + 1 : at + 1 + len(AFTER_SHARES)])
    return around


def _told(period: Period) -> Period:
    """The period and a day more: what happened is often told the day after."""
    if period.end is None or period.end > datetime.max.replace(tzinfo=period.end.tzinfo) - GRACE:
        return period
    return replace(period, end=period.end + GRACE)


def _prior(row: _Row, named: Collection[str], profile: Profile) -> float:
    """What a memory's score counts for who said it, and how.

    A turn that only asks is seldom what is looked for; what it asks about counts in the answer after it.
    """
    said_by = 1 + profile.speaker_boost if row.speaker in named else 1.0
    return said_by * (profile.asking_share if row.is_turn and row.asks else 1.0)


def _named(text: str, speakers: Iterable[str | None]) -> set[str]:
    """The speakers whom a text names, in full."""
    words = f" {normalize(text)} "
    return {speaker for speaker in set(speakers) if speaker and f" {normalize(speaker)} " in words}
