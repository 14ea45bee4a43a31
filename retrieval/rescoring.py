"""Collecting what is known of the fused candidates of a query, for the rescorer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from classifier.candidates import Particulars
from classifier.rescorer import Rescored
from classifier.traits import query_traits
from retrieval.candidates import Candidates
from retrieval.legs.base import LegRanking
from retrieval.legs.okapi import coverage
from retrieval.mirror.columns import Columns
from retrieval.mirror.strings import NONE
from retrieval.mirror.vectors import Vectors, cosines
from retrieval.mirror.worded import WordsOf
from retrieval.speakers import is_assistant
from retrieval.types import Leg

PERIOD_BONUS = 2.0
"""What a memory's score gains for being of the query's time, in standard deviations of the query's scores."""

_WORD = re.compile(r"\w+")
_ASSISTANT = "assistant"


def particulars_of(
    memories: Columns,
    vectors: Vectors,
    query: str,
    embedding: NDArray[np.float32] | None,
    candidates: Candidates,
) -> Particulars | None:
    """What is known of the memories that the legs ranked; None if all of them are gone by now.

    Args:
        memories: of the namespace.
        vectors: of the memories ranked, where there is an embedding.
        query: its text.
        embedding: of the query; None where it has none.
        candidates: what the legs found.
    """
    ids, docs, rankings = candidates.ids, np.array(candidates.docs, np.int64), candidates.rankings
    there = memories.alive.values[docs]
    places = np.zeros(docs.size, np.int64)
    if embedding is not None:
        places = vectors.places(candidates.docs)
        there &= places >= 0
    if not there.all():
        docs, places = docs[there], places[there]
        ids = [ids[number] for number in np.flatnonzero(there).tolist()]
    if not ids:
        return None
    speakers = memories.speakers.codes.values[docs]
    titles = memories.titles.codes.values[docs]
    matched = coverage(rankings[Leg.BM25].terms if Leg.BM25 in rankings else None, docs)
    own = stored = np.zeros(docs.size, np.float32)
    if embedding is not None:
        own, stored = (cosines(kept, embedding, places) for kept in (vectors.own, vectors.stored))
    return Particulars(
        ids=ids,
        own=own,
        mixed=stored,
        vectors=None if embedding is None else vectors.own.take(places, axis=0),
        covered=matched.covered,
        shared=matched.shared,
        rarest=matched.rarest,
        traits=memories.traits.values[docs],
        assistant=_roles(memories.speakers).shares(speakers, [_ASSISTANT]) == 1,
        named=_among(speakers, memories.speakers_named(query)),
        speakers=speakers,
        sessions=memories.sessions.codes.values[docs],
        titled=_titled(memories.titles).shares(titles, _words(query)),
        has_title=titles != NONE,
        query=query_traits(query),
    )


def _among(codes: NDArray[np.int32], some: Sequence[int]) -> NDArray[np.bool_]:
    """Which codes are among a few."""
    found = np.zeros(codes.size, np.bool_)
    for code in some:
        found |= codes == code
    return found


def favouring_period(rescored: Rescored, rankings: Mapping[Leg, LegRanking], weight: float) -> Rescored:
    """The scores with a bonus for memories of the time that the query speaks of, which the model does not see.

    Args:
        rescored: what the model makes of the candidates.
        rankings: those of the legs; BM25's knows the time.
        weight: of the period, as the profile has it.
    """
    sought = rankings[Leg.BM25].terms if Leg.BM25 in rankings else None
    if not weight or sought is None or sought.query is None or not sought.query.timely.size:
        return rescored
    timely = set(sought.query.timely.tolist())
    ids = {hit.id for ranking in rankings.values() for hit in ranking.hits if hit.doc in timely}
    bonus = weight * PERIOD_BONUS * float(np.std(list(rescored.scores.values())))
    scores = {memory_id: score + bonus * (memory_id in ids) for memory_id, score in rescored.scores.items()}
    return replace(rescored, scores=scores)


def in_words(rescored: Rescored) -> str:
    """How far the rescorer moved the order, as `explain` says it."""
    return (
        f"the order is {rescored.confidence:.0%} that of the rescorer: the candidates are "
        f"{rescored.familiarity:.0%} like the memories it was trained on"
    )


def _words(text: str) -> frozenset[str]:
    """The words of a title or a query."""
    return frozenset(_WORD.findall(text.casefold()))


_roles = WordsOf(lambda name: [_ASSISTANT] if is_assistant(name) else [])
_titled = WordsOf(_words)
