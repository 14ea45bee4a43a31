"""Connections to the database, one by one or pooled."""

from __future__ import annotations

import select
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import orjson
import psycopg
from pgvector.psycopg import register_vector_async
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow
from psycopg.types.json import set_json_loads
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from retrieval.errors import Collided, InvalidInput, MigrationError, StoreUnavailable

Connection = AsyncConnection[TupleRow]

CONNECT_TIMEOUT_S = 5
"""How long one attempt to connect may take."""

WAIT_TIMEOUT_S = 10.0
"""How long a caller waits for a free connection of the pool."""

RECONNECT_TIMEOUT_S = 4.0
"""How long the pool itself tries to replace a lost connection; after that the next caller's wait tries anew.

The pauses between its attempts double, so a long time would keep a server from noticing that its database
is back.
"""

WARM_S = 60.0
"""How long a connection is used again and again before the pool itself sees it, which replaces old ones."""

STATEMENT_TIMEOUT_MS = 30_000
"""Longest statement; bulk work sets its own with `set local`."""

MOST_PREPARED = 300
"""Prepared statements of one connection; more than there are, filters in the combinations that callers use included."""

# Generic plans: every statement is a look-up by key whose plan does not depend on the values, and
# planning one of the graph's anew costs more than running it.
_SESSION = """
    select set_config('statement_timeout', %(statement_timeout)s, false),
           set_config('idle_in_transaction_session_timeout', %(idle_timeout)s, false),
           set_config('jit', 'off', false),
           set_config('plan_cache_mode', 'force_generic_plan', false)
"""


