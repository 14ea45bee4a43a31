"""Statements of the search path: prepared once per connection, with text parameters and binary rows.

A psycopg cursor determines on every call how to send each parameter and whether the statement is prepared, which takes
twice the time of everything else a lookup by key costs the client.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count, repeat
from typing import Any, LiteralString
from weakref import WeakKeyDictionary

import psycopg
from psycopg import abc, generators
from psycopg.abc import PQGen
from psycopg.adapt import Transformer
from psycopg.pq import ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

from postgres.connection import Connection

Parameters = Mapping[str, str | float | None]
"""Values by name: numbers and text in PostgreSQL's text format, arrays as from `array_text`."""

_PLACE = re.compile(r"%\((\w+)\)s")

_STALE = ("26000", "0A000")
"""SQLSTATEs of a statement that is no longer prepared, or whose tables have changed since."""

_names: WeakKeyDictionary[Connection, dict[PreparedStatement, bytes]] = WeakKeyDictionary()
"""The name of each statement prepared on a connection."""

_decoders: WeakKeyDictionary[Connection, dict[tuple[int, ...], abc.Transformer]] = WeakKeyDictionary()
"""Decoders of binary rows by the types of their columns, for the types that each connection has registered."""

_numbers = count()

_DROPPED_WITHIN_S = 1.0
"""How long to wait for a result that is to be discarded."""


class PreparedStatement:
    """A statement with psycopg's named parameters, `%(name)s`; `text` is sent, with numbered ones."""

    def __init__(self, statement: LiteralString) -> None:
        self._parameters = list(dict.fromkeys(_PLACE.findall(statement)))
        numbered = _PLACE.sub(lambda place: f"${self._parameters.index(place[1]) + 1}", statement)
        self.text = numbered.replace("%%", "%")

    async def rows(self, conn: Connection, parameters: Parameters) -> list[tuple[Any, ...]]:
        """Execute the statement and fetch all rows; raises as a cursor's `execute` does."""
        return (await (await send(conn, self, parameters)).rows()).all()

    async def name_on(self, conn: Connection) -> bytes:
        """The name under which a connection has the statement prepared; prepares it if necessary."""
        names = _names.setdefault(conn, {})
        name = names.get(self)
        if name is None:
            name = f"trivet_{next(_numbers)}".encode()
            conn.pgconn.send_prepare(name, self.text.encode())
            _check(await conn.wait(generators.execute(conn.pgconn)))
            names[self] = name
        return name

    def values(self, parameters: Parameters) -> list[bytes | None]:
        """The parameters in the order of their numbers; DataError for a null byte, at which libpq would truncate."""
        values = [None if (value := parameters[name]) is None else str(value).encode() for name in self._parameters]
        if any(value and b"\x00" in value for value in values):
            raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
        return values


BoundStatement = tuple[PreparedStatement, Parameters]


class Rows:
    """The rows of a result, decoded on access."""

    def __init__(self, conn: Connection, result: PGresult) -> None:
        self._result = result
        self._decoder = _decoder(conn, result)

    def integers(self, column: int) -> list[int]:
        """Decode a column of type `integer` without nulls."""
        count = self._result.ntuples
        values = map(self._result.get_value, range(count), repeat(column))
        return [*struct.unpack(f">{count}i", b"".join(value or b"" for value in values))]

    def __getitem__(self, row: int) -> tuple[Any, ...]:
        [found] = self._decoded(row, row + 1)
        return found

    def all(self) -> list[tuple[Any, ...]]:
        """Decode all rows."""
        return self._decoded(0, self._result.ntuples)

    def _decoded(self, first: int, end: int) -> list[tuple[Any, ...]]:
        self._decoder.set_pgresult(self._result, set_loaders=False)
        rows: list[tuple[Any, ...]] = self._decoder.load_rows(first, end, tuple)
        self._decoder.set_pgresult(None, set_loaders=False)  # it would keep the result in memory
        return rows


