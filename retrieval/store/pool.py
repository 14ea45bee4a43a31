"""Connections to the database, one by one or pooled."""

from __future__ import annotations

import select
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from pgvector.psycopg import register_vector_async
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from retrieval.errors import MigrationError, StoreUnavailable

Connection = AsyncConnection[TupleRow]
Pool = AsyncConnectionPool[Connection]

CONNECT_TIMEOUT_S = 5
"""How long one attempt to connect may take."""

WAIT_TIMEOUT_S = 10.0
"""How long a caller waits for a free connection of the pool."""

STATEMENT_TIMEOUT_MS = 30_000
"""Longest statement; bulk work sets its own with `set local`."""

_SESSION = """
    select set_config('statement_timeout', %(statement_timeout)s, false),
           set_config('idle_in_transaction_session_timeout', %(idle_timeout)s, false),
           set_config('jit', 'off', false)
"""


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
    pool: Pool = AsyncConnectionPool(
        _conninfo(url),
        kwargs={"autocommit": True, "prepare_threshold": 2},
        min_size=size,
        max_size=size,
        timeout=WAIT_TIMEOUT_S,
        configure=_configure,
        check=_check_open,
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
    await connection.execute(_SESSION, {"statement_timeout": str(STATEMENT_TIMEOUT_MS), "idle_timeout": "60000"})
    await register_vector_async(connection)


async def _check_open(connection: Connection) -> None:
    """Raise if the server closed the connection while it was idle; a round trip only if it sent something."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if poll.poll(0):
        await AsyncConnectionPool.check_connection(connection)
