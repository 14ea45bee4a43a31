"""API operations on the entity graph of a namespace."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise

import numpy as np
from msgspec.structs import asdict
from numpy.typing import NDArray

from graph.analytics import Weighted, centrality, communities, graphml, shortest_paths
from graph.names import normalize
from graph.store import Alias
from graph.visible import MAX_EVIDENCE, STATED_STRENGTH, Relation, VisibleGraph, co_mentions
from retrieval.entities.pages import aliases_of, entity_page
from retrieval.entities.view import EntityView, entity_code, entity_number
from retrieval.errors import Collided, InvalidInput
from retrieval.ids import uuid7
from retrieval.index.registry import IndexRegistry
from retrieval.ingest.graphs import TextsByAlias
from retrieval.legs.base import SearchView
from retrieval.store import entities, namespaces
from retrieval.store.pool import Pool
from retrieval.tasks import retried
from retrieval.types.entity import (
    AliasChange,
    EntityAliases,
    EntityGraph,
    EntityList,
    EntityPage,
    EntityPath,
    EntityPaths,
    GraphNode,
    MergeReceipt,
    Neighbor,
    Neighborhood,
)
from retrieval.types.search import SearchOptions
from retrieval.validation import check_storable

DESCRIBED_AT_ONCE = 1_000

MAX_DESCRIBED = 50_000
"""Most entities whose types are read to find the names among them."""

MAX_EDGES = 5_000
"""Most edges of the whole graph from memories that mention both ends, the heaviest first."""

MAX_DOCS = 20_000
"""Number of latest memories searched for entities met together in the whole graph."""

EVERYTHING = SearchOptions()
"""No limit on which memories count, in the form of a search's options."""

_CURSOR = re.compile(r"([0-9]{1,10})\.([0-9a-f]{16})")


