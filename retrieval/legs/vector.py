"""The semantic leg: nearest neighbours of the query's embedding by inner product of unit vectors."""

from __future__ import annotations

from typing import Any, LiteralString

from pgvector import HalfVector

from retrieval.legs.base import Hit, LegQuery, LegRanking
from retrieval.store.pool import DEFAULT_EF_SEARCH, Connection, Pool
from retrieval.store.visibility import ELIGIBLE, eligibility
from retrieval.types import Leg

EXACT_UP_TO = 2_000
"""Ordinals given out up to which a namespace is scanned: faster there than HNSW, and exact."""

_SET_EF_SEARCH = "select set_config('hnsw.ef_search', %(ef_search)s, true)"

_BY_INDEX: LiteralString = (
    """
    select m.id, -(m.embedding <#> %(embedding)s) as similarity
    from memory m where m.ns = %(ns)s and """
    + ELIGIBLE
    + """
    order by m.embedding <#> %(embedding)s limit %(fan_out)s
"""
)

# `0 +` keeps the planner from the HNSW index.
_BY_SCAN: LiteralString = (
    """
    select m.id, -(m.embedding <#> %(embedding)s) as similarity
    from memory m where m.ns = %(ns)s and """
    + ELIGIBLE
    + """
    order by 0 + (m.embedding <#> %(embedding)s), m.id collate "C" limit %(fan_out)s
"""
)


class VectorRetriever:
    """HNSW with iterative scans; an exact scan where the planner finds that cheaper or the index ran dry."""

    leg = Leg.VECTOR

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def search(self, query: LegQuery) -> LegRanking:
        """The eligible memories most similar to the query; scores are cosines in [-1, 1]."""
        embedding = HalfVector(await query.embedding())
        parameters = eligibility(query.filters, as_of=query.as_of, include_superseded=query.include_superseded)
        parameters |= {"ns": query.ns, "embedding": embedding, "fan_out": query.fan_out}
        statement = _BY_SCAN if query.docs_given_out <= EXACT_UP_TO else _BY_INDEX
        details: dict[str, Any] = {"ef_search": query.ef_search}
        async with self._pool.connection() as conn:
            rows = await _nearest(conn, statement, parameters, query.ef_search)
            if statement is _BY_INDEX and len(rows) < query.fan_out:
                details["index_ran_dry"] = True
                statement = _BY_SCAN
                rows = await _nearest(conn, statement, parameters, query.ef_search)
            if query.explain:
                details["plan"] = await _plan(conn, statement, parameters)
        least = -1.0 if query.min_similarity is None else query.min_similarity
        hits = [Hit(id=memory_id, score=similarity) for memory_id, similarity in rows if similarity >= least]
        hits.sort(key=lambda hit: (-hit.score, hit.id))
        return LegRanking(hits=tuple(hits), details=details)


async def _nearest(
    conn: Connection, statement: LiteralString, parameters: dict[str, Any], ef_search: int
) -> list[tuple[Any, ...]]:
    if statement is _BY_SCAN or ef_search == DEFAULT_EF_SEARCH:
        return await (await conn.execute(statement, parameters, binary=True)).fetchall()
    # A pipeline is one transaction up to its end, which the local setting needs, and one round trip.
    async with conn.pipeline():
        await conn.execute(_SET_EF_SEARCH, {"ef_search": str(ef_search)})
        cursor = await conn.execute(statement, parameters, binary=True)
    return await cursor.fetchall()


async def _plan(conn: Connection, statement: LiteralString, parameters: dict[str, Any]) -> str:
    """Whether the planner goes through the HNSW index or scans the namespace."""
    rows = await (await conn.execute("explain (costs off) " + statement, parameters)).fetchall()
    return "hnsw" if any("memory_embedding" in row[0] for row in rows) else "exact scan"
