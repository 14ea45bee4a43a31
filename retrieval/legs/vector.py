"""The semantic leg: nearest neighbours of the query's embedding by inner product of unit vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from native.crew import Crew
from retrieval.legs.base import Hit, LegQuery, LegRanking
from retrieval.mirror.vectors import cosines
from retrieval.store import nearest
from retrieval.store.pool import Pool
from retrieval.types import Leg

READ_BY_QUERY = 2_000
"""Vectors that a query waits for where the mirror has not read them yet; with more to come, the database is asked."""

EXACT_UP_TO = 5_000
"""Eligible memories up to which each is compared; the index reaches fewer of a small namespace among large ones."""

_COMPARED = 8
"""Memories compared by all of their vectors, for each that a search of the index of the same breadth would visit."""

_TIES = 50
"""Memories more than wanted that are put in order: of equal ones the first by id are wanted."""

_BESIDE_FROM = 5_000
"""Eligible memories from which it pays to have others look, while this thread does what else the query needs."""

_MOST_COMPARED = 20_000
_LEAST_SHARE = 0.1
"""Share of the memories that has to be eligible for the index to be asked, unless there are `_MOST_COMPARED`."""

_Found = list[tuple[int, float]]
"""Ordinals with their cosines."""


class VectorRetriever:
    """The mirror's vectors, or the database's while those are being read: HNSW, or each where few are eligible."""

    leg = Leg.VECTOR

    def __init__(self, pool: Pool, crew: Crew | None = None) -> None:
        """Ask the database by `pool`; `crew` compares many vectors, while the event loop does what else there is."""
        self._pool = pool
        self._crew = crew

    async def search(self, query: LegQuery) -> LegRanking:
        """The eligible memories most similar to the query; scores are cosines in [-1, 1]."""
        embedding = await query.embedding()
        memories, vectors = query.standing.mirror.memories, query.standing.mirror.vectors
        _, eligible = query.masks()
        if vectors.among(eligible).missing.size <= READ_BY_QUERY:
            found, details = await self._in_memory(query, eligible, embedding)
        else:
            found, details = await self._in_database(query, eligible, HalfVector(embedding))
        least = -1.0 if query.min_similarity is None else query.min_similarity
        # The index may find memories that came since the mirror was brought up to date.
        kept = [(doc, score) for doc, score in found if score >= least and doc < len(eligible) and eligible[doc]]
        names = memories.ids.get(np.array([doc for doc, _ in kept], np.int64))
        hits = [Hit(memory_id, doc, score) for memory_id, (doc, score) in zip(names, kept, strict=True)]
        hits.sort(key=lambda hit: (-hit.score, hit.id))
        return LegRanking(hits=tuple(hits[: query.fan_out]), details={"ef_search": query.ef_search, **details})

    async def _in_memory(
        self, query: LegQuery, eligible: NDArray[np.bool_], embedding: NDArray[np.float32]
    ) -> tuple[_Found, dict[str, Any]]:
        """By the mirror's vectors, and those of the database that it lacks."""
        vectors = query.standing.mirror.vectors
        count = vectors.among(eligible).size
        compared = count if count <= EXACT_UP_TO else _COMPARED * nearest.breadth(query.ef_search, count, 1.0)
        crew = self._crew if count > _BESIDE_FROM else None
        version = None
        while version != vectors.version:  # another query may see a change, and put a vector in another's place
            while (unread := query.vectors.unread(missing := vectors.among(eligible).missing)).size:
                await query.vectors.read(unread.tolist())
            version = vectors.version
            docs, scores = await vectors.nearest(
                eligible, embedding, query.fan_out + _TIES, breadth=compared, crew=crew
            )
        equal_up_to = (
            int(np.count_nonzero(scores >= scores[query.fan_out - 1])) if len(scores) > query.fan_out else None
        )
        found = list(zip(docs[:equal_up_to].tolist(), scores[:equal_up_to].tolist(), strict=True))
        if missing.size:  # forgotten again since they were read, by a query that saw a change
            docs = np.array([doc for doc in missing.tolist() if doc in query.vectors], np.int64)
            similarities = cosines(query.vectors.stored, embedding, query.vectors.places(docs.tolist()))
            found += zip(docs.tolist(), similarities.tolist(), strict=True)
        return found, {"plan": "exact" if count <= compared else "quantised", "compared": min(count, compared)}

    async def _in_database(
        self, query: LegQuery, eligible: NDArray[np.bool_], embedding: HalfVector
    ) -> tuple[_Found, dict[str, Any]]:
        """By the index; each where few memories are eligible or it ran dry."""
        plan, found, details = list[str](), _Found(), dict[str, Any]()
        count = int(np.count_nonzero(eligible))
        share = count / max(query.standing.mirror.memories.count, 1)
        async with self._pool.connection() as conn:
            if goes_by_index(count, share):
                plan.append("hnsw")
                breadth = nearest.breadth(query.ef_search, query.standing.mirror.memories.count, share)
                details["breadth"] = breadth
                found = await nearest.by_index(
                    conn, query.ns, embedding, k=query.fan_out, eligible=query.eligibility, ef_search=breadth
                )
            if len(found) < min(query.fan_out, count):
                plan.append("exact")
                docs = np.flatnonzero(eligible).tolist()
                found = await nearest.among(conn, query.ns, embedding, k=query.fan_out, docs=docs)
        return found, {**details, "plan": ", then ".join(plan)}


def goes_by_index(count: int, share: float) -> bool:
    """Whether the index is asked for the nearest of `count` eligible memories, which are this share of all.

    >>> goes_by_index(5_000, 1.0), goes_by_index(100_000, 1.0), goes_by_index(10_000, 0.05)
    (False, True, False)
    """
    return count > EXACT_UP_TO and (share >= _LEAST_SHARE or count > _MOST_COMPARED)
