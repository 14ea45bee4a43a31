"""The semantic leg: nearest neighbours of the query's embedding by inner product of unit vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from graph.adjacency import in_mask
from native.worker_pool import WorkerPool
from retrieval.index.query_vectors import cosines
from retrieval.legs.base import LegQuery, LegRanking
from retrieval.store import vector_index
from retrieval.store import vectors as stored_vectors
from retrieval.store.pool import Pool
from retrieval.store.visibility import by_ordinal, seen_by

READ_BY_QUERY = 2_000
"""Most missing vectors that a query waits to read into the index; if more are missing, the database is searched."""

EXACT_UP_TO = 5_000
"""Up to this many eligible memories, all are compared; HNSW would reach fewer in a small namespace among large ones."""

_COMPARED = 8
"""Memories compared with full vectors, per memory that an HNSW search of the same breadth would visit."""

_TIES = 50
"""Extra memories to sort, so that ties with the last one wanted are broken by id."""

_PARALLEL_FROM = 5_000
"""From this many eligible memories on, other threads search while this one continues with the rest of the query."""

_MOST_COMPARED = 20_000
_LEAST_SHARE = 0.1
"""Least share of eligible memories for a search by HNSW, unless more than `_MOST_COMPARED` are eligible."""


_Nearest = tuple[NDArray[np.int64], NDArray[np.float64], dict[str, Any]]
"""Slots of memories with their cosines, shape (n,) each, and how they were found."""


class VectorRetriever:
    """Searches the vectors in memory; until they are loaded, the database by HNSW or, if few are eligible, exactly."""

    def __init__(self, pool: Pool, workers: WorkerPool | None = None) -> None:
        """Use connections of `pool`; `workers` compare large sets of vectors off the event loop."""
        self._pool = pool
        self._workers = workers

    async def search(self, query: LegQuery) -> LegRanking:
        """The eligible memories most similar to the query; scores are cosines in [-1, 1]."""
        embedding = await query.embedding()
        index = query.snapshot.index
        if index.vectors.eligible_rows(query.view.eligible).missing.size <= READ_BY_QUERY:
            docs, scores, details = await self._in_memory(query, embedding)
        else:
            docs, scores, details = await self._in_database(query, HalfVector(embedding))
        scores = np.clip(scores, -1.0, 1.0)  # rounded vectors are a little longer or shorter than 1
        if (least := query.request.min_similarity) is not None:
            is_similar = scores >= least
            docs, scores = docs[is_similar], scores[is_similar]
        details["ef_search"] = query.request.ef_search
        return LegRanking.best(docs, scores, index.memories.ids, count=query.fan_out, details=details)

    async def _in_memory(self, query: LegQuery, embedding: NDArray[np.float32]) -> _Nearest:
        """Search the vectors in memory and those that had to be read from the database."""
        vectors, eligible = query.snapshot.index.vectors, query.view.eligible
        count = vectors.eligible_rows(eligible).size
        compared = count
        if count > EXACT_UP_TO:
            compared = _COMPARED * stored_vectors.breadth(query.request.ef_search, count, 1.0)
        workers = self._workers if count > _PARALLEL_FROM else None
        version = None
        while version != vectors.version:  # another query may apply a change and reuse a vector's row
            while unread := query.vectors.unread((missing := vectors.eligible_rows(eligible).missing).tolist()):
                await query.vectors.read(unread)
            version = vectors.version
            docs, scores = await vectors.nearest(
                eligible, embedding, query.fan_out + _TIES, breadth=compared, workers=workers
            )
        if missing.size:  # read, then dropped by a query that applied a change
            rows = query.vectors.rows_of(missing.tolist())
            similarities = cosines(query.vectors.context_vectors, embedding, rows[rows >= 0])
            docs, scores = np.concatenate([docs, missing[rows >= 0]]), np.concatenate([scores, similarities])
        plan = "exact" if count <= compared else "quantised"
        return docs, scores.astype(np.float64), {"plan": plan, "compared": min(count, compared)}

    async def _in_database(self, query: LegQuery, embedding: HalfVector) -> _Nearest:
        """Search by HNSW; exactly if the namespace is small, few memories are eligible or HNSW returned too few."""
        plan, found, details = list[str](), list[tuple[int, float]](), dict[str, Any]()
        index, eligible = query.snapshot.index, query.view.eligible
        slots, memories, count = index.memories.slots, index.memories.count, int(np.count_nonzero(eligible))
        async with self._pool.connection() as conn:
            if goes_by_index(count, memories):
                plan.append("hnsw")
                breadth = stored_vectors.breadth(query.request.ef_search, memories, count / memories)
                details["breadth"] = breadth
                found = await stored_vectors.by_index(
                    conn, index.ns, embedding, k=query.fan_out, condition=seen_by(query.request), ef_search=breadth
                )
            if len(found) < min(query.fan_out, count):
                plan.append("exact")
                condition = by_ordinal(slots.to_ordinals(np.flatnonzero(eligible)).tolist())
                found = await stored_vectors.exactly(conn, index.ns, embedding, k=query.fan_out, condition=condition)
            await stored_vectors.check_generation(conn, index.ns, index.generation)
        docs = slots.from_ordinals(np.array([doc for doc, _ in found], np.int64))
        scores = np.array([score for _, score in found], np.float64)
        known = in_mask(docs, eligible)  # the database may return memories added since the index was brought up to date
        return docs[known], scores[known], {**details, "plan": ", then ".join(plan)}


def goes_by_index(count: int, memories: int) -> bool:
    """Whether to use HNSW for `count` eligible of `memories`.

    >>> goes_by_index(5_000, 100_000), goes_by_index(100_000, 100_000), goes_by_index(10_000, 200_000)
    (False, True, False)
    >>> goes_by_index(20_000, 20_000)  # none of them has to be in the index
    False
    """
    is_large = memories > vector_index.MOST_OUTSIDE and count > EXACT_UP_TO
    return is_large and (count >= _LEAST_SHARE * memories or count > _MOST_COMPARED)
