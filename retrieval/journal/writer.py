"""Writes journal entries in the background: a search neither waits for its entry nor fails with it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from postgres.connection import Connection
from retrieval.journal.query_log import AnsweredSearch, entry_of
from retrieval.store import query_log, shadow
from retrieval.store.namespaces import Namespace
from retrieval.store.pool import Pool
from retrieval.store.shadow import ShadowRanking
from retrieval.types.namespace import QueryLogSettings

log = logging.getLogger(__name__)

MOST_WAITING = 64
"""Most entries waiting to be written; further ones are dropped and counted."""

WRITERS = 2
"""Concurrent writes; low, because searches need the pool's connections more."""

Write = Callable[[Connection], Awaitable[None]]


class JournalWriter:
    """Writes entries in the background.

    Attributes:
        dropped: number of entries dropped because too many were waiting.
    """

    def __init__(self, pool: Pool) -> None:
        self.dropped = 0
        self._pool = pool
        self._writers = asyncio.Semaphore(WRITERS)
        self._waiting: set[asyncio.Task[None]] = set()

    def log_search(self, namespace: Namespace, searched: AnsweredSearch) -> None:
        """Log a search if the namespace has its query log enabled."""
        settings = namespace.settings.query_log
        if settings is not None:
            self._write("a search", lambda conn: _log_search(conn, namespace.ns, searched, settings))

    def log_shadow_run(
        self, namespace: Namespace, search_id: str, *, live: ShadowRanking, candidate: ShadowRanking
    ) -> None:
        """Record a candidate profile's ranking beside the live one."""
        self._write(
            "a shadow run",
            lambda conn: shadow.record(conn, namespace.ns, search_id, live=live, candidate=candidate),
        )

    async def flush(self) -> None:
        """Wait for the writes that are pending now, but not for later ones."""
        if self._waiting:
            await asyncio.wait(self._waiting.copy())

    async def aclose(self) -> None:
        """Wait for pending writes."""
        while self._waiting:
            await asyncio.wait(self._waiting)

    def _write(self, what: str, write: Write) -> None:
        if len(self._waiting) >= MOST_WAITING:
            if not self.dropped:
                log.warning("the journal falls behind: entries are dropped")
            self.dropped += 1
            return
        task = asyncio.create_task(self._written(what, write))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def _written(self, what: str, write: Write) -> None:
        try:
            async with self._writers, self._pool.connection() as conn:
                await write(conn)
        except Exception as exc:
            # its message may quote the query
            log.warning("%s was not written to the journal: %s", what, type(exc).__name__)


async def _log_search(conn: Connection, ns: int, searched: AnsweredSearch, settings: QueryLogSettings) -> None:
    key = await query_log.key(conn, ns) if "all" in settings.redact else b""
    if key is not None:  # else the namespace is gone
        await query_log.record(conn, ns, entry_of(searched, settings, key), settings)
