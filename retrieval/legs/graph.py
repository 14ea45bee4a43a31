"""The graph leg: memories near the entities that the query speaks of."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, LiteralString

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import AsyncConnection

from graph.arrays import array_text
from graph.linking import link
from graph.traversal import Bounds, Walk, walk
from retrieval.legs.base import Hit, LegQuery, LegRanking
from retrieval.store.pool import Pool
from retrieval.store.visibility import ELIGIBLE, eligibility
from retrieval.types import Leg

log = logging.getLogger(__name__)

SIMILARITY_FLOOR = 0.2
"""score = activation * (floor + max(cosine, 0)) / (floor + 1): nearness alone still counts."""

MAX_COMPARED = 64
"""Most memories, nearest first, whose similarity to the query is computed."""

_RANK: LiteralString = """
    select m.doc, m.id, near.activation
        * (%(floor)s + least(greatest(coalesce(-(m.embedding <#> %(embedding)s::halfvec), 1), 0), 1))
        / (%(floor)s + 1) as score
    from unnest(%(docs)s::integer[], %(activations)s::float8[]) as near (doc, activation)
    join memory m on m.ns = %(ns)s and m.doc = near.doc
    order by score desc, m.id collate "C" limit %(fan_out)s
"""
"""Without an embedding the factor is 1."""


class GraphRetriever:
    """Links the query while its embedding is under way, walks, then weighs by similarity.

    Without an embedding it ranks by the walk alone: a dead embedder does not take this leg along.
    """

    leg = Leg.GRAPH

    def __init__(self, pool: Pool, *, bounds: Bounds | None = None) -> None:
        """Use connections of `pool`; `bounds` caps the walk, its hops come with each query."""
        self._pool = pool
        self._bounds = bounds or Bounds()

    async def search(self, query: LegQuery) -> LegRanking:
        """The best `fan_out` memories near the query's entities; none if it names none that are known.

        A hit's score is its activation in [0, 1], weighed by similarity where there is an embedding.
        """
        async with self._pool.connection() as conn:
            seeds = await link(conn, query.ns, query.text)
            details: dict[str, Any] = {
                "entities": [{"name": s.name, "how": s.how, "score": round(s.score, 4)} for s in seeds]
            }
            if not seeds:
                return LegRanking(hits=(), details=details)
            params = eligibility(query.filters, as_of=query.as_of, include_superseded=query.include_superseded)
            bounds = replace(self._bounds, max_hops=query.max_hops)
            found = await walk(conn, query.ns, seeds, eligible=ELIGIBLE, params=params, bounds=bounds)
            details |= {"hops": found.hops, "memories": len(found.reached)}
        if not found.reached:
            return LegRanking(hits=(), details=details)
        embedding = await self._embedding(query)
        details["similarity"] = embedding is not None
        async with self._pool.connection() as conn:
            hits = await _weigh(conn, query, found, embedding)
        return LegRanking(hits=hits, details=details)

    async def _embedding(self, query: LegQuery) -> NDArray[np.float32] | None:
        try:
            return await query.embedding()
        except Exception as error:  # whatever the provider raises, the walk is worth having
            log.warning("graph leg ranks without similarity: %s", error)
            return None


async def _weigh(
    conn: AsyncConnection[Any], query: LegQuery, found: Walk, embedding: NDArray[np.float32] | None
) -> tuple[Hit, ...]:
    nearest = found.reached[: max(MAX_COMPARED, query.fan_out)]
    parameters = {
        "ns": query.ns,
        "docs": array_text(memory.doc for memory in nearest),
        "activations": array_text(memory.activation for memory in nearest),
        "embedding": None if embedding is None else HalfVector(embedding),
        "floor": SIMILARITY_FLOOR,
        "fan_out": query.fan_out,
    }
    rows = await (await conn.execute(_RANK, parameters, binary=True)).fetchall()
    return tuple(Hit(id=id_, score=score, path=found.path(doc) if query.explain else None) for doc, id_, score in rows)
