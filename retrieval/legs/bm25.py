"""The keyword leg: BM25 over all memories that contain any of the query's terms, turns in their context."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import repeat
from operator import attrgetter
from typing import Any

from retrieval.legs import okapi
from retrieval.legs.base import Hit, LegQuery, LegRanking
from retrieval.mirror.columns import Columns
from retrieval.types import Leg

BESIDE = 2
"""Turns this near to a good one are scored too, even if they share no term with the query."""

_hit: Callable[[tuple[object, ...]], Hit] = partial(tuple.__new__, Hit)  # in a third of the time of `Hit(...)`
_ID, _SCORE = attrgetter("id"), attrgetter("score")


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
    """The best memories, turns scored with what was said around them.

    A turn that only asks is seldom what is looked for; what it asks about counts in the answer after it.
    """
    profile = query.profile
    docs, scores = okapi.ranked(
        weighed,
        memories,
        *query.masks(),
        count=query.fan_out,
        near=BESIDE,
        share=profile.neighbour_share,
        asking=profile.asking_share,
        speakers=memories.speakers_named(query.text),
        boost=1 + profile.speaker_boost,
    )
    found = zip(memories.ids.get(docs), docs.tolist(), scores.tolist(), repeat(()), repeat(None), strict=False)
    hits = [*map(_hit, found)]
    hits.sort(key=_ID)  # equals are in the order of their ids; all those of the last one are there
    hits.sort(key=_SCORE, reverse=True)
    return tuple(hits[: query.fan_out])
