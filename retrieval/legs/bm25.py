"""The keyword leg: BM25 over all memories that contain any of the query's terms, turns in their context."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import AsyncConnection

from graph.names import normalize
from graph.stopwords import words
from retrieval.legs import okapi
from retrieval.legs.base import Hit, LegQuery, LegRanking
from retrieval.legs.okapi import AFTER_SHARES, BEFORE_SHARES
from retrieval.profiles import Profile
from retrieval.speakers import named_speakers
from retrieval.store import candidates, postings
from retrieval.store.candidates import Candidate, Window
from retrieval.store.pool import Pool
from retrieval.text.analysis import analyze, term_id
from retrieval.text.calendar_terms import Period, period_terms
from retrieval.text.periods import find_periods
from retrieval.types import Leg

BESIDE = 2
"""Turns this near to a good one are scored too, even if they share no term with the query."""

GRACE = timedelta(days=1)
"""How much later than the period that a query speaks of a memory of it may have been written."""

_DEICTIC = frozenset(
    words(
        "a ago an before couple day days few fortnight in last lately month months morning night nights of past "
        "previous recently several the this today tonight two week weeks weekend weekends year years yesterday"
    )
)
"""Words of which an expression is told from the moment of asking alone; "last summer" says more."""

_REACH = BESIDE + max(len(BEFORE_SHARES), len(AFTER_SHARES))
_ATTEMPTS = 3


class Bm25Retriever:
    """BM25 with statistics of the namespace and filters applied before the cut."""

    leg = Leg.BM25

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def search(self, query: LegQuery) -> LegRanking:
        """The best eligible memories by BM25; nothing where no term occurs."""
        periods = find_periods(query.text, asked_at=query.asked_at or query.as_of or datetime.now(UTC))
        terms = {term_id(term): term for term in analyze(_without_deixis(query.text, periods), query.language)}
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
            hits = await self._in_context(conn, query, weighed, best) if weighed else ()
        details: dict[str, Any] = {
            "terms": {text: int(found.terms[term].docs.size) for term, text in terms.items() if term in found.terms},
            "memories": found.memories,
        }
        if periods:
            details["periods"] = [str(period) for period in periods]
        sought = okapi.Sought(weighed, okapi.attainable(found, terms), len(terms))
        return LegRanking(hits=hits, details=details, attainable=sought.attainable, terms=sought)

    async def _best(
        self,
        conn: AsyncConnection[Any],
        query: LegQuery,
        weighed: okapi.Query | None,
        *,
        moved_is_gone: bool = False,
    ) -> dict[Candidate, float] | None:
        """The best memories, each on its own, as far as it takes to have enough eligible ones.

        Those that only fail the filters are among them: what was said beside them may be eligible. None when
        a memory was replaced since the postings were read.
        """
        best: dict[Candidate, float] = {}
        if weighed is None:
            return best
        docs, scores = okapi.score(weighed)
        order = np.lexsort((docs, -scores))
        docs, scores = docs[order], scores[order]
        at, step = 0, query.fan_out
        while at < docs.size and sum(row.eligible for row in best) < query.fan_out:
            # Up to the last of equal scores, so that ties are broken by id and not by ordinal.
            end = int(np.searchsorted(-scores, -scores[min(at + step, docs.size) - 1], side="right"))
            chunk = {int(doc): float(value) for doc, value in zip(docs[at:end], scores[at:end], strict=True)}
            rows = await candidates.read(conn, query.ns, chunk, query.eligibility)
            if len(rows) < len(chunk) and not moved_is_gone:
                return None
            best |= {row: chunk[row.doc] for row in rows if row.eligible or (row.visible and at == 0)}
            at, step = end, step * 8
        return best

    async def _in_context(
        self, conn: AsyncConnection[Any], query: LegQuery, weighed: okapi.Query, best: Mapping[Candidate, float]
    ) -> tuple[Hit, ...]:
        """The hits, best first, turns scored anew with what was said around them."""
        scores = {row: value for row, value in best.items() if row.eligible}
        share = query.profile.neighbour_share
        # Many may score alike, such as all memories of a month.
        first = sorted(best, key=lambda row: (-best[row], row.id))[: 2 * query.fan_out]
        turns = [row.doc for row in first if row.is_turn] if share else []
        if turns:
            wide, beside = await candidates.around(
                conn, query.ns, turns, query.eligibility, reach=_REACH, beside=BESIDE
            )
            rows = {row.doc: row for row in (*best, *beside) if row.eligible}
            found, around = _in_their_context(wide)
            known = [at for at, doc in enumerate(found.tolist()) if doc in rows]
            chosen = [rows[doc] for doc in found[known].tolist()]
            lengths = np.array([row.length for row in chosen], np.int64)
            in_context = okapi.score_in_context(weighed, found[known], lengths, around[known], share=share)
            scores |= {row: value for row, value in zip(chosen, in_context.tolist(), strict=True) if value > 0}
        named = named_speakers(query.text, (row.speaker for row in scores))
        hits = [
            Hit(id=row.id, doc=row.doc, score=value * _prior(row, named, query.profile))
            for row, value in scores.items()
        ]
        hits.sort(key=lambda hit: (-hit.score, hit.id))
        return tuple(hits[: query.fan_out])


def _in_their_context(wide: Sequence[Window]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The turns of the windows and those beside them, each once, and what counts around each.

    Shapes (n,) and (n, 7), the second in the order of `SHARES`; -1 where a session begins or ends.
    """
    sessions = np.full((len(wide), 2 * _REACH + 1), -1, np.int64)
    for row, window in zip(sessions, wide, strict=True):
        row[_REACH - len(window.before) : _REACH] = window.before[::-1]
        row[_REACH] = window.doc
        row[_REACH + 1 : _REACH + 1 + len(window.after)] = window.after
    offsets = [*range(-1, -len(BEFORE_SHARES) - 1, -1), *range(1, len(AFTER_SHARES) + 1)]
    places = range(_REACH - BESIDE, _REACH + BESIDE + 1)
    turns = np.concatenate([sessions[:, place] for place in places])
    around = np.concatenate([sessions[:, [place + offset for offset in offsets]] for place in places])
    each, first = np.unique(turns, return_index=True)
    first = first[each >= 0]
    return turns[first], around[first]


def _without_deixis(text: str, periods: Sequence[Period]) -> str:
    """The query without "last week" and the like: such words stand for a time and occur at any."""
    for period in reversed(periods):
        start, end = period.span
        if _DEICTIC.issuperset(normalize(text[start:end]).split()):
            text = f"{text[:start]} {text[end:]}"
    return text


def _told(period: Period) -> Period:
    """The period and a day more: what happened is often told the day after."""
    if period.end is None or period.end > datetime.max.replace(tzinfo=period.end.tzinfo) - GRACE:
        return period
    return replace(period, end=period.end + GRACE)


def _prior(row: Candidate, named: Collection[str], profile: Profile) -> float:
    """What a memory's score counts for who said it, and how.

    A turn that only asks is seldom what is looked for; what it asks about counts in the answer after it.
    """
    said_by = 1 + profile.speaker_boost if row.speaker in named else 1.0
    return said_by * (profile.asking_share if row.is_turn and row.asks else 1.0)
