"""The index of a namespace, loaded from the test's own database, for tests of legs and walks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, LiteralString

import numpy as np
from msgspec import structs
from numpy.typing import NDArray
from psycopg import AsyncConnection

from graph import store
from graph.adjacency import Adjacency, read_edges
from graph.graph_rows import DocGraph
from retrieval.index.query_vectors import QueryVectors
from retrieval.index.registry import IndexRegistry
from retrieval.legs.base import LegQuery, LegRanking, Retriever, SearchView
from retrieval.legs.query_terms import QueryTerms
from retrieval.profiles.profile import DEFAULT, Profile
from retrieval.store import namespaces
from retrieval.store.pool import Pool
from retrieval.types.namespace import RuleInput
from retrieval.types.search import Filters, Leg, SearchRequest

_MEMORIES: LiteralString = """
    insert into memory (ns, doc, id, kind, text, created_at, tags, metadata, entities, relations, fingerprint,
                        length, embedding, traits)
    select %(ns)s, d, 'm' || d, 'memory', 'text', '2024-01-01Z', array['t' || d], '{}', '[]', '[]', '', 1,
           array_fill(0, array[384])::real[]::halfvec, 0
    from unnest(%(docs)s::integer[]) as d
"""
_ELIGIBLE: LiteralString = "select m.doc from memory m where m.ns = %(ns)s and "


async def no_embedding() -> NDArray[np.float32]:
    """For a leg that needs none."""
    raise AssertionError("asked for an embedding")


async def no_others() -> Mapping[Leg, LegRanking]:
    """For a leg that runs alone."""
    return {}


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    """A query to one leg: the namespace, the time, and the fields of `LegQuery` and its request."""

    text: str
    namespace: str = "n"
    asked_at: datetime | None = None
    embedding: Callable[[], Awaitable[NDArray[np.float32]]] = no_embedding
    filters: Filters = field(default_factory=Filters)
    as_of: datetime | None = None
    include_superseded: bool = False
    fan_out: int = 40
    ef_search: int = 64
    max_hops: int = 2
    min_similarity: float | None = None
    explain: bool = False
    profile: Profile = DEFAULT
    rules: Sequence[RuleInput] = ()
    other_rankings: Callable[[], Awaitable[Mapping[Leg, LegRanking]]] = no_others


class Indexed:
    """The database as one server process sees it; missing namespaces are created when queried."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.indexes = IndexRegistry(pool, most_bytes=2**30)

    async def query(self, ask: Ask) -> LegQuery:
        """The query as the pipeline passes it to a leg."""
        async with self._pool.connection() as conn:
            found = await namespaces.create(conn, await namespaces.find_or_new(conn, ask.namespace))
        asked_at = ask.asked_at or ask.as_of or datetime.now(UTC)
        query_terms = QueryTerms.from_query(ask.text, found.settings.language, asked_at=asked_at)
        snapshot = await self.indexes.current(ask.namespace, lambda _: [*query_terms.terms], ask.filters.metadata)
        settings = structs.replace(snapshot.namespace.settings, rules=list(ask.rules))
        snapshot = structs.replace(snapshot, namespace=snapshot.namespace._replace(settings=settings))
        snapshot = query_terms.with_period_docs(snapshot)
        request = SearchRequest(
            query=ask.text,
            filters=ask.filters,
            as_of=ask.as_of,
            include_superseded=ask.include_superseded,
            ef_search=ask.ef_search,
            max_hops=ask.max_hops,
            min_similarity=ask.min_similarity,
            explain=ask.explain,
        )
        return LegQuery(
            request=request,
            snapshot=snapshot,
            view=SearchView.from_request(snapshot, request),
            query_terms=query_terms,
            embedding=ask.embedding,
            fan_out=ask.fan_out,
            vectors=QueryVectors(self._pool, snapshot.index),
            profile=ask.profile,
            other_rankings=ask.other_rankings,
        )

    async def search(self, leg: Retriever, ask: Ask) -> LegRanking:
        """A leg's answer."""
        return await leg.search(await self.query(ask))


async def add_graphs(conn: AsyncConnection[Any], ns: int, graphs: Sequence[DocGraph]) -> None:
    """Store memories that only add this to the graph; each has a tag: t and its ordinal."""
    await conn.execute(_MEMORIES, {"ns": ns, "docs": [graph.doc for graph in graphs]})
    await store.write(conn, ns, graphs)


async def graph_of(
    conn: AsyncConnection[Any], ns: int, eligible: LiteralString = "true", **params: Any
) -> tuple[Adjacency, NDArray[np.bool_]]:
    """The graph of a namespace, and which memories meet a condition in SQL over `memory m`, by ordinal."""
    edges, relations = await read_edges(conn, ns, roots={})
    rows = await (await conn.execute(_ELIGIBLE + "(" + eligible + ")", {"ns": ns, **params})).fetchall()
    docs = [doc for (doc,) in rows]
    last = max([-1, *docs, *edges[1].tolist(), *(relation.doc for relation in relations)])
    mask = np.zeros(last + 1, np.bool_)
    mask[docs] = True
    return Adjacency(edges, relations), mask
