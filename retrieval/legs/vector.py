"""The semantic leg: nearest neighbours of the query's embedding by inner product of unit vectors."""

from __future__ import annotations

from typing import Any, LiteralString

from pgvector import HalfVector

from retrieval.legs.base import Hit, LegQuery, LegRanking
from retrieval.store.pool import Connection, Pool
from retrieval.store.visibility import ELIGIBLE
from retrieval.types import Leg

EXACT_UP_TO = 5_000
"""Ordinals given out up to which a namespace is scanned: faster there than HNSW, and exact."""

# Whether the index serves is decided here: a plan that is made once for all filters cannot know how few
# of its conditions are in use, and would sort the namespace.
_GO_BY_INDEX = """
    select set_config('enable_sort', 'off', true),
           set_config('hnsw.iterative_scan', 'strict_order', true),
           set_config('hnsw.ef_search', %(ef_search)s, true)
"""

_BY_INDEX: LiteralString = (
    """
    select m.id, m.doc, -(m.embedding <#> %(embedding)s) as similarity
    from memory m where m.ns = %(ns)s and """
    + ELIGIBLE
    + """
    order by m.embedding <#> %(embedding)s limit %(fan_out)s
"""
)

# `0 +` keeps the planner from the HNSW index.
_BY_SCAN: LiteralString = (
    """
    select m.id, m.doc, -(m.embedding <#> %(embedding)s) as similarity
    from memory m where m.ns = %(ns)s and """
    + ELIGIBLE
    + """
    order by 0 + (m.embedding <#> %(embedding)s), m.id collate "C" limit %(fan_out)s
"""
)


class VectorRetriever:
    """HNSW with iterative scans; an exact scan where the namespace is small or the index ran dry."""

    leg = Leg.VECTOR

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def search(self, query: LegQuery) -> LegRanking:
        """The eligible memories most similar to the query; scores are cosines in [-1, 1]."""
        embedding = HalfVector(await query.embedding())
        parameters = query.eligibility
        parameters |= {"ns": query.ns, "embedding": embedding, "fan_out": query.fan_out}
        plan, rows = [], list[tuple[Any, ...]]()
        async with self._pool.connection() as conn:
            if query.docs_given_out > EXACT_UP_TO:
                plan.append("hnsw")
                rows = await _by_index(conn, parameters, query.ef_search)
            if len(rows) < query.fan_out:
                plan.append("exact scan")
                rows = await (await conn.execute(_BY_SCAN, parameters, binary=True)).fetchall()
        least = -1.0 if query.min_similarity is None else query.min_similarity
        hits = [
            Hit(id=memory_id, doc=doc, score=similarity) for memory_id, doc, similarity in rows if similarity >= least
        ]
        hits.sort(key=lambda hit: (-hit.score, hit.id))
        return LegRanking(hits=tuple(hits), details={"plan": ", then ".join(plan), "ef_search": query.ef_search})


async def _by_index(conn: Connection, parameters: dict[str, Any], ef_search: int) -> list[tuple[Any, ...]]:
    # A pipeline is one transaction up to its end, which the local settings need, and one round trip.
    async with conn.pipeline():
        await conn.execute(_GO_BY_INDEX, {"ef_search": str(ef_search)})
        cursor = await conn.execute(_BY_INDEX, parameters, binary=True)
    return await cursor.fetchall()
