"""Looking up a query's entities, concurrently with the freshness check of its namespace."""

from __future__ import annotations

import asyncio

from cachetools import LRUCache

from graph.linking import look_up
from graph.resolution import EntityMatches
from retrieval.index.namespace_index import NamespaceIndex
from retrieval.store.pool import Pool

_MOST_KEPT = 128
"""Cached lookups, some 10 kB each."""


class EntityLookup:
    """Looks up the entities that queries may name; results are cached until their namespace changes."""

    def __init__(self, pool: Pool) -> None:
        """Use connections of `pool`; the cache starts empty."""
        self._pool = pool
        self._kept: LRUCache[tuple[int, int, str], EntityMatches] = LRUCache(_MOST_KEPT)

    def remembered(self, index: NamespaceIndex, text: str) -> EntityMatches | None:
        """The cached result for the current state of an index, if any."""
        return self._kept.get((index.serial, index.changed, text))

    async def look_up(self, index: NamespaceIndex, text: str) -> EntityMatches:
        """Look up the current entities; they may be newer than the index, which is then about to change."""
        key = index.serial, index.changed, text
        async with self._pool.connection() as conn:
            matches = self._kept[key] = await look_up(conn, index.ns, text)
        return matches


class PendingLookup:
    """A query's entity lookup; starts at once if the namespace is loaded, else when awaited."""

    def __init__(self, entity_lookup: EntityLookup, text: str, *, ahead: NamespaceIndex | None = None) -> None:
        """Start the lookup if `ahead` is the expected index of the namespace and has no cached result."""
        self._entity_lookup = entity_lookup
        self._text = text
        self._ns = None if ahead is None else ahead.ns
        self._task: asyncio.Task[EntityMatches] | None = None
        if ahead is not None and entity_lookup.remembered(ahead, text) is None:
            self._task = asyncio.create_task(self._begin(ahead))

    async def __call__(self, index: NamespaceIndex) -> EntityMatches:
        """The matches in the namespace of an index that has just been brought up to date."""
        if self._task is not None and index.ns == self._ns:
            return await self._task
        return self._entity_lookup.remembered(index, self._text) or await self._entity_lookup.look_up(index, self._text)

    async def _begin(self, index: NamespaceIndex) -> EntityMatches:
        await asyncio.sleep(0)  # let the freshness check, which everything waits for, send its statement first
        return await self._entity_lookup.look_up(index, self._text)

    def __enter__(self) -> PendingLookup:
        return self

    def __exit__(self, *_: object) -> None:
        """Cancel the lookup if it is still running; its failure, if any, was raised where it was awaited."""
        if self._task is not None and not self._task.cancel() and not self._task.cancelled():
            self._task.exception()
