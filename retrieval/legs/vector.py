"""The semantic leg: nearest neighbours of the query's embedding by inner product of unit vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from native.worker_pool import WorkerPool
from retrieval.index.query_vectors import cosines
from retrieval.index.slots import NO_SLOT
from retrieval.legs.base import Hit, LegQuery, LegRanking
from retrieval.store import vectors as stored_vectors
from retrieval.store.pool import Pool
from retrieval.types.search import Leg

READ_BY_QUERY = 2_000
"""Most missing vectors that a query waits to read into the index; if more are missing, the database is searched."""

EXACT_UP_TO = 5_000
"""Up to this many eligible memories, all are compared; HNSW would reach fewer in a small namespace among large ones."""

_COMPARED = 8
"""Memories compared with full vectors, per memory that an HNSW search of the same breadth would visit."""

_TIES = 50
"""Extra memories to sort, so that ties with the last one wanted go by id."""

_PARALLEL_FROM = 5_000
"""Eligible memories from which other threads search, while this one continues with the rest of the query."""

_MOST_COMPARED = 20_000
_LEAST_SHARE = 0.1
"""Least share of eligible memories for a search by HNSW, unless more than `_MOST_COMPARED` are eligible."""

_Found = list[tuple[int, float]]
"""Slots or ordinals with their cosines."""


class VectorRetriever:
    """Searches the vectors in memory; until these are loaded, the database by HNSW or, if few are eligible, exactly."""

    leg = Leg.VECTOR

    def __init__(self, pool: Pool, workers: WorkerPool | None = None) -> None:
        """Use connections of `pool`; `workers` compare large sets of vectors off the event loop."""
        self._pool = pool
        self._workers = workers

    async def search(self, query: LegQuery) -> LegRanking:
        """The eligible memories most similar to the query; scores are cosines in [-1, 1]."""
        embedding = await query.embedding()
        memories, vectors = query.snapshot.index.memories, query.snapshot.index.vectors
        eligible = query.view.eligible
        if vectors.among(eligible).missing.size <= READ_BY_QUERY:
            found, details = await self._in_memory(query, eligible, embedding)
        else:
            found, details = await self._in_database(query, eligible, HalfVector(embedding))
        least = -1.0 if query.min_similarity is None else query.min_similarity
        # The database may return memories added since the index was brought up to date.
        kept = [(doc, score) for doc, score in found if score >= least and doc < len(eligible) and eligible[doc]]
        names = memories.ids.get(np.array([doc for doc, _ in kept], np.int64))
        hits = [Hit(memory_id, doc, score) for memory_id, (doc, score) in zip(names, kept, strict=True)]
        hits.sort(key=lambda hit: (-hit.score, hit.id))
        return LegRanking(hits=tuple(hits[: query.fan_out]), details={"ef_search": query.ef_search, **details})

    async def _in_memory(
        self, query: LegQuery, eligible: NDArray[np.bool_], embedding: NDArray[np.float32]
    ) -> tuple[_Found, dict[str, Any]]:
        """Search the vectors in memory and those that had to be read from the database."""
        vectors = query.snapshot.index.vectors
        count = vectors.among(eligible).size
        compared = count if count <= EXACT_UP_TO else _COMPARED * stored_vectors.breadth(query.ef_search, count, 1.0)
        workers = self._workers if count > _PARALLEL_FROM else None
        version = None
        while version != vectors.version:  # another query may apply a change and reuse a vector's row
            while (unread := query.vectors.unread(missing := vectors.among(eligible).missing)).size:
                await query.vectors.read(unread.tolist())
            version = vectors.version
            docs, scores = await vectors.nearest(
                eligible, embedding, query.fan_out + _TIES, breadth=compared, workers=workers
            )
        equal_up_to = (
            int(np.count_nonzero(scores >= scores[query.fan_out - 1])) if len(scores) > query.fan_out else None
        )
        found = list(zip(docs[:equal_up_to].tolist(), scores[:equal_up_to].tolist(), strict=True))
        if missing.size:  # read, but dropped again by a query that applied a change
            docs = np.array([doc for doc in missing.tolist() if doc in query.vectors], np.int64)
            similarities = cosines(query.vectors.context_vectors, embedding, query.vectors.rows_of(docs.tolist()))
            found += zip(docs.tolist(), similarities.tolist(), strict=True)
        return found, {"plan": "exact" if count <= compared else "quantised", "compared": min(count, compared)}

    async def _in_database(
        self, query: LegQuery, eligible: NDArray[np.bool_], embedding: HalfVector
    ) -> tuple[_Found, dict[str, Any]]:
        """Search by HNSW; exactly if few memories are eligible or HNSW returned too few."""
        plan, found, details = list[str](), _Found(), dict[str, Any]()
        slots = query.snapshot.index.memories.slots
        count = int(np.count_nonzero(eligible))
        share = count / max(query.snapshot.index.memories.count, 1)
        async with self._pool.connection() as conn:
            if goes_by_index(count, share):
                plan.append("hnsw")
                breadth = stored_vectors.breadth(query.ef_search, query.snapshot.index.memories.count, share)
                details["breadth"] = breadth
                found = await stored_vectors.by_index(
                    conn, query.ns, embedding, k=query.fan_out, eligible=query.eligibility, ef_search=breadth
                )
            if len(found) < min(query.fan_out, count):
                plan.append("exact")
                docs = slots.ordinals(np.flatnonzero(eligible)).tolist()
                found = await stored_vectors.among(conn, query.ns, embedding, k=query.fan_out, docs=docs)
            await stored_vectors.check_generation(conn, query.ns, query.snapshot.index.generation)
        slots_found = slots.of(np.array([doc for doc, _ in found], np.int64)).tolist()
        hits = [(slot, score) for slot, (_, score) in zip(slots_found, found, strict=True) if slot != NO_SLOT]
        return hits, {**details, "plan": ", then ".join(plan)}


def goes_by_index(count: int, share: float) -> bool:
    """Whether to use HNSW for `count` eligible memories, `share` of all.

    >>> goes_by_index(5_000, 1.0), goes_by_index(100_000, 1.0), goes_by_index(10_000, 0.05)
    (False, True, False)
    """
    return count > EXACT_UP_TO and (share >= _LEAST_SHARE or count > _MOST_COMPARED)
