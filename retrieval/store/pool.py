"""Connections to the database, single or pooled."""

from __future__ import annotations

import asyncio
import select
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any, LiteralString
from weakref import WeakKeyDictionary

import orjson
import psycopg
from pgvector.psycopg.halfvec import register_halfvec_info
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.types import TypeInfo
from psycopg.types.json import set_json_loads
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from postgres.connection import Connection, fetch
from retrieval.errors import Collided, DatabaseUnreachable, InvalidInput, MigrationError, StoreError, StoreUnavailable
from retrieval.store.reachability import Reachability

CONNECT_TIMEOUT_S = 5
"""Timeout of one connection attempt outside the pool."""

RECONNECT_TIMEOUT_S = 2
"""Timeout of one connection attempt of the pool, the shortest that psycopg allows."""

WAIT_TIMEOUT_S = 10.0
"""How long a caller waits for a free connection while the database answers."""

_TCP = {"keepalives_idle": 30, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 10_000}
"""Options of each connection, in seconds, the last in milliseconds. Routers forget connections idle for minutes and
then silently drop packets. By default the system probes after two hours and waits a quarter of an hour for an answer,
while the database accepts new connections, so that it is not considered lost."""

WARM_S = 60.0
"""How long a connection is reused before it goes back to psycopg's pool, which replaces old ones."""

STATEMENT_TIMEOUT_MS = 30_000
"""Statement timeout; bulk work sets its own with `set local`."""

LOCK_TIMEOUT_MS = 29_000
"""Lock timeout, even for statements that may take longer, as other callers wait for the connection meanwhile. Below the
statement timeout, or the error would not say that it was a lock."""

MOST_PREPARED = 300
"""Prepared statements per connection; more than exist, counting the filter combinations that callers use."""

# A limit that the role or the database sets would end what takes minutes, such as an export or building a vector index.
# PostgreSQL 16 does not have this setting.
_ENDLESS_TRANSACTIONS: LiteralString = """
    case when current_setting('transaction_timeout', true) <> '0' then set_config('transaction_timeout', '0', false) end
"""

# psycopg cannot parse times in any other date style.
_SINGLE: LiteralString = (
    "select set_config('datestyle', 'ISO', false), set_config('statement_timeout', '0', false), "
    "set_config('lock_timeout', %(lock_timeout)s, false), " + _ENDLESS_TRANSACTIONS
)

# READ COMMITTED, whatever the database's default: writers see what was committed while they waited for a lock.
# No limit for idle sessions: connections of a pool are idle most of the time.
# Nulls in arrays: they are the fields that a memory of a batch lacks.
# Generic plans: every statement is a lookup by key whose plan does not depend on the values, and replanning one of the
# graph's statements costs more than running it.
_SESSION: LiteralString = (
    """
    select set_config('statement_timeout', %(statement_timeout)s, false),
           set_config('lock_timeout', %(lock_timeout)s, false),
           set_config('idle_in_transaction_session_timeout', %(idle_timeout)s, false),
           set_config('idle_session_timeout', '0', false),
           set_config('array_nulls', 'on', false),
           set_config('default_transaction_isolation', 'read committed', false),
           set_config('jit', 'off', false),
           set_config('timezone', 'UTC', false),
           set_config('datestyle', 'ISO', false),
           set_config('plan_cache_mode', 'force_generic_plan', false),
           """ + _ENDLESS_TRANSACTIONS + """,
           'halfvec'::regtype::oid, 'halfvec[]'::regtype::oid
    """
)  # fmt: skip


