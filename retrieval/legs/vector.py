"""The semantic leg: nearest neighbours of the query's embedding by inner product of unit vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from pgvector import HalfVector

from retrieval.legs.base import Hit, LegQuery, LegRanking
from retrieval.store import nearest
from retrieval.store.pool import Pool
from retrieval.types import Leg

EXACT_UP_TO = 5_000
"""Eligible memories up to which each is compared; the index reaches fewer of a small namespace among large ones."""

_LOOKED_AT = 4
"""Memories compared exactly, for each one wanted, of those that the mirror's rounded vectors put first."""

_MOST_COMPARED = 20_000
_LEAST_SHARE = 0.1
"""Share of the memories that has to be eligible for the index to be asked, unless there are `_MOST_COMPARED`."""


class VectorRetriever:
    """HNSW with iterative scans; an exact scan where few memories are eligible or the index ran dry."""

    leg = Leg.VECTOR

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def search(self, query: LegQuery) -> LegRanking:
        """The eligible memories most similar to the query; scores are cosines in [-1, 1]."""
        vector = await query.embedding()
        embedding = HalfVector(vector)
        mirror = query.standing.mirror
        memories = mirror.memories
        _, eligible = query.masks()
        count = int(np.count_nonzero(eligible))
        share = count / max(memories.count, 1)
        plan, found = list[str](), list[tuple[int, float]]()
        details: dict[str, Any] = {"ef_search": query.ef_search}
        async with self._pool.connection() as conn:
            if goes_by_index(count, share):
                plan.append("hnsw")
                breadth = nearest.breadth(query.ef_search, memories.count, share)
                details["breadth"] = breadth
                found = await nearest.by_index(
                    conn, query.ns, embedding, k=query.fan_out, eligible=query.eligibility, ef_search=breadth
                )
            if len(found) < min(query.fan_out, count):
                plan.append("exact")
                docs = mirror.vectors.likeliest(np.flatnonzero(eligible), vector, _LOOKED_AT * query.fan_out)
                found = await nearest.among(conn, query.ns, embedding, k=query.fan_out, docs=docs.tolist())
        least = -1.0 if query.min_similarity is None else query.min_similarity
        # The index may find memories that came since the mirror was brought up to date.
        kept = [(doc, score) for doc, score in found if score >= least and doc < len(eligible) and eligible[doc]]
        names = memories.ids.get(np.array([doc for doc, _ in kept], np.int64))
        hits = [Hit(id=memory_id, doc=doc, score=score) for memory_id, (doc, score) in zip(names, kept, strict=True)]
        hits.sort(key=lambda hit: (-hit.score, hit.id))
        return LegRanking(hits=tuple(hits), details={**details, "plan": ", then ".join(plan)})


def goes_by_index(count: int, share: float) -> bool:
    """Whether the index is asked for the nearest of `count` eligible memories, which are this share of all.

    >>> goes_by_index(5_000, 1.0), goes_by_index(100_000, 1.0), goes_by_index(10_000, 0.05)
    (False, True, False)
    """
    return count > EXACT_UP_TO and (share >= _LEAST_SHARE or count > _MOST_COMPARED)