class PendingResult:
    """A statement in flight; until its result is read or dropped, nothing else may use the connection."""

    def __init__(self, conn: Connection, statement: PreparedStatement, values: list[bytes | None]) -> None:
        self._conn = conn
        self._statement = statement
        self._values = values
        self._is_awaited = False

    async def rows(self) -> Rows:
        """Wait for the result; call once. Raises as a cursor's `execute` does."""
        try:
            return Rows(self._conn, await self._answer())
        except psycopg.Error as exc:
            if not _may_be_repeated(self._conn, exc):
                raise
        await self._send()
        return Rows(self._conn, await self._answer())

    async def drop(self) -> None:
        """Discard the result; closes the connection if it does not arrive soon."""
        if not self._is_awaited:
            return
        with suppress(psycopg.Error):
            await self._answer(timeout_s=_DROPPED_WITHIN_S)
        if self._conn.pgconn.transaction_status == TransactionStatus.ACTIVE:
            await self._conn.close()

    async def _send(self) -> None:
        send_query = await _sender(self._conn, self._statement)
        send_query(self._values, result_format=1)
        self._is_awaited = True
        self._conn.pgconn.flush()  # what does not fit into the socket buffer is sent while waiting for the result

    async def _answer(self, timeout_s: float | None = None) -> PGresult:
        self._is_awaited = False  # cancelling the wait ends the statement
        pgconn = self._conn.pgconn
        if pgconn.flush() == 0:
            pgconn.consume_input()  # what has already arrived need not be waited for
        return _check(await self._conn.wait(generators.execute(pgconn), timeout=timeout_s))


async def send(conn: Connection, statement: PreparedStatement, parameters: Parameters) -> PendingResult:
    """Send a statement without waiting for its result; raises as a cursor's `execute` does."""
    sent = PendingResult(conn, statement, statement.values(parameters))
    await sent._send()
    return sent


async def fetch_pipelined(conn: Connection, asked: Sequence[BoundStatement]) -> list[list[tuple[Any, ...]]]:
    """Execute several statements in one pipeline, in one transaction unless one is open; returns the rows of each.

    Raises as a cursor's `execute` does; statements after a failed one are not executed.
    """
    if len(asked) == 1:  # a pipeline would take longer
        [(statement, parameters)] = asked
        return [await statement.rows(conn, parameters)]
    sent = [(statement, statement.values(parameters)) for statement, parameters in asked]
    try:
        return await _in_turn(conn, sent)
    except psycopg.Error as exc:
        if not _may_be_repeated(conn, exc):
            raise
    return await _in_turn(conn, sent)


def _decoder(conn: Connection, result: PGresult) -> abc.Transformer:
    """A cached decoder for rows with a result's columns: choosing how to decode takes longer than decoding."""
    known = _decoders.setdefault(conn, {})
    types = tuple(map(result.ftype, range(result.nfields)))
    decoder = known.get(types)
    if decoder is None:
        decoder = known[types] = Transformer(conn.adapters)  # not bound to the connection, which it would keep alive
        decoder.set_loader_types([*types], Format.BINARY)
    return decoder


async def _sender(conn: Connection, statement: PreparedStatement) -> Callable[..., None]:
    """The function that sends a statement's values.

    A statement may no longer be prepared, as psycopg deallocates all after a rollback. It is then sent again; an open
    transaction does not allow that, so there it is sent unprepared.
    """
    if conn.pgconn.transaction_status == TransactionStatus.IDLE:
        return partial(conn.pgconn.send_query_prepared, await statement.name_on(conn))
    return partial(conn.pgconn.send_query_params, statement.text.encode())


async def _in_turn(
    conn: Connection, sent: Sequence[tuple[PreparedStatement, list[bytes | None]]]
) -> list[list[tuple[Any, ...]]]:
    pgconn = conn.pgconn
    ready = [(await _sender(conn, statement), values) for statement, values in sent]
    pgconn.enter_pipeline_mode()
    try:
        for send_query, values in ready:
            send_query(values, result_format=1)
        pgconn.pipeline_sync()
        results = await conn.wait(_communicate(pgconn, len(ready)))
    finally:
        try:
            pgconn.exit_pipeline_mode()
        except psycopg.OperationalError:  # not all results were read, so the connection is unusable
            with suppress(psycopg.Error):
                await conn.close()
    return [Rows(conn, _check(each)).all() for each in results]


def _communicate(pgconn: PGconn, statements: int) -> PQGen[list[list[PGresult]]]:
    yield from generators.send(pgconn)
    results = []
    for _ in range(statements):
        results.append((yield from generators.fetch_many(pgconn)))
    yield from generators.fetch_many(pgconn)  # the end of the pipeline
    return results


def _may_be_repeated(conn: Connection, failed: psycopg.Error) -> bool:
    """Whether a statement failed only because it is not prepared as remembered, and can be sent again."""
    _names.pop(conn, None)
    return failed.sqlstate in _STALE and conn.info.transaction_status == TransactionStatus.IDLE


def _check(results: Sequence[PGresult]) -> PGresult:
    result = results[0]  # a pooler reports a lost server in a further result
    if result.status in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
        return result
    raise psycopg.errors.error_from_result(result)