class Pool(AsyncConnectionPool[Connection]):
    """A connection pool that raises Trivet's errors and survives a server restart.

    Connections are handed out last in, first out unless callers are waiting: a server process that has just answered
    takes half the time of one that slept. So a few connections do all the work while they suffice.
    """

    def __init__(self, conninfo: str, *, reachability: Reachability, **options: Any) -> None:
        super().__init__(conninfo, configure=self._prepare, **options)
        self.reachability = reachability
        reachability.is_served = self._is_served
        self._warm: list[Connection] = []
        self._since: dict[Connection, float] = {}
        self._losses: WeakKeyDictionary[Connection, int] = WeakKeyDictionary()

    async def getconn(self, timeout: float | None = None) -> Connection:
        """A connection that the server has not closed; closed ones are replaced in the background.

        psycopg's own `check` pauses after each closed connection, so after a restart, when all are closed, a caller
        would wait until its timeout. Raises StoreUnavailable if the database is lost, PoolTimeout if all stay in use.
        """
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            await self.reachability.check()
            connection = self._warm.pop() if self._warm else await self._cold(deadline)
            self.reachability.use(connection)
            try:
                await self._check_usable(connection)
            except psycopg.Error:
                await connection.close()
                await self.putconn(connection)
            except BaseException:
                await self.putconn(connection)
                raise
            else:
                return connection

    async def putconn(self, conn: Connection) -> None:
        """Return a connection to the pool."""
        is_idle = conn.pgconn.transaction_status == TransactionStatus.IDLE
        self.reachability.end_use(conn, is_answered=is_idle)
        is_wanted = self.reachability.is_waited_for or self.closed
        if is_idle and not is_wanted and time.monotonic() - self._since[conn] < WARM_S:
            self._warm.append(conn)
            return
        del self._since[conn]
        await super().putconn(conn)

    async def close(self, timeout: float = 5.0) -> None:
        """Close all connections; those in use are closed when they are returned."""
        await super().close(timeout)
        while self._warm:
            await self.putconn(self._warm.pop())

    async def _cold(self, deadline: float) -> Connection:
        """A connection from psycopg's pool, or the next one returned."""
        async with self.reachability.waiting():
            connection = await super().getconn(max(0.0, deadline - time.monotonic()))
        self._since[connection] = time.monotonic()
        return connection

    async def _prepare(self, connection: Connection) -> None:
        """Set session options of a new connection and register types."""
        connection.prepared_max = MOST_PREPARED
        limits = {
            "statement_timeout": str(STATEMENT_TIMEOUT_MS),
            "lock_timeout": str(LOCK_TIMEOUT_MS),
            "idle_timeout": "60000",
        }
        [[*_, vector, vectors]] = await fetch(connection, _SESSION, limits)
        register_halfvec_info(connection, TypeInfo("halfvec", vector, vectors))
        set_json_loads(orjson.loads, connection)
        self._losses[connection] = self.reachability.losses

    async def _is_served(self) -> bool:
        """Whether an idle connection still answers; if its server was replaced, it may not know that it has ended."""
        with suppress(StoreUnavailable, TimeoutError):
            async with asyncio.timeout(self.reachability.limit_s), self.connection(timeout=0.0) as connection:
                await self.check_connection(connection)
                return True
        return False

    async def _check_usable(self, connection: Connection) -> None:
        """Raise if the connection was closed while it was idle; a round trip only if the server sent something."""
        if self._losses[connection] < self.reachability.losses:
            raise psycopg.OperationalError("the database was lost since")
        poll = select.poll()
        poll.register(connection.fileno(), select.POLLIN)
        if poll.poll(0):
            await self.check_connection(connection)

    @asynccontextmanager
    async def connection(self, timeout: float | None = None) -> AsyncIterator[Connection]:
        """A connection for the duration of the block, in which `translated` applies.

        It is in autocommit mode, so leaving the block neither commits nor rolls back.
        """
        with translated():
            conn = await self.getconn(timeout)
            try:
                yield conn
            except psycopg.errors.ReadOnlySqlTransaction:
                await conn.close()  # a session stays as the database's default was when it began
                raise
            finally:
                await self.putconn(conn)


_COLLISIONS = ("23505", "40P01", "40000")
"""SQLSTATEs caused by another writer: unique violation, deadlock, and what `graph.store` raises itself.

At READ COMMITTED there are no serialisation failures. Reads at another level may have one on a standby, which cancels
them if the primary removes rows they need.
"""

_REFUSALS = ("22", "54")
"""Rejected values: data exceptions, and limits such as the longest index key or the deepest nesting."""

_VACUUM = "VACUUM"
"""In the hint of the limit of transaction numbers, at which PostgreSQL stops all writes."""

_DENIED = "42501"
"""The database role lacks a privilege."""

# InternalError comes from a server that accepts no writes, or from a connection whose answers do not match its
# requests, for example because a pooler reports a lost server in two messages.
_OUTAGES = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError)


@contextmanager
def translated() -> Iterator[None]:
    """Translate the driver's errors into Trivet's; any other driver error is a bug in Trivet.

    Raises:
        StoreUnavailable: the database cannot be reached, went away, or gave no connection or answer in time.
        Collided: another writer was in the way.
        InvalidInput: the database rejects a value that passed all earlier checks.
        StoreError: the role that Trivet connects as lacks a privilege.
    """
    try:
        yield
    except PoolTimeout as exc:
        raise StoreUnavailable(f"the database gives no connection: {exc}") from exc
    except psycopg.Error as exc:
        state, reason = exc.sqlstate or "", exc.diag.message_primary or one_line(exc)
        if state.startswith(_COLLISIONS):
            raise Collided(f"another writer was in the way: {reason}") from exc
        is_refusal = state.startswith(_REFUSALS) and _VACUUM not in (exc.diag.message_hint or "")
        if is_refusal or isinstance(exc, psycopg.DataError):
            raise InvalidInput(f"the database refuses a value: {reason}") from exc
        if state == _DENIED:
            raise StoreError(f"the database refuses its user: {reason}") from exc
        if isinstance(exc, _OUTAGES):
            raise StoreUnavailable(f"the database failed: {reason}") from exc
        raise


