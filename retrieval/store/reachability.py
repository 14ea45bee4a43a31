"""Tells a lost database from one whose connections are merely all in use."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import psycopg

from postgres.connection import Connection
from retrieval.errors import StoreUnavailable
from retrieval.tasks import cancel

LOOK_INTERVAL_S = 0.5
"""How often slow statements are checked for, and a lost database is retried."""

SLOW_S = 0.25
"""A statement or a wait for a connection that takes longer triggers a check whether the database still answers."""

ANSWER_TIMEOUT_S = 1.0
"""How long the database may take to accept a connection, or three times what it took when the pool was opened."""

STALL_S = 0.25
"""An event loop that is late by more than this was busy itself, so a timeout says nothing about the database."""

log = logging.getLogger(__name__)


class Reachability:
    """Whether the database of a pool answers; when in doubt, tries to open one more connection.

    Callers wait for a busy pool, but not for a lost database. It is lost if it refuses the connection while no caller
    holds one that could be returned and no idle one answers, or if it does not answer at all. Then waiting callers fail
    at once, and if there was no answer, so do callers waiting for rows. After a refusal a new caller triggers another
    attempt, so that it succeeds as soon as the database is back; while there is no answer, it fails at once.

    Attributes:
        losses: how often the database was lost. Connections opened before the last loss are useless.
        is_served: set by the pool: whether an idle connection of it still answers.
    """

    def __init__(self, connect: Callable[[], Awaitable[Connection]]) -> None:
        """`connect` opens a connection and raises StoreUnavailable if that fails."""
        self.losses = 0
        self.is_served: Callable[[], Awaitable[bool]]
        self._connect = connect
        self._usual_s = 0.0
        self._answered = 0.0
        self._is_silent = False
        self._is_back = asyncio.Event()
        self._is_back.set()
        self._recheck_requested = asyncio.Event()
        self._waiting: dict[asyncio.Timeout, float] = {}
        self._in_use: dict[Connection, float] = {}
        self._logged: set[str] = set()

    @property
    def is_lost(self) -> bool:
        """Whether the database did not accept the last connection."""
        return not self._is_back.is_set()

    async def check(self) -> None:
        """Raise StoreUnavailable unless the database is reachable, or a new attempt succeeds."""
        if self._is_silent:
            raise StoreUnavailable("the database does not answer")
        if self.is_lost:
            self.recheck()
            async with self.waiting(), asyncio.timeout(2 * self.limit_s):
                await self._is_back.wait()

    def recheck(self) -> None:
        """Check the database now, because a connection of the pool was closed."""
        self._recheck_requested.set()

    def use(self, connection: Connection) -> None:
        """Record that a caller holds a connection."""
        self._in_use[connection] = time.monotonic()

    def end_use(self, connection: Connection, *, is_answered: bool) -> None:
        """Record that the caller returned it, and whether all its statements were answered."""
        self._in_use.pop(connection, None)
        if connection.closed:
            self.recheck()
        elif is_answered:
            self._answered = time.monotonic()

    @property
    def limit_s(self) -> float:
        """How long the database may take to accept a connection."""
        return max(ANSWER_TIMEOUT_S, 3 * self._usual_s)

    @property
    def is_waited_for(self) -> bool:
        """Whether callers are waiting for a connection."""
        return bool(self._waiting)

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """A block in which a caller waits for a connection; raises StoreUnavailable if the database is lost."""
        try:
            async with asyncio.timeout(None) as limit:
                self._waiting[limit] = time.monotonic()
                try:
                    yield
                finally:
                    self._waiting.pop(limit, None)
        except TimeoutError:
            raise StoreUnavailable("the database does not answer") from None

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Watch the database for the duration of the block."""
        began = time.monotonic()
        await self._try()
        self._usual_s = time.monotonic() - began
        watch = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            await cancel(watch)

    async def _watch(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_INTERVAL_S):
                    await self._recheck_requested.wait()
            if self._recheck_requested.is_set() or self.is_lost or self._is_slow():
                self._recheck_requested.clear()
                try:
                    await self._ask()
                except Exception:  # keep watching
                    log.exception("whether the database answers could not be found out")

    def _is_slow(self) -> bool:
        """Whether a caller has been waiting too long for a connection or for rows."""
        since = min((*self._waiting.values(), *self._in_use.values()), default=float("inf"))
        return time.monotonic() - since > SLOW_S

    async def _ask(self) -> None:
        """Try to connect; if there is no answer, mark the database lost and keep waiting."""
        began = time.monotonic()
        attempt = asyncio.create_task(self._try())
        try:
            self._is_silent = not await self._is_answered(attempt)
            if self._is_silent:
                self._lose("it does not answer")
                self._shut_down_connections()
            await attempt
        except (StoreUnavailable, psycopg.Error) as exc:
            if self.is_lost or not (self._in_use or await self.is_served()):
                self._lose(str(exc), before=began)
            else:
                self._log_once(logging.WARNING, f"the database refuses another connection: {exc}")
            return
        finally:
            self._is_silent = False
            await cancel(attempt)
        self._logged.clear()
        if self.is_lost:
            self._is_back.set()
            log.warning("the database answers again")

    async def _try(self) -> None:
        """Open and close a connection in one task: if only opened, it would stay open when cancelled too late."""
        await (await self._connect()).close()

    async def _is_answered(self, attempt: asyncio.Task[None]) -> bool:
        """Wait for the attempt; False if neither it nor any caller has had an answer for `limit_s`.

        The wait is in steps, as the event loop may be late at any moment.
        """
        since = time.monotonic()
        while True:
            due = min(time.monotonic() + STALL_S, since + self.limit_s)
            done, _ = await asyncio.wait({attempt}, timeout=due - time.monotonic())
            if done:
                return True
            if (now := time.monotonic()) > due + STALL_S:
                since = now
            elif self._answered > since:
                since = self._answered
            elif now >= since + self.limit_s:
                return False

    def _lose(self, reason: str, *, before: float = math.inf) -> None:
        """Fail the callers that have been waiting since before `before`; later ones try the database again."""
        if not self.is_lost:
            self._is_back.clear()
            self.losses += 1
        self._log_once(logging.ERROR, f"the database is lost: {reason}")
        for limit, since in list(self._waiting.items()):
            if since <= before:
                del self._waiting[limit]
                limit.reschedule(asyncio.get_running_loop().time())
        if self._waiting:
            self.recheck()

    def _log_once(self, level: int, message: str) -> None:
        """Log a message once until the database takes connections again."""
        if message not in self._logged:
            self._logged.add(message)
            log.log(level, "%s", message)

    def _shut_down_connections(self) -> None:
        """Fail callers that wait for rows: libpq sees the connection end."""
        for connection in self._in_use:
            with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(connection.fileno())) as line:
                line.shutdown(socket.SHUT_RDWR)
