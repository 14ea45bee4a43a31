"""The graph leg: memories near the query's entities and near what the other legs found first."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, LiteralString

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import AsyncConnection

from graph.arrays import array_text
from graph.linking import link
from graph.traversal import Bounds, View, Walk, begin, walk
from retrieval.legs.base import Hit, LegQuery, LegRanking
from retrieval.legs.wayfinding import Reason, reasons
from retrieval.store.pool import Pool
from retrieval.store.visibility import ELIGIBLE
from retrieval.types import Leg

log = logging.getLogger(__name__)

SIMILARITY_FLOOR = 0.1
"""score = activation * ((floor + max(cosine, 0)) / (floor + 1))^2: nearness alone still counts."""

MAX_COMPARED = 100
"""Memories, nearest first, whose similarity to the query is computed; as many as are asked for if that is more."""

MAX_BESIDE = 16
"""Most memories, nearest first, that pass activation on to the turns beside them."""

_RANK: LiteralString = (
    """
    with near as materialized (
        select * from unnest(%(docs)s::integer[], %(activations)s::float8[])
            with ordinality as n (doc, activation, place)
    ), spread as (
        select doc, activation from near
        union all
        select beside.doc, %(adjacency)s * near.activation
        from (select * from near where place <= %(beside)s and %(adjacency)s > 0) as near
        join turn t on t.ns = %(ns)s and t.doc = near.doc
        cross join lateral (values (t.previous), (t.next)) as beside (doc)
        where beside.doc is not null
    ), total as (
        select doc, sum(activation) / (1 + 2 * %(adjacency)s::float8) as activation from spread group by doc
    )
    select m.doc, m.id, least(1, total.activation * power(
        (%(floor)s + least(greatest(coalesce(-(m.embedding <#> %(embedding)s::halfvec), 1), 0), 1)) / (%(floor)s + 1), 2
    )) as score
    from total join memory m on m.ns = %(ns)s and m.doc = total.doc
    where """
    + ELIGIBLE
    + """
    order by score desc, m.id collate "C" limit %(fan_out)s
"""
)
"""Without an embedding the factor is 1."""


class GraphRetriever:
    """Links the query and takes its entities' memories at once; walks on when the other legs have answered.

    Without an embedding it ranks by the walk alone, and without other legs it walks from its own first
    memories: neither a dead embedder nor a dead leg takes this one along.
    """

    leg = Leg.GRAPH

    def __init__(self, pool: Pool, *, bounds: Bounds | None = None) -> None:
        """Use connections of `pool`; `bounds` caps the walk, its hops come with each query."""
        self._pool = pool
        self._bounds = bounds or Bounds()

    async def search(self, query: LegQuery) -> LegRanking:
        """The best `fan_out` memories near the query; none if it names none that are known and no leg found any.

        A hit's score is its activation in [0, 1], weighed by similarity where there is an embedding.
        """
        params = query.eligibility
        view = View(ns=query.ns, memories=max(query.docs_given_out, 1), eligible=ELIGIBLE, params=params)
        bounds = replace(self._bounds, max_hops=query.max_hops)
        async with self._pool.connection() as conn:
            seeds = await link(conn, query.ns, query.text)
            near = await begin(conn, view, seeds, bounds)
        details: dict[str, Any] = {
            "entities": [{"name": s.name, "how": s.how, "score": round(s.score, 4)} for s in seeds]
        }
        anchors = anchors_of(await query.others(), query.profile.anchors) if query.max_hops else {}
        rarities = tuple(math.log(1 + view.memories / seed.mentions) / math.log(1 + view.memories) for seed in seeds)
        if not seeds and not anchors:
            return LegRanking(hits=(), details=details)
        async with self._pool.connection() as conn:
            with query.stopwatch.span("graph_walk"):
                found = await walk(conn, view, near, anchors, rules=query.rules, bounds=bounds)
            details |= {"anchors": len(anchors), "hops": found.hops, "memories": len(found.reached)}
            if not found.reached:
                return LegRanking(hits=(), details=details, rarities=rarities)
            embedding = await self._embedding(query)
            details["similarity"] = embedding is not None
            rows = await _ranked(conn, query, view, found, embedding)
            why = await reasons(conn, query.ns, found, [doc for doc, _, _ in rows]) if query.explain else {}
        nothing = Reason((), None)
        hits = tuple(
            Hit(id=id_, doc=doc, score=score, path=why.get(doc, nothing).path, why=why.get(doc, nothing).text)
            for doc, id_, score in rows
        )
        return LegRanking(hits=hits, details=details, rarities=rarities)

    async def _embedding(self, query: LegQuery) -> NDArray[np.float32] | None:
        try:
            async with asyncio.timeout(query.patience_s):
                return await query.embedding()
        except Exception as error:  # whatever the provider raises, the walk is worth having
            log.warning("graph leg ranks without similarity: %s", error)
            return None


def anchors_of(others: Mapping[Leg, Sequence[Hit]], count: int) -> dict[int, float]:
    """The best memories of the other legs together, by ordinal, with strengths that grow with the square.

    Each leg gives a memory its score between the leg's least (0) and best (1); BM25, whose 0 means
    something, between 0 and 1.
    """
    together: dict[int, float] = {}
    for leg, hits in others.items():
        if not hits:
            continue
        least = 0.0 if leg is Leg.BM25 else hits[-1].score
        span = hits[0].score - least
        for hit in hits:
            together[hit.doc] = together.get(hit.doc, 0.0) + ((hit.score - least) / span if span > 0 else 1.0)
    similarity = {hit.doc: hit.score for hit in others.get(Leg.VECTOR, ())}
    unknown = min(similarity.values(), default=1.0)
    best = sorted(together, key=lambda doc: (-together[doc], doc))[:count]
    strengths = {doc: together[doc] ** 2 * max(similarity.get(doc, unknown), 0.0) for doc in best}
    return {doc: strength for doc, strength in strengths.items() if strength > 0}


async def _ranked(
    conn: AsyncConnection[Any], query: LegQuery, view: View, found: Walk, embedding: NDArray[np.float32] | None
) -> list[tuple[int, str, float]]:
    """Ordinals, ids and scores, best first."""
    nearest = found.reached[: max(MAX_COMPARED, query.fan_out)]
    parameters = {
        **view.params,
        "ns": query.ns,
        "docs": array_text(memory.doc for memory in nearest),
        "activations": array_text(memory.activation for memory in nearest),
        "adjacency": query.profile.adjacency,
        "beside": MAX_BESIDE,
        "embedding": None if embedding is None else HalfVector(embedding),
        "floor": SIMILARITY_FLOOR,
        "fan_out": query.fan_out,
    }
    return await (await conn.execute(_RANK, parameters, binary=True)).fetchall()