class Pool(AsyncConnectionPool[Connection]):
    """Connections whose failures are Trivet's errors, and that survive their server's restart.

    What was given back last is given out first, unless somebody waits: a process of the server that has just answered
    does so again in half the time of one that slept. So some connections do all the work as long as they suffice.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._warm: list[Connection] = []
        self._since: dict[Connection, float] = {}
        self._asking = 0

    async def getconn(self, timeout: float | None = None) -> Connection:
        """A connection that the server has not closed; closed ones are replaced in the background.

        The pool's own `check` pauses after each closed one, so that after a restart, when all are, a caller
        would wait until its time is up.
        """
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            connection = self._warm.pop() if self._warm else await self._cold(deadline)
            try:
                await _check_open(connection)
            except psycopg.Error:
                await connection.close()
                await self.putconn(connection)
            except BaseException:
                await self.putconn(connection)
                raise
            else:
                return connection

    async def putconn(self, conn: Connection) -> None:
        """Take a connection back."""
        is_idle = conn.pgconn.transaction_status == TransactionStatus.IDLE
        if is_idle and not self._asking and not self.closed and time.monotonic() - self._since[conn] < WARM_S:
            self._warm.append(conn)
            return
        del self._since[conn]
        await super().putconn(conn)

    async def close(self, timeout: float = 5.0) -> None:
        """Close all connections; those that are out once they are given back."""
        await super().close(timeout)
        while self._warm:
            await self.putconn(self._warm.pop())

    async def _cold(self, deadline: float) -> Connection:
        """One that was not used for a while, or the next that is given back."""
        self._asking += 1
        try:
            connection = await super().getconn(max(0.0, deadline - time.monotonic()))
        finally:
            self._asking -= 1
        self._since[connection] = time.monotonic()
        return connection

    @asynccontextmanager
    async def connection(self, timeout: float | None = None) -> AsyncIterator[Connection]:
        """A connection until the end of the block, in which `translated` holds.

        It is in autocommit mode, so the end of the block neither commits nor rolls back.
        """
        with translated():
            conn = await self.getconn(timeout)
            try:
                yield conn
            finally:
                await self.putconn(conn)


_COLLISIONS = ("23505", "40")
"""SQLSTATEs, or their classes, of what another writer causes: unique violation, deadlock, serialisation."""

_REFUSALS = ("22", "54")
"""Of values: data exceptions, and limits such as the longest key of an index or the deepest nesting."""

_OUTAGES = ("25",)
"""Of a server that takes no writes or ended an idle transaction; most outages are OperationalErrors."""


@contextmanager
def translated() -> Iterator[None]:
    """Turn the driver's errors into Trivet's; what is left is an error of ours.

    Raises:
        StoreUnavailable: the database cannot be reached, went away, gave no connection or no answer in time.
        Collided: another writer was in the way.
        InvalidInput: the database refuses a value that passed all checks before.
    """
    try:
        yield
    except PoolTimeout as exc:
        raise StoreUnavailable(f"the database gives no connection: {exc}") from exc
    except psycopg.Error as exc:
        state, reason = exc.sqlstate or "", exc.diag.message_primary or str(exc).strip()
        if state.startswith(_COLLISIONS):
            raise Collided(f"another writer was in the way: {reason}") from exc
        if state.startswith(_REFUSALS) or isinstance(exc, psycopg.DataError):
            raise InvalidInput(f"the database refuses a value: {reason}") from exc
        if state.startswith(_OUTAGES) or isinstance(exc, psycopg.OperationalError | psycopg.InterfaceError):
            raise StoreUnavailable(f"the database failed: {reason}") from exc
        raise


async def connect(url: str) -> Connection:
    """Open one connection in autocommit mode.

    Raises:
        StoreUnavailable: the URL is malformed, or the database does not answer or refuses us. The
            message names host, port and database, never a password.
    """
    try:
        return await AsyncConnection.connect(_conninfo(url), autocommit=True)
    except psycopg.OperationalError as exc:
        raise StoreUnavailable(f"cannot reach the database {describe(url)}: {str(exc).strip()}") from exc


@asynccontextmanager
async def open_pool(url: str, size: int) -> AsyncIterator[Pool]:
    """A pool of `size` connections to a migrated database, in autocommit mode, pgvector's types registered.

    All are opened at once: three legs run side by side and none should wait for a handshake. One that the
    server has closed meanwhile is replaced when it is asked for.

    Raises:
        StoreUnavailable: the database cannot be reached, or lets in fewer than `size` connections.
        MigrationError: it has no extension `vector`, so it is not migrated.
    """
    async with await connect(url) as db:
        found = await (await db.execute("select to_regtype('vector') is not null")).fetchone()
        if not found or not found[0]:
            raise MigrationError("the database is not migrated: run `trivet migrate`")
    pool = Pool(
        _conninfo(url),
        # Planning takes longer than most statements: none is planned twice.
        kwargs={"autocommit": True, "prepare_threshold": 0},
        min_size=size,
        max_size=size,
        timeout=WAIT_TIMEOUT_S,
        reconnect_timeout=RECONNECT_TIMEOUT_S,
        configure=_configure,
        name="trivet",
        open=False,
    )
    async with pool:
        try:
            await pool.wait(timeout=WAIT_TIMEOUT_S)
        except PoolTimeout as exc:
            raise StoreUnavailable(f"the database {describe(url)} does not give {size} connections") from exc
        yield pool


def describe(url: str) -> str:
    """Where a URL points, without its secrets.

    >>> describe("postgresql://ann:secret@db.example:5433/notes?sslpassword=secret")
    'notes at db.example:5433'
    """
    parts = _parse(url)
    where = f"{parts.get('host') or parts.get('hostaddr') or 'the local socket'}:{parts.get('port') or 5432}"
    return f"{parts.get('dbname') or 'of the user'} at {where}"


def _conninfo(url: str) -> str:
    """The URL with Trivet's defaults, over which its own parameters win."""
    defaults: dict[str, Any] = {"connect_timeout": CONNECT_TIMEOUT_S, "application_name": "trivet"}
    return make_conninfo(**defaults | _parse(url), client_encoding="utf8")


def _parse(url: str) -> dict[str, Any]:
    try:
        return dict(conninfo_to_dict(url))
    except psycopg.ProgrammingError:
        # libpq quotes the text that it cannot read, password included
        raise StoreUnavailable("TRIVET_DATABASE_URL is not a URL that libpq understands") from None


async def _configure(connection: Connection) -> None:
    """Prepare a new connection."""
    connection.prepared_max = MOST_PREPARED
    await connection.execute(
        _SESSION,
        {"statement_timeout": str(STATEMENT_TIMEOUT_MS), "idle_timeout": "60000"},
    )
    await register_vector_async(connection)
    set_json_loads(orjson.loads, connection)


async def _check_open(connection: Connection) -> None:
    """Raise if the server closed the connection while it was idle; a round trip only if it sent something."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if poll.poll(0):
        await AsyncConnectionPool.check_connection(connection)
