"""Waits for PostgreSQL with less work for the event loop than psycopg's own wait, which sets a timer each time."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus
from psycopg.waiting import Wait

Result = TypeVar("Result")

_CANCEL_TIMEOUT_S = 5.0
"""How long a cancelled statement may take to end before its connection is closed."""


async def wait(conn: AsyncConnection[Any], communication: PQGen[Result]) -> Result:
    """Run a generator of psycopg to its end, as `conn.wait` does; if cancelled, end the statement in the server."""
    try:
        events = next(communication)
    except StopIteration as ended:
        result: Result = ended.value
        return result
    try:
        await asyncio.sleep(0)  # what other tasks have to do takes longer than most answers
        return await _run(conn, communication, events)
    except asyncio.CancelledError:
        await _end(conn, communication, events)
        raise


async def _run(conn: AsyncConnection[Any], communication: PQGen[Result], events: int) -> Result:
    """Go on with a generator that waits for `events` of its socket; it asks again if they have not happened."""
    try:
        while True:
            events = communication.send(events)
            await _any(events, conn.pgconn.socket)
    except StopIteration as ended:
        result: Result = ended.value
        return result


async def _any(events: int, socket: int) -> None:
    """Wait until a socket can be read, or written if that is among the events."""
    loop = asyncio.get_running_loop()
    happened = loop.create_future()
    loop.add_reader(socket, _resolve, happened)
    if events & Wait.W:
        loop.add_writer(socket, _resolve, happened)
    try:
        await happened
    finally:
        loop.remove_reader(socket)
        if events & Wait.W:
            loop.remove_writer(socket)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def _end(conn: AsyncConnection[Any], communication: PQGen[Any], events: int) -> None:
    """Cancel the running statement and read what the server still sends; closes the connection if that fails."""
    try:
        with suppress(psycopg.Error, TimeoutError):
            async with asyncio.timeout(_CANCEL_TIMEOUT_S):
                await conn.cancel_safe(timeout=_CANCEL_TIMEOUT_S)
                await _run(conn, communication, events)
    finally:
        if conn.pgconn.transaction_status == TransactionStatus.ACTIVE:
            await conn.close()
