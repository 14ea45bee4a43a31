"""Reading the texts of an answer's memories, prefetched before the final order is known."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from postgres.connection import Connection
from postgres.prepared import PendingResult
from retrieval.answer.conversation import Conversation
from retrieval.index.snapshot import NamespaceSnapshot
from retrieval.store import memories
from retrieval.store.memories import HydratedMemory, HydratedRows
from retrieval.store.pool import Pool
from retrieval.store.visibility import seen_by
from retrieval.tasks import in_thread_if_long
from retrieval.types.search import SearchOptions


class TextReader:
    """Reads memories of one namespace for one query, on one connection, taken when needed and returned on exit."""

    def __init__(
        self, pool: Pool, snapshot: NamespaceSnapshot, request: SearchOptions, conversation: Conversation | None = None
    ) -> None:
        """Prepare to read for a request, possibly in a conversation; takes no connection yet.

        The request's filters apply to memories that are updated during the search.
        """
        self._pool = pool
        self._snapshot = snapshot
        self._ns, self._slots = snapshot.namespace.ns, snapshot.index.memories.slots
        self._request = request
        self._excluded = frozenset(request.exclude.ids)
        self._conversation = conversation or Conversation()
        self.said_before: dict[str, None] = {}
        """Ids of memories that the conversation already contains, best first."""
        self._stack = AsyncExitStack()
        self._conn: Connection | None = None
        self._pending: PendingResult | None = None
        self._likely: frozenset[int] = frozenset()
        self._prefetched: HydratedRows | None = None

    async def __aenter__(self) -> TextReader:
        return self

    async def __aexit__(self, *raised: Any) -> None:
        """Return the connection, with no results pending; raises like a connection of the pool."""
        await self._stack.__aexit__(*raised)

    async def prefetch(self, docs: Collection[int]) -> None:
        """Send the statement for likely memories without waiting for its result; call it at most once."""
        if not docs:
            return
        ordinals = self._slots.to_ordinal_list([*docs])
        self._pending = await memories.hydrate(await self._connection(), self._ns, ordinals)
        self._stack.push_async_callback(self._pending.drop)
        self._likely = frozenset(ordinals)

    async def read(self, docs: Sequence[int], ids: Sequence[str]) -> list[HydratedMemory | None]:
        """Read the content of memories, given by slots and ids; for one updated during the search, its new version.

        Returns None for a memory that was deleted or must not be shown: it has expired, or is excluded or in the
        conversation.
        """
        ordinals = self._slots.to_ordinal_list(docs)
        if self._pending is not None and self._prefetched is None:
            self._prefetched = HydratedRows(await self._pending.rows())
        others = [ordinal for ordinal in ordinals if ordinal not in self._likely]
        read = None
        if others:
            read = HydratedRows(await (await memories.hydrate(await self._connection(), self._ns, others)).rows())
        sources = [self._prefetched if ordinal in self._likely else read for ordinal in ordinals]
        rows: list[HydratedMemory | None] = []
        for ordinal, source in zip(ordinals, sources, strict=True):
            rows.append(None if source is None else source.get(ordinal))
            if len(rows) % memories.DECODED_AT_ONCE == 0:
                await asyncio.sleep(0)
        # An ordinal identifies one memory, unless the database was restored and issued it twice.
        updated = [id_ for id_, row in zip(ids, rows, strict=True) if row is None or row.id != id_]
        now: Mapping[str, HydratedMemory] = {}
        if updated:
            now = await memories.hydrate_by_id(await self._connection(), self._ns, updated, seen_by(self._request))
        found = [row if row is not None and row.id == id_ else now.get(id_) for id_, row in zip(ids, rows, strict=True)]
        return [row if row is not None and await self._may_be_shown(row) else None for row in found]

    async def _may_be_shown(self, memory: HydratedMemory) -> bool:
        """Whether a memory is unexpired, not excluded and not in the conversation."""
        if memory.expires_at is not None and self._request.as_of is None and memory.expires_at <= self._snapshot.time():
            return False
        if memory.id in self._excluded:
            return False
        holds = partial(self._conversation.holds, memory.text, memory.speaker)
        if len(self._conversation) and await in_thread_if_long(len(memory.text), holds):
            self.said_before[memory.id] = None
            return False
        return True

    async def _connection(self) -> Connection:
        if self._conn is None:
            self._conn = await self._stack.enter_async_context(self._pool.connection())
        return self._conn