class EntityService:
    """Entities of all namespaces; every method raises `NotFound` if the namespace, or an entity, does not exist."""

    def __init__(self, pool: Pool, indexes: IndexRegistry) -> None:
        self._pool = pool
        self._indexes = indexes

    @asynccontextmanager
    async def _view(self, name: str, options: SearchOptions, *, words: bool = False) -> AsyncIterator[EntityView]:
        """The part of a namespace's graph that a request may see now."""
        namespaces.check_name(name)
        check_storable(options)
        snapshot = await self._indexes.current(name, lambda _: (), options.filters.metadata)
        seen = SearchView.from_request(snapshot, options)  # before anything else is awaited
        graph = VisibleGraph(snapshot.index.graph, seen.eligible)
        async with self._pool.connection() as conn:
            yield EntityView(conn, snapshot, seen, graph, words)

    async def list(
        self,
        name: str,
        options: SearchOptions = EVERYTHING,
        *,
        q: str | None = None,
        types: Sequence[str] | None = None,
        words: bool = False,
        cursor: str | None = None,
        limit: int = 100,
    ) -> EntityList:
        """A page of the entities that visible memories mention, the most mentioned first.

        `q` is a part of the name or an alias. Words, dates and identifiers are listed only with `q`, `types` or
        `words`. Raises InvalidInput for a blank `q`, or a cursor that is not from an earlier page.
        """
        part = None if q is None else normalize(q)
        if part == "":
            raise InvalidInput("must have a visible character", loc=("q",))
        any_type = words or part is not None or bool(types)
        async with self._view(name, options, words=any_type) as view:
            found, counts = _after(view, cursor)
            fits = np.ones(len(found), np.bool_)
            if part is not None:
                fits &= np.isin(found, view.roots(await entities.named(view.conn, view.ns, part)))
            if types:
                fits &= np.isin(found, await entities.typed(view.conn, view.ns, types))
            shown, _ = await _first_shown(view, found[fits], counts[fits], limit + 1)
        last = shown[limit - 1] if len(shown) > limit else None
        return EntityList(
            entities=[view.summary(entity, mentions) for entity, mentions in shown[:limit]],
            next_cursor=None if last is None else f"{last[1]}.{entity_code(last[0])}",
        )

    async def page(
        self,
        name: str,
        entity_id: str,
        options: SearchOptions = EVERYTHING,
        *,
        words: bool = False,
        cursor: str | None = None,
        limit: int = 20,
    ) -> EntityPage:
        """The page of an entity, from visible memories; `cursor` and `limit` page through its memories.

        Raises InvalidInput if the cursor is not from an earlier page.
        """
        async with self._view(name, options, words=words) as view:
            return await entity_page(view, await view.entity(entity_id), cursor=cursor, limit=limit)

    async def neighbors(
        self,
        name: str,
        entity_id: str,
        options: SearchOptions = EVERYTHING,
        *,
        hops: int = 1,
        limit: int = 50,
        words: bool = False,
    ) -> Neighborhood:
        """The entities around one, and the edges among them that were read."""
        async with self._view(name, options, words=words) as view:
            start = await view.entity(entity_id)
            reached = await view.expand(start.entity, hops=hops)
            ranked = sorted((hop, -strength, entity) for entity, (hop, strength) in reached.items())[1:]
            neighbors = [
                Neighbor(**asdict(view.summary(entity)), hops=hop, strength=round(-less, 6))
                for hop, less, entity in ranked[:limit]
            ]
            kept = {start.entity, *(entity for _, _, entity in ranked[:limit])}
            ties = [tie for pair, tie in view.ties.items() if kept.issuperset(pair)]
            return Neighborhood(
                entity=view.summary(start.entity),
                neighbors=neighbors,
                edges=view.edges(sorted(ties, key=lambda tie: (-tie.strength, tie.entity, tie.other))),
                truncated=view.is_cut or len(ranked) > limit,
            )

    async def paths(
        self,
        name: str,
        source_id: str,
        target_id: str,
        options: SearchOptions = EVERYTHING,
        *,
        max_hops: int = 3,
        limit: int = 3,
        words: bool = False,
    ) -> EntityPaths:
        """The shortest paths between two entities; raises InvalidInput if they are the same."""
        async with self._view(name, options, words=words) as view:
            source, target = (await view.entity(source_id)).entity, (await view.entity(target_id)).entity
            if source == target:
                raise InvalidInput("must be another entity than the source", loc=("target",))
            ends = source, target
            await view.expand(source, hops=(max_hops + 1) // 2, always=ends)
            await view.expand(target, hops=max(max_hops // 2, 1), always=ends)
            edges: list[Weighted] = [(*pair, tie.strength) for pair, tie in view.ties.items()]
            found = await asyncio.to_thread(shortest_paths, edges, source, target, max_hops=max_hops, most=limit)
            paths = []
            for path in found:
                steps = [view.ties[min(pair), max(pair)] for pair in pairwise(path)]
                paths.append(EntityPath(entities=[view.summary(each) for each in path], edges=view.edges(steps)))
            return EntityPaths(paths=paths, truncated=view.is_cut)

    async def graph(
        self, name: str, options: SearchOptions = EVERYTHING, *, limit: int = 200, words: bool = False
    ) -> EntityGraph:
        """The most mentioned entities with their communities and centrality, and the edges between them."""
        async with self._view(name, options, words=words) as view:
            found, counts = view.graph.counts()
            shown, is_cut = await _first_shown(view, found[:MAX_DESCRIBED], counts[:MAX_DESCRIBED], limit)
            numbers = [entity for entity, _ in shown]
            relations, relations_cut = view.graph.relations_among(numbers)
            docs_of = [view.graph.docs_of(entity) for entity in numbers]
            met, met_cut = await asyncio.to_thread(_met, numbers, docs_of)
            weighted = _weighted(met, relations)
            community = await asyncio.to_thread(communities, numbers, weighted)
            rank = await asyncio.to_thread(centrality, numbers, weighted)
            nodes = [
                GraphNode(
                    **asdict(view.summary(entity, mentions)),
                    community=community[entity],
                    centrality=round(rank[entity], 6),
                )
                for entity, mentions in shown
            ]
            edges = [view.edge(one, None, other, count, docs) for one, other, count, docs in met]
            return EntityGraph(
                nodes=nodes,
                edges=[*map(view.stated_edge, relations), *edges],
                truncated=is_cut or relations_cut or met_cut or len(found) > MAX_DESCRIBED,
            )

    async def graphml(
        self, name: str, options: SearchOptions = EVERYTHING, *, limit: int = 200, words: bool = False
    ) -> bytes:
        """What `graph` returns, as GraphML; an edge without a type is `met_with`."""
        found = await self.graph(name, options, limit=limit, words=words)
        nodes = [
            (node.id, {name: value for name, value in asdict(node).items() if name != "id"}) for node in found.nodes
        ]
        edges = [
            (edge.source, edge.target, {"type": edge.type or "met_with", "memories": edge.memories})
            for edge in found.edges
        ]
        return await asyncio.to_thread(graphml, nodes, edges)

    async def change_aliases(self, name: str, entity_id: str, change: AliasChange) -> EntityAliases:
        """Add and remove aliases given by hand; returns all aliases of the entity.

        Raises:
            InvalidInput: nothing to do, or an alias without a visible character.
            Conflict: an alias is the name of another entity.
        """
        check_storable(change)
        if not (change.add or change.remove):
            raise InvalidInput("give aliases to add or to remove", loc=("add",))
        async with self._view(name, EVERYTHING) as view:
            root = (await view.entity(entity_id)).entity

        async def attempt() -> None:
            async with namespaces.opened(self._pool, name) as (conn, found), conn.transaction():
                keys = [*map(normalize, change.remove)]
                texts = TextsByAlias(conn, found.ns, keys)
                await texts.read([Alias(key, root) for key in keys])
                former = await entities.change_aliases(conn, found.ns, root, added=change.add, removed=change.remove)
                await texts.rewrite_mentions(former)

        await retried(attempt, (Collided,))
        async with self._view(name, EVERYTHING) as view:
            stored = (await view.described({root})).get(root)  # gone if only its alias was left
            merged = await entities.merged_into(view.conn, view.ns, root)
            aliases = [] if stored is None else await aliases_of(view, stored, merged)
            return EntityAliases(id=entity_code(root), aliases=aliases)

    async def merge(self, name: str, entity_id: str, into: str) -> MergeReceipt:
        """Show an entity as another one, also in searches, until that is undone; raises Conflict if they are one."""
        async with self._view(name, EVERYTHING) as view:
            entity, target = await view.entity(entity_id), await view.entity(into)
        merge_id = uuid7()
        async with namespaces.opened(self._pool, name) as (conn, found), conn.transaction():
            await entities.merge(conn, found.ns, entity.entity, target.entity, merge_id)
        async with self._view(name, EVERYTHING) as view:
            root = await view.entity(into)
            return MergeReceipt(merge_id=merge_id, entity=view.summary(root.entity))

    async def separate(self, name: str, merge_id: str) -> None:
        """Undo a merge; raises NotFound if there is none with that id."""
        check_storable(merge_id, ("merge_id",))

        async def attempt() -> None:
            async with namespaces.opened(self._pool, name) as (conn, found), conn.transaction():
                await entities.separate(conn, found.ns, merge_id)

        await retried(attempt, (Collided,))


def _after(view: EntityView, cursor: str | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The entities after the page that returned the cursor, with their mentions."""
    found, counts = view.graph.counts()
    if cursor is None:
        return found, counts
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidInput("is not a cursor that an earlier page gave", loc=("cursor",))
    count, entity = int(match[1]), entity_number(match[2]) or 0
    later = (counts < count) | ((counts == count) & (found > entity))
    return found[later], counts[later]


async def _first_shown(
    view: EntityView, found: NDArray[np.int64], counts: NDArray[np.int64], limit: int
) -> tuple[list[tuple[int, int]], bool]:
    """The first entities that are shown, with their mentions; and whether there may be more."""
    shown: list[tuple[int, int]] = []
    for first in range(0, len(found), DESCRIBED_AT_ONCE):
        some = found[first : first + DESCRIBED_AT_ONCE].tolist()
        known = await view.shown(some)
        mentions = counts[first : first + DESCRIBED_AT_ONCE].tolist()
        shown += [(entity, count) for entity, count in zip(some, mentions, strict=True) if entity in known]
        if len(shown) > limit:
            break
    return shown[:limit], len(shown) > limit


_Met = tuple[int, int, int, list[int]]
"""A pair of entities with how many memories mention both, and the latest of these."""


def _met(entities_: Sequence[int], docs_of: Sequence[NDArray[np.int64]]) -> tuple[list[_Met], bool]:
    """The pairs most often mentioned together; whether there are more."""
    counts, is_cut = co_mentions(docs_of, most_docs=MAX_DOCS)
    ones, others = np.nonzero(np.triu(counts, 1))
    weights = counts[ones, others]
    order = np.lexsort((others, ones, -weights))
    edges = []
    for pair in order[:MAX_EDGES].tolist():
        one, other = int(ones[pair]), int(others[pair])
        latest = np.intersect1d(docs_of[one], docs_of[other], assume_unique=True)[: -MAX_EVIDENCE - 1 : -1]
        edges.append((entities_[one], entities_[other], int(weights[pair]), latest.tolist()))
    return edges, is_cut or len(order) > MAX_EDGES


def _weighted(met: Iterable[_Met], relations: Iterable[Relation]) -> list[Weighted]:
    """Undirected edges: a shared memory weighs 1, a stated relation as much as in a tie."""
    weights: dict[tuple[int, int], float] = defaultdict(float)
    for one, other, count, _ in met:
        weights[min(one, other), max(one, other)] += count
    for each in relations:
        if each.source != each.target:
            ends = min(each.source, each.target), max(each.source, each.target)
            weights[ends] += STATED_STRENGTH * len(each.docs)
    return [(one, other, weight) for (one, other), weight in weights.items()]
