"""Finding the entities that a query is about, concurrently with the freshness check of its namespace."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from cachetools import LRUCache

from graph.linking import look_up
from graph.resolution import MENTIONS_CAP, EntityMatches, Seed, resolve
from retrieval.index.namespace_index import NamespaceIndex
from retrieval.store.pool import Pool

_MOST_KEPT = 1_024
"""Queries whose entities are cached, some 2 kB each; as many as query embeddings by default."""


class _State(NamedTuple):
    """A query in a state of an index, which no later change leaves the same."""

    serial: int
    changed: int
    text: str

    @classmethod
    def of(cls, index: NamespaceIndex, text: str) -> _State:
        return cls(index.serial, index.changed, text)


class _LookedUp(NamedTuple):
    """The entities found for a query, and the state of the index before they were looked up."""

    state: _State
    matches: EntityMatches


class _Resolved(NamedTuple):
    """The entities that a query is about, and the number of memories by which their rarity was told."""

    memories: int
    seeds: Sequence[Seed]


class EntityLookup:
    """Finds the entities that queries are about; they are cached until their namespace changes."""

    def __init__(self, pool: Pool) -> None:
        """Use connections of `pool`; the cache starts empty."""
        self._pool = pool
        self._kept: LRUCache[_State, _Resolved] = LRUCache(_MOST_KEPT)

    def remembered(self, index: NamespaceIndex, text: str) -> _Resolved | None:
        """The cached result for the current state of an index, if any."""
        return self._kept.get(_State.of(index, text))

    async def look_up(self, index: NamespaceIndex, text: str) -> _LookedUp:
        """Look up the current entities; they may be newer than the index, which is then about to change."""
        state = _State.of(index, text)
        async with self._pool.connection() as conn:
            return _LookedUp(state, await look_up(conn, index.ns, text))

    def resolve(self, index: NamespaceIndex, looked_up: _LookedUp, memories: int) -> Sequence[Seed]:
        """Those that the query is about, in an index that is up to date; `memories` as for `graph.resolution`."""
        seeds = resolve(looked_up.matches, partial(index.graph.mentions, cap=MENTIONS_CAP), memories)
        if looked_up.state == _State.of(index, looked_up.state.text):  # else it may lack what has changed since
            self._kept[looked_up.state] = _Resolved(memories, seeds)
        return seeds


class PendingLookup:
    """A query's entity lookup; starts at once if the namespace is loaded, else when awaited."""

    def __init__(self, entity_lookup: EntityLookup, text: str, *, ahead: NamespaceIndex | None = None) -> None:
        """Start the lookup if `ahead` is the expected index of the namespace and has no cached result."""
        self._entity_lookup = entity_lookup
        self._text = text
        self._ns = None if ahead is None else ahead.ns
        self._task: asyncio.Task[_LookedUp] | None = None
        if ahead is not None and entity_lookup.remembered(ahead, text) is None:
            self._task = asyncio.create_task(self._begin(ahead))

    async def __call__(self, index: NamespaceIndex, memories: int) -> Sequence[Seed]:
        """The entities that the query is about, in an index that has just been brought up to date."""
        if self._task is not None and index.ns == self._ns:
            looked_up = await self._task
        else:
            remembered = self._entity_lookup.remembered(index, self._text)
            if remembered is not None and remembered.memories == memories:  # rejected ones count, and change no index
                return remembered.seeds
            looked_up = await self._entity_lookup.look_up(index, self._text)
        return self._entity_lookup.resolve(index, looked_up, memories)

    async def _begin(self, index: NamespaceIndex) -> _LookedUp:
        await asyncio.sleep(0)  # let the freshness check, which everything waits for, send its statement first
        return await self._entity_lookup.look_up(index, self._text)

    def __enter__(self) -> PendingLookup:
        return self

    def __exit__(self, *_: object) -> None:
        """Cancel the lookup if it is still running; its failure, if any, was raised where it was awaited."""
        if self._task is not None and not self._task.cancel() and not self._task.cancelled():
            self._task.exception()