async def connect(url: str, *, timeout_s: int = CONNECT_TIMEOUT_S) -> Connection:
    """Open one connection in autocommit mode, within `timeout_s`, at least 2, or the URL's own `connect_timeout`.

    Raises DatabaseUnreachable if the database does not answer or refuses the connection, StoreUnavailable if the URL is
    malformed; the message never has a password.
    """
    try:
        async with AsyncExitStack() as stack:
            connection = await AsyncConnection.connect(_conninfo(url, timeout_s), autocommit=True)
            stack.push_async_callback(connection.close)
            await connection.execute(_SINGLE, {"lock_timeout": str(LOCK_TIMEOUT_MS)})
            stack.pop_all()
            return connection
    except psycopg.OperationalError as exc:
        raise DatabaseUnreachable(f"cannot reach the database {describe(url)}: {one_line(exc)}") from exc


async def check_session(db: Connection, url: str) -> None:
    """Raise StoreError if another connection shares the session, as with a pooler in transaction mode.

    Such a session has the settings and advisory locks of all clients, and keeps them when they are gone.
    """
    async with await connect(url) as other:
        sessions = [await fetch(each, "select pg_backend_pid()") for each in (db, other)]
    if sessions[0] == sessions[1]:
        raise StoreError(
            f"the pooler before the database {describe(url)} gives one session to several connections: "
            "have it pool by session, or connect directly"
        )


@asynccontextmanager
async def open_pool(url: str, size: int) -> AsyncIterator[Pool]:
    """A pool of `size` connections to a migrated database, in autocommit mode, with pgvector's types registered.

    All are opened up front, because three legs run in parallel and none should wait for a handshake. A connection that
    the server has closed is replaced when it is requested. Raises StoreUnavailable if the database cannot be reached or
    accepts fewer, MigrationError if it has no extension `vector` and so is not migrated.
    """
    async with await connect(url) as db:
        [(is_migrated,)] = await fetch(db, "select to_regtype('vector') is not null")
        if not is_migrated:
            raise MigrationError("the database is not migrated: run `trivet migrate`")
    reachability = Reachability(lambda: connect(url, timeout_s=RECONNECT_TIMEOUT_S))
    pool = Pool(
        _conninfo(url, RECONNECT_TIMEOUT_S),
        reachability=reachability,
        # Planning takes longer than most statements, so each is prepared on first use.
        kwargs={"autocommit": True, "prepare_threshold": 0},
        min_size=size,
        max_size=size,
        timeout=WAIT_TIMEOUT_S,
        reconnect_timeout=0.0,  # `reachability` decides when to retry
        name="trivet",
        open=False,
    )
    async with reachability.watched(), pool:
        try:
            async with reachability.waiting():  # so that the log says why connections are refused
                await pool.wait(timeout=WAIT_TIMEOUT_S)
        except (PoolTimeout, StoreUnavailable) as exc:
            raise StoreUnavailable(f"the database {describe(url)} does not give {size} connections") from exc
        yield pool


def one_line(exc: psycopg.Error) -> str:
    """The driver's message, on one line."""
    return " ".join(str(exc).split())


def describe(url: str) -> str:
    """Where a URL points, without its secrets.

    >>> describe("postgresql://ann:secret@db.example:5433/notes?sslpassword=secret")
    'notes at db.example:5433'
    """
    parts = _parse(url)
    where = f"{parts.get('host') or parts.get('hostaddr') or 'the local socket'}:{parts.get('port') or 5432}"
    return f"{parts.get('dbname') or 'of the user'} at {where}"


def _conninfo(url: str, timeout_s: int) -> str:
    """The URL's parameters over Trivet's defaults."""
    defaults: dict[str, Any] = {"connect_timeout": timeout_s, "application_name": "trivet", **_TCP}
    return make_conninfo(**defaults | _parse(url), client_encoding="utf8")


def _parse(url: str) -> dict[str, Any]:
    authority, _, rest = url.partition("://")[2].partition("?")[0].partition("/")
    if authority.count("@") > 1 or "@" in rest:  # libpq would take part of the password for a host or database
        raise StoreUnavailable("TRIVET_DATABASE_URL has a stray @: in a password @ is written %40, and / %2F")
    try:
        return dict(conninfo_to_dict(url))
    except psycopg.ProgrammingError:
        # libpq quotes the text that it cannot parse, including the password
        raise StoreUnavailable("TRIVET_DATABASE_URL is not a URL that libpq understands") from None
