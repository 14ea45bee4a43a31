"""Finding the entities that a query is about."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from cachetools import LRUCache

from graph.linking import complete, possible_names, to_complete
from graph.resolution import MENTIONS_CAP, Seed, resolve
from retrieval.index.namespace_index import NamespaceIndex
from retrieval.store.pool import Pool

_CACHE_SIZE = 1_024
"""Queries whose entities are cached, some 2 kB each; as many as query embeddings by default."""


class EntityLookup:
    """Finds the entities that queries are about; caches them until the namespace changes."""

    def __init__(self, pool: Pool) -> None:
        """Use connections of `pool`; the cache starts empty."""
        self._pool = pool
        self._cache: LRUCache[tuple[int, int, str, int], Sequence[Seed]] = LRUCache(_CACHE_SIZE)

    async def seeds(self, index: NamespaceIndex, text: str, memories: int) -> Sequence[Seed]:
        """The entities that a query is about; `memories` is the total that their rarity is measured against."""
        changed = index.changed
        key = (index.serial, changed, text, memories)
        seeds = self._cache.get(key)
        if seeds is None:
            spelled = possible_names(text)
            found = index.named_in(spelled)
            prefixes, acronyms = to_complete(spelled, found)
            if prefixes or acronyms:  # only these need the database
                async with self._pool.connection() as conn:
                    found += await complete(conn, index.ns, prefixes, acronyms)
            seeds = resolve(spelled, found, partial(index.mentions, cap=MENTIONS_CAP), memories)
            if index.changed == changed:  # otherwise the result may already be outdated
                self._cache[key] = seeds
        return seeds
