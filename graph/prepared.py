"""Statements that every search asks: prepared once per connection, parameters as text, rows in binary.

A cursor of psycopg works out at every call how to send each parameter and whether the statement is prepared, which
takes twice the time of all else that a look-up by key costs its process.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, LiteralString
from weakref import WeakKeyDictionary

import psycopg
from psycopg import AsyncConnection, generators
from psycopg.abc import PQGen
from psycopg.adapt import Transformer
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

Parameters = Mapping[str, str | float | None]
"""By name; numbers and text as PostgreSQL writes them, arrays as `array_text` does."""

_PLACE = re.compile(r"%\((\w+)\)s")

_STALE = ("26000", "0A000")
"""SQLSTATEs of a statement that is not prepared any more, or whose tables have changed since."""

_names: WeakKeyDictionary[AsyncConnection[Any], dict[Prepared, bytes]] = WeakKeyDictionary()
"""What each connection has prepared, and under which name."""

_numbers = count()

_DROPPED_WITHIN_S = 1.0
"""How long an answer is waited for that nobody wants any more."""


class Prepared:
    """A statement with parameters in psycopg's manner, `%(name)s`.

    Attributes:
        text: the statement as it is sent, parameters by number.
    """

    def __init__(self, statement: LiteralString) -> None:
        self._parameters = list(dict.fromkeys(_PLACE.findall(statement)))
        numbered = _PLACE.sub(lambda place: f"${self._parameters.index(place[1]) + 1}", statement)
        self.text = numbered.replace("%%", "%")

    async def rows(self, conn: AsyncConnection[Any], parameters: Parameters) -> list[tuple[Any, ...]]:
        """All rows of the answer.

        Raises:
            psycopg.Error: as a cursor's `execute` does.
        """
        return (await rows_of_each(conn, [(self, parameters)]))[0]

    async def name_on(self, conn: AsyncConnection[Any]) -> bytes:
        """The name under which a connection has it prepared, from now on at the latest."""
        names = _names.setdefault(conn, {})
        name = names.get(self)
        if name is None:
            name = f"trivet_{next(_numbers)}".encode()
            conn.pgconn.send_prepare(name, self.text.encode())
            _check(await conn.wait(generators.execute(conn.pgconn)))
            names[self] = name
        return name

    def values(self, parameters: Parameters) -> list[bytes | None]:
        """The parameters in the order of their numbers.

        Raises:
            psycopg.DataError: there is a null byte in one, where libpq takes it to end.
        """
        values = [None if (value := parameters[name]) is None else str(value).encode() for name in self._parameters]
        if any(value and b"\x00" in value for value in values):
            raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
        return values


Asked = tuple[Prepared, Parameters]


class Rows:
    """The rows of an answer; each is decoded when it is asked for."""

    def __init__(self, conn: AsyncConnection[Any], result: PGresult) -> None:
        self._result = result
        self._loading = Transformer(conn)
        self._loading.set_pgresult(result)

    def integers(self, column: int) -> list[int]:
        """The numbers of a column of integers without nulls, row by row."""
        value = self._result.get_value
        return [int.from_bytes(value(row, column) or b"", "big", signed=True) for row in range(self._result.ntuples)]

    def __getitem__(self, row: int) -> tuple[Any, ...]:
        found: tuple[Any, ...] | None = self._loading.load_row(row, tuple)
        if found is None:
            raise RuntimeError("there is no answer to read")
        return found


class Sent:
    """A statement whose answer is on its way; until it is there, or dropped, nothing else may use the connection."""

    def __init__(self, conn: AsyncConnection[Any], statement: Prepared, values: list[bytes | None]) -> None:
        self._conn = conn
        self._statement = statement
        self._values = values
        self._is_awaited = False

    async def rows(self) -> Rows:
        """The answer, waited for; once.

        Raises:
            psycopg.Error: as a cursor's `execute` does.
        """
        try:
            return Rows(self._conn, await self._answer())
        except psycopg.Error as exc:
            if not _may_be_repeated(self._conn, exc):
                raise
        await self._send()
        return Rows(self._conn, await self._answer())

    async def drop(self) -> None:
        """Wait for an answer that nobody wants any more; a connection that does not give it soon is closed."""
        if not self._is_awaited:
            return
        with suppress(psycopg.Error):
            await self._answer(timeout_s=_DROPPED_WITHIN_S)
        if self._conn.pgconn.transaction_status == TransactionStatus.ACTIVE:
            await self._conn.close()

    async def _send(self) -> None:
        name, pgconn = await self._statement.name_on(self._conn), self._conn.pgconn
        pgconn.send_query_prepared(name, self._values, result_format=1)
        self._is_awaited = True
        pgconn.flush()  # what does not fit into the socket goes when the answer is waited for

    async def _answer(self, timeout_s: float | None = None) -> PGresult:
        self._is_awaited = False  # a wait that is cancelled ends the statement
        pgconn = self._conn.pgconn
        if pgconn.flush() == 0:
            pgconn.consume_input()  # what is there already need not be waited for
        return _check(await self._conn.wait(generators.execute(pgconn), timeout=timeout_s))


async def send(conn: AsyncConnection[Any], statement: Prepared, parameters: Parameters) -> Sent:
    """Send a statement and go on while it is executed.

    Raises:
        psycopg.Error: as a cursor's `execute` does.
    """
    sent = Sent(conn, statement, statement.values(parameters))
    await sent._send()
    return sent


async def rows_of_each(conn: AsyncConnection[Any], asked: Sequence[Asked]) -> list[list[tuple[Any, ...]]]:
    """The answers to several statements that are sent together, one transaction where there is none: one wait for all.

    Raises:
        psycopg.Error: as a cursor's `execute` does; what follows a statement that fails is not executed.
    """
    sent = [(statement, statement.values(parameters)) for statement, parameters in asked]
    try:
        return await _answers(conn, sent)
    except psycopg.Error as exc:
        if not _may_be_repeated(conn, exc):
            raise
    return await _answers(conn, sent)


async def _answers(
    conn: AsyncConnection[Any], sent: Sequence[tuple[Prepared, list[bytes | None]]]
) -> list[list[tuple[Any, ...]]]:
    pgconn = conn.pgconn
    async with conn.lock:
        ready = [(await statement.name_on(conn), values) for statement, values in sent]
        if len(ready) == 1:
            pgconn.send_query_prepared(*ready[0], result_format=1)
            results = [await conn.wait(generators.execute(pgconn))]
        else:
            results = await _in_turn(conn, ready)
    loading, rows = Transformer(conn), []
    for each in results:
        loading.set_pgresult(result := _check(each))
        rows.append(loading.load_rows(0, result.ntuples, tuple))
    return rows


async def _in_turn(
    conn: AsyncConnection[Any], ready: Sequence[tuple[bytes, list[bytes | None]]]
) -> list[list[PGresult]]:
    pgconn = conn.pgconn
    pgconn.enter_pipeline_mode()
    try:
        for name, values in ready:
            pgconn.send_query_prepared(name, values, result_format=1)
        pgconn.pipeline_sync()
        return await conn.wait(_communicate(pgconn, len(ready)))
    finally:
        try:
            pgconn.exit_pipeline_mode()
        except psycopg.OperationalError:  # its answers were not all read: it is of no use any more
            with suppress(psycopg.Error):
                await conn.close()


def _communicate(pgconn: PGconn, statements: int) -> PQGen[list[list[PGresult]]]:
    yield from generators.send(pgconn)
    results = []
    for _ in range(statements):
        results.append((yield from generators.fetch_many(pgconn)))
    yield from generators.fetch_many(pgconn)  # says that all is done
    return results


def _may_be_repeated(conn: AsyncConnection[Any], failed: psycopg.Error) -> bool:
    """Whether what failed did so only because it is not prepared as the connection's statements were remembered."""
    _names.pop(conn, None)
    return failed.sqlstate in _STALE and conn.info.transaction_status == TransactionStatus.IDLE


def _check(results: Sequence[PGresult]) -> PGresult:
    (result,) = results
    if result.status in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
        return result
    raise psycopg.errors.error_from_result(result)
