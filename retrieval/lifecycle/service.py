"""Operations on memories already written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from functools import partial

from graph.names import entity_id, normalize
from graph.store import Alias
from retrieval.errors import Collided, Conflict, InvalidInput, NotFound
from retrieval.ids import uuid7
from retrieval.ingest.graphs import TextsByAlias
from retrieval.ingest.service import Ingest
from retrieval.lifecycle.export import MOST_WRITTEN, ExportHeader, header_line, memory_lines
from retrieval.store import entities, export, memories, namespaces
from retrieval.store.mentions import family_of, said_and_mentioned
from retrieval.store.pool import Pool, connect, translated
from retrieval.tasks import retried
from retrieval.types.memory import ForgetReceipt, ForgetRequest, MemoryHistory
from retrieval.validation import check_storable

MOST_HISTORY = 1_000
"""Most memories of one history."""

MOST_EXPORTS = 4
"""Concurrent exports; each has a connection outside the pool, which a slow reader holds."""


class LifeCycle:
    """Exports, forgetting, history, and completing an import."""

    def __init__(self, pool: Pool, ingest: Ingest, url: str) -> None:
        """Use connections of `pool`, write with `ingest`, and open a connection to `url` for each export."""
        self._pool = pool
        self._ingest = ingest
        self._url = url
        self._exporting = asyncio.Semaphore(MOST_EXPORTS)

    async def export(self, namespace: str) -> AsyncGenerator[bytes]:
        """A namespace as JSON lines, in pieces: a header, then all memories in the order of insertion.

        It is read as of the first piece, over a separate connection, which a slow reader may hold. It waits while
        `MOST_EXPORTS` others are running.

        Raises:
            NotFound: there is no such namespace; before the first piece.
            StoreUnavailable: the database cannot be reached or is lost.
        """
        with translated():
            async with self._exporting, await connect(self._url) as conn, export.snapshot(conn, namespace) as found:
                header = ExportHeader(
                    trivet_export=1,
                    memories=await export.count(conn, found.ns),
                    written=min(found.next_doc, MOST_WRITTEN),
                    settings=found.settings,
                    aliases=await entities.aliases_by_hand(conn, found.ns),
                    merges=await entities.merges(conn, found.ns),
                )
                yield header_line(header)
                async for rows in export.rows(conn, found.ns):
                    yield memory_lines(rows)

    async def forget(self, namespace: str, request: ForgetRequest) -> ForgetReceipt:
        """Delete what a speaker said, or what mentions an entity, in one transaction.

        The entity's aliases and merges made by hand are deleted afterwards, as they are needed to find it.

        Raises:
            NotFound: there is no such namespace.
            InvalidInput: neither a speaker nor an entity is given, or both are, or the entity has no visible character.
        """
        check_storable(request)
        if (request.speaker is None) == (request.entity is None):
            raise InvalidInput("give either a speaker or an entity", loc=("speaker",))
        if request.entity is not None and not normalize(request.entity):
            raise InvalidInput("must have a visible character", loc=("entity",))
        name = request.speaker or request.entity or ""
        async with namespaces.opened(self._pool, namespace) as (conn, found), conn.transaction():
            await conn.execute(namespaces.ALLOW_LONG_STATEMENTS)  # all texts are searched for the name
            family = await family_of(conn, found.ns, name)
            said, mentioned = await said_and_mentioned(conn, found.ns, name, family=family, speaker=request.speaker)
        if request.speaker is None:
            said, mentioned = mentioned, ()
        if said and not request.dry_run:
            await self._ingest.delete_many(namespace, ids=said)

        async def forget_by_hand() -> None:
            async with self._pool.connection() as conn, conn.transaction():
                former = await entities.forget_by_hand(conn, found.ns, family)
                # Texts written since the deletion may mention the entity by a name given by hand.
                await TextsByAlias(conn, found.ns, {alias.key for alias in former}).rewrite_mentions(former)

        if request.entity is not None and not request.dry_run:
            await retried(forget_by_hand, (Collided,))
        return ForgetReceipt(deleted=list(said), mentioned_by=list(mentioned))

    async def history(self, namespace: str, memory_id: str) -> MemoryHistory:
        """A memory with those it superseded and those that superseded it, in turn; at most `MOST_HISTORY`.

        Raises NotFound if there is no such namespace or memory.
        """
        check_storable(memory_id, ("id",))
        async with namespaces.opened(self._pool, namespace) as (conn, found):
            return MemoryHistory(memories=await memories.history(conn, found, memory_id, most=MOST_HISTORY))

    async def complete_import(self, namespace: str, header: ExportHeader) -> list[str]:
        """Restore an imported namespace's count of memories ever written, and its merges and aliases made by hand.

        Returns those that could not be restored, as no memory mentions the entity. Raises NotFound if there is no such
        namespace.
        """
        async with namespaces.opened(self._pool, namespace) as (conn, found):
            await namespaces.count_written(conn, found.ns, header.written)
        undone = []
        for key, target in header.merges:
            async with self._pool.connection() as conn, conn.transaction():
                try:
                    await entities.merge(conn, found.ns, entity_id(key), entity_id(target), uuid7())
                except NotFound:
                    undone.append(f"merge of {key!r} into {target!r}")
                except Conflict:  # a repeated import
                    continue
        return undone + await retried(partial(self._name_again, found.ns, header.aliases), (Collided,))

    async def _name_again(self, ns: int, aliases: Sequence[tuple[str, str]]) -> list[str]:
        """Give entities their aliases; returns those that could not be given."""
        undone = []
        async with self._pool.connection() as conn, conn.transaction():
            for key, alias in aliases:
                try:
                    await entities.change_aliases(
                        conn, ns, entity_id(key), added=[alias], removed=(), check_names=False
                    )
                except NotFound:
                    undone.append(f"alias {alias!r} of {key!r}")
            # Texts written after an alias was given mention its entity; here they came first and mention their own.
            keys = {normalize(alias) for _, alias in aliases}
            await TextsByAlias(conn, ns, keys).rewrite_mentions({Alias(key, entity_id(key)) for key in keys})
        return undone
