"""Collecting what is known of the fused candidates of a query, for the rescorer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from psycopg import AsyncConnection

from classifier.candidates import Particulars
from classifier.rescorer import Rescored
from classifier.traits import pack_traits, query_traits
from retrieval.legs import okapi
from retrieval.legs.base import LegRanking
from retrieval.speakers import is_assistant, named_speakers
from retrieval.store import particulars
from retrieval.store.particulars import ParticularsRow, vectors_of
from retrieval.text.wording import without_speaker
from retrieval.types import Leg

PERIOD_BONUS = 2.0
"""What a memory's score gains for being of the query's time, in standard deviations of the query's scores."""

_WORD = re.compile(r"\w+")


async def particulars_of(
    conn: AsyncConnection[tuple[object, ...]],
    ns: int,
    query: str,
    embedding: NDArray[np.float32] | None,
    rankings: Mapping[Leg, LegRanking],
) -> Particulars | None:
    """What is known of the memories that the legs ranked; None if all of them are gone by now."""
    found = {hit.doc: hit.id for ranking in rankings.values() for hit in ranking.hits}
    rows = await particulars.read(conn, ns, found, embedding)
    there = [rows[doc] for doc in found if doc in rows]  # a database gives rows in any order
    return _particulars(query, there, found, embedding, rankings) if there else None


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


def _particulars(
    query: str,
    rows: Sequence[ParticularsRow],
    found: Mapping[int, str],
    embedding: NDArray[np.float32] | None,
    rankings: Mapping[Leg, LegRanking],
) -> Particulars:
    named = named_speakers(query, {row.speaker for row in rows})
    asked = set(_WORD.findall(query.casefold()))
    matched = okapi.coverage(rankings[Leg.BM25].terms if Leg.BM25 in rankings else None, [row.doc for row in rows])
    vectors = own = None
    if embedding is not None:
        vectors = vectors_of([row.own for row in rows if row.own is not None])
        own = vectors @ embedding
    nothing = np.zeros(len(rows), np.float32)
    return Particulars(
        ids=[found[row.doc] for row in rows],
        own=nothing if own is None else own,
        mixed=nothing if embedding is None else np.array([row.mixed for row in rows], np.float32),
        vectors=vectors,
        covered=matched.covered,
        shared=matched.shared,
        rarest=matched.rarest,
        traits=[_traits(row) for row in rows],
        assistant=[is_assistant(row.speaker) for row in rows],
        named=[row.speaker in named for row in rows],
        speakers=_numbered([row.speaker for row in rows]),
        sessions=_numbered([row.session_id for row in rows]),
        titled=[_titled(row.title, asked) for row in rows],
        has_title=[row.title is not None for row in rows],
        query=query_traits(query),
    )


def _traits(row: ParticularsRow) -> int:
    return row.traits if row.traits is not None else pack_traits(without_speaker(row.text or "", row.speaker))


def _numbered(names: Sequence[str | None]) -> list[int]:
    """A number from 0 for each different name, -1 for none."""
    numbers: dict[str, int] = {}
    return [-1 if name is None else numbers.setdefault(name, len(numbers)) for name in names]


def _titled(title: str | None, asked: set[str]) -> float:
    """Which share of a title's words is asked for."""
    words = set(_WORD.findall(title.casefold())) if title else set()
    return len(words & asked) / len(words) if words else 0.0
