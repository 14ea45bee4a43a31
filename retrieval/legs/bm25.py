"""The keyword leg: BM25 over all memories that contain any of the query's terms, turns in their context."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval.legs import okapi
from retrieval.legs.base import Hit, LegQuery, LegRanking
from retrieval.legs.okapi import AFTER_SHARES, BEFORE_SHARES
from retrieval.mirror.columns import Columns
from retrieval.mirror.strings import NONE
from retrieval.speakers import named_speakers
from retrieval.types import Leg

BESIDE = 2
"""Turns this near to a good one are scored too, even if they share no term with the query."""

_REACH = BESIDE + max(len(BEFORE_SHARES), len(AFTER_SHARES))


class Bm25Retriever:
    """BM25 with statistics of the namespace and filters applied before the cut."""

    leg = Leg.BM25

    async def search(self, query: LegQuery) -> LegRanking:
        """The best eligible memories by BM25; nothing where no term occurs."""
        looked, found = query.looked, query.standing.postings
        weighed = okapi.weigh(found, periods=looked.dates, period_weight=query.profile.period_weight)
        details: dict[str, Any] = {
            "terms": {
                text: int(found.terms[term].docs.size) for term, text in looked.terms.items() if term in found.terms
            },
            "memories": found.memories,
        }
        if looked.periods:
            details["periods"] = [str(period) for period in looked.periods]
        sought = okapi.Sought(weighed, okapi.attainable(found, looked.terms), len(looked.terms))
        hits = _hits(query, query.standing.mirror.memories, weighed) if weighed else ()
        return LegRanking(hits=hits, details=details, attainable=sought.attainable, terms=sought)


def _hits(query: LegQuery, memories: Columns, weighed: okapi.Query) -> tuple[Hit, ...]:
    """The best memories, turns scored with what was said around them."""
    visible, eligible = query.masks()
    found, scores = okapi.best(weighed, eligible, query.fan_out)
    docs = found.astype(np.int64)
    share = query.profile.neighbour_share
    if share:
        # Those that only fail the filters are looked at too: what was said beside them may be eligible.
        first = found if eligible is visible else okapi.best(weighed, visible, query.fan_out)[0]
        docs, scores = _in_context(
            memories, weighed, docs, scores, first[: 2 * query.fan_out], visible, eligible, share
        )
    scores = scores * _priors(query, memories, docs)
    # Ties are broken by id and not by ordinal, so all equals of the last one are looked at.
    order = np.argsort(-scores, kind="stable")
    if order.size > query.fan_out:
        order = order[: int(np.searchsorted(-scores[order], -scores[order[query.fan_out - 1]], side="right"))]
    docs, scores = docs[order], scores[order]
    found_ids = memories.ids.get(docs)
    hits = [
        Hit(id=memory_id, doc=doc, score=score)
        for memory_id, doc, score in zip(found_ids, docs.tolist(), scores.tolist(), strict=True)
    ]
    hits.sort(key=lambda hit: (-hit.score, hit.id))
    return tuple(hits[: query.fan_out])


def _priors(query: LegQuery, memories: Columns, docs: NDArray[np.int64]) -> NDArray[np.float64]:
    """What a memory's score counts for who said it, and how.

    A turn that only asks is seldom what is looked for; what it asks about counts in the answer after it.
    """
    speakers = memories.speakers.codes.values[docs]
    named = named_speakers(query.text, (memories.speakers.values[code] for code in set(speakers.tolist()) - {NONE}))
    priors = np.ones(docs.size)
    for code in memories.speakers.codes_of(named):
        priors[speakers == code] = 1 + query.profile.speaker_boost
    priors[memories.asks.values[docs] & (memories.sessions.codes.values[docs] >= 0)] *= query.profile.asking_share
    return priors


def _in_context(
    memories: Columns,
    weighed: okapi.Query,
    docs: NDArray[np.int64],
    scores: NDArray[np.float64],
    first: NDArray[np.int32],
    visible: NDArray[np.bool_],
    eligible: NDArray[np.bool_],
    share: float,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The memories found and the turns beside the first ones, turns scored anew with those around them."""
    turns = first[memories.sessions.codes[first] >= 0].astype(np.int64)
    if not turns.size:
        return docs, scores
    near, around = _in_their_context(memories.windows(turns, visible, reach=_REACH))
    there = eligible[near]
    near, around = near[there], around[there]
    in_context = okapi.score_in_context(weighed, near, memories.length[near], around, share=share)
    found = in_context > 0
    others = ~np.isin(docs, near[found])
    return np.concatenate([docs[others], near[found]]), np.concatenate([scores[others], in_context[found]])


def _in_their_context(sessions: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The turns of some windows and those beside them, each once, and what counts around each.

    Shapes (n,) and (n, 7), the second in the order of `SHARES`; -1 where a session begins or ends.
    """
    offsets = [*range(-1, -len(BEFORE_SHARES) - 1, -1), *range(1, len(AFTER_SHARES) + 1)]
    places = range(_REACH - BESIDE, _REACH + BESIDE + 1)
    turns = np.concatenate([sessions[:, place] for place in places])
    around = np.concatenate([sessions[:, [place + offset for offset in offsets]] for place in places])
    each, first = np.unique(turns, return_index=True)
    first = first[each >= 0]
    return turns[first], around[first]
