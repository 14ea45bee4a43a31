"""Collecting what is known of the fused candidates of a query, for the rescorer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from classifier.candidates import Particulars
from classifier.rescorer import Rescored
from classifier.traits import query_traits
from retrieval.legs import okapi
from retrieval.legs.base import LegRanking
from retrieval.mirror.columns import Columns
from retrieval.mirror.strings import NONE
from retrieval.mirror.vectors import Vectors, cosines
from retrieval.speakers import is_assistant, named_speakers
from retrieval.types import Leg

PERIOD_BONUS = 2.0
"""What a memory's score gains for being of the query's time, in standard deviations of the query's scores."""

_WORD = re.compile(r"\w+")


def particulars_of(
    memories: Columns,
    vectors: Vectors,
    query: str,
    embedding: NDArray[np.float32] | None,
    rankings: Mapping[Leg, LegRanking],
) -> Particulars | None:
    """What is known of the memories that the legs ranked; None if all of them are gone by now.

    Args:
        memories: of the namespace.
        vectors: of the memories ranked, where there is an embedding.
        query: its text.
        embedding: of the query; None where it has none.
        rankings: of the legs.
    """
    found = {hit.doc: hit.id for ranking in rankings.values() for hit in ranking.hits}
    docs = np.array(list(found), np.int64)
    there = memories.alive[docs]
    places = np.zeros(docs.size, np.intp)
    if embedding is not None:
        places = vectors.places(list(found))
        there &= places >= 0
    docs, places = docs[there], places[there]
    if not docs.size:
        return None
    speakers = memories.speakers.get(docs)
    different = set(speakers)
    named, assistants = named_speakers(query, different), {each for each in different if is_assistant(each)}
    titles = memories.titles.get(docs)
    asked = set(_WORD.findall(query.casefold()))
    shares = {title: _titled(title, asked) for title in set(titles)}
    matched = okapi.coverage(rankings[Leg.BM25].terms if Leg.BM25 in rankings else None, docs)
    own = stored = np.zeros(docs.size, np.float32)
    if embedding is not None:
        own, stored = (cosines(rows[places], embedding) for rows in (vectors.own, vectors.stored))
    return Particulars(
        ids=[found[doc] for doc in docs.tolist()],
        own=own,
        mixed=stored,
        vectors=None if embedding is None else vectors.own[places],
        covered=matched.covered,
        shared=matched.shared,
        rarest=matched.rarest,
        traits=memories.traits[docs].tolist(),
        assistant=[speaker in assistants for speaker in speakers],
        named=[speaker in named for speaker in speakers],
        speakers=_numbered(memories.speakers.codes[docs]),
        sessions=_numbered(memories.sessions.codes[docs]),
        titled=[shares[title] for title in titles],
        has_title=[title is not None for title in titles],
        query=query_traits(query),
    )


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


def _numbered(codes: NDArray[np.int32]) -> list[int]:
    """A number from 0 for each different code, -1 for none."""
    each = codes.tolist()
    numbers = {code: number for number, code in enumerate(set(each) - {NONE})}
    numbers[NONE] = -1
    return [numbers[code] for code in each]


def _titled(title: str | None, asked: set[str]) -> float:
    """Which share of a title's words is asked for."""
    words = _words(title) if title else frozenset()
    return len(words & asked) / len(words) if words else 0.0


@lru_cache(maxsize=8_192)
def _words(title: str) -> frozenset[str]:
    """The words of a title, which many memories have and many queries meet."""
    return frozenset(_WORD.findall(title.casefold()))
