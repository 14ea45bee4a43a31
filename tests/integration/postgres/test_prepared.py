"""Our own prepared statements: the same results as a cursor's, whatever happened on the connection before."""

from __future__ import annotations

import asyncio
import gc
import weakref

import psycopg
import pytest

from postgres.arrays import array_text
from postgres.prepared import BoundStatement, PreparedStatement, fetch_pipelined, send
from retrieval.store.pool import Pool, connect

_SUM = PreparedStatement("select %(a)s::int + %(b)s::int, %(a)s::int, 5 %% 3, %(text)s::text")
_ROWS = PreparedStatement("select n, '{\"a\": 1}'::jsonb from unnest(%(numbers)s::int[]) as n order by n")
_SLEEP = PreparedStatement("select pg_sleep(%(seconds)s::float8)")
_DIVIDE = PreparedStatement("select 1 / %(by)s::int")


async def test_rows_are_those_of_a_cursor(pool: Pool) -> None:
    async with pool.connection() as conn:
        for text in ("", "ä 'quoted' %s", None):
            assert await _SUM.rows(conn, {"b": 2, "a": 40, "text": text}) == [(42, 40, 2, text)]
        assert await _ROWS.rows(conn, {"numbers": array_text([3, 1])}) == [(1, {"a": 1}), (3, {"a": 1})]
        assert await _ROWS.rows(conn, {"numbers": "{}"}) == []


async def test_several_are_answered_in_their_order(pool: Pool) -> None:
    """Also if the results exceed the socket buffers, and repeatedly on the same connection."""
    many = array_text(range(100_000))
    async with pool.connection() as conn:
        for _ in range(3):
            asked: list[BoundStatement] = [
                (_ROWS, {"numbers": many}),
                (_SUM, {"a": 1, "b": 2, "text": "x"}),
                (_ROWS, {"numbers": "{7}"}),
            ]
            first, second, third = await fetch_pipelined(conn, asked)
            assert [len(first), first[-1][0]] == [100_000, 99_999]
            assert (second, third) == ([(3, 1, 2, "x")], [(7, {"a": 1})])
        assert await (await conn.execute("select 1")).fetchone() == (1,)


async def test_an_error_is_the_drivers_and_leaves_the_connection_usable(pool: Pool) -> None:
    async with pool.connection() as conn:
        for _ in range(2):
            with pytest.raises(psycopg.errors.DivisionByZero):
                await _DIVIDE.rows(conn, {"by": 0})
            with pytest.raises(psycopg.errors.DivisionByZero):
                await fetch_pipelined(conn, [(_DIVIDE, {"by": 1}), (_DIVIDE, {"by": 0}), (_DIVIDE, {"by": 1})])
            with pytest.raises(psycopg.errors.InvalidTextRepresentation):
                await _DIVIDE.rows(conn, {"by": "one"})
            with pytest.raises(psycopg.DataError, match="NUL"):
                await _SUM.rows(conn, {"a": 1, "b": 1, "text": "a\x00b"})
            assert await fetch_pipelined(conn, [(_DIVIDE, {"by": 1}), (_DIVIDE, {"by": -1})]) == [[(1,)], [(-1,)]]


@pytest.mark.parametrize("together", [False, True])
async def test_what_the_server_has_forgotten_is_prepared_again(pool: Pool, together: bool) -> None:
    """Psycopg deallocates everything after a rollback."""

    async def ask(conn: psycopg.AsyncConnection[tuple[object, ...]]) -> object:
        if together:
            return (await fetch_pipelined(conn, [(_DIVIDE, {"by": 1}), (_SUM, {"a": 1, "b": 1, "text": None})]))[0]
        return await _DIVIDE.rows(conn, {"by": 1})

    async with pool.connection() as conn:
        await ask(conn)
        for statement in ("deallocate all", "discard plans", "drop table if exists nothing"):
            await conn.execute(statement)
            assert await ask(conn) == [(1,)]
        async with conn.transaction(force_rollback=True):
            await conn.execute("select 1")
        await conn.execute("select 1")
        assert await ask(conn) == [(1,)]


@pytest.mark.parametrize("together", [False, True])
async def test_a_transaction_goes_on_with_what_the_server_has_forgotten(pool: Pool, together: bool) -> None:
    """An error would end it, so that the statement could not be sent again."""
    look = PreparedStatement("select * from changing")
    asked: list[BoundStatement] = [(look, {})] + [(_DIVIDE, {"by": 1})] * together
    async with pool.connection() as conn:
        await conn.execute("create temp table changing as select 1 as a")
        assert (await fetch_pipelined(conn, asked))[0] == [(1,)]
        async with conn.transaction(force_rollback=True):
            await conn.execute("select 1")
        async with conn.transaction():
            assert (await fetch_pipelined(conn, asked))[0] == [(1,)]
        assert (await fetch_pipelined(conn, asked))[0] == [(1,)]
        await conn.execute("alter table changing add b int default 2")
        async with conn.transaction():
            assert (await fetch_pipelined(conn, asked))[0] == [(1, 2)]
            assert (await (await send(conn, look, {})).rows())[0] == (1, 2)


async def test_a_table_that_changed_is_read_anew(pool: Pool) -> None:
    look = PreparedStatement("select * from changing")
    async with pool.connection() as conn:
        await conn.execute("create temp table changing as select 1 as a")
        assert await look.rows(conn, {}) == [(1,)]
        await conn.execute("alter table changing add b int default 2")
        assert await look.rows(conn, {}) == [(1, 2)]


@pytest.mark.parametrize("together", [False, True])
async def test_a_cancelled_wait_ends_the_statement_and_keeps_the_connection(pool: Pool, together: bool) -> None:
    async with pool.connection() as conn:
        for _ in range(2):
            asked = [(_SLEEP, {"seconds": 3_600.0})] + [(_DIVIDE, {"by": 1})] * together
            task = asyncio.create_task(fetch_pipelined(conn, asked))
            await asyncio.sleep(0.2)
            task.cancel()
            async with asyncio.timeout(60):
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert await _DIVIDE.rows(conn, {"by": 1}) == [(1,)]


@pytest.mark.parametrize("together", [False, True])
async def test_a_lost_connection_is_an_error_and_closed(pool: Pool, together: bool) -> None:
    async with pool.connection() as conn, pool.connection() as other:
        asked = [(_SLEEP, {"seconds": 3_600.0})] + [(_DIVIDE, {"by": 1})] * together
        task = asyncio.create_task(fetch_pipelined(conn, asked))
        await asyncio.sleep(0.2)
        await other.execute("select pg_terminate_backend(%s)", (conn.info.backend_pid,))
        async with asyncio.timeout(60):
            with pytest.raises(psycopg.OperationalError):
                await task
        assert conn.closed
        with pytest.raises(psycopg.OperationalError):
            await fetch_pipelined(conn, asked)


async def test_what_is_cancelled_while_it_is_sent_leaves_no_half_statement(pool: Pool) -> None:
    """A statement larger than the socket buffer: the connection answers the next one, or is closed."""
    for turns in range(3):
        async with pool.connection() as conn:
            asked: list[BoundStatement] = [(_SUM, {"a": 1, "b": 1, "text": "x" * 20_000_000})]
            task = asyncio.create_task(fetch_pipelined(conn, asked))
            for _ in range(turns + 3):
                await asyncio.sleep(0)
            task.cancel()
            async with asyncio.timeout(60):
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert conn.closed or await _DIVIDE.rows(conn, {"by": 1}) == [(1,)]


async def test_results_of_one_shape_are_read_in_turn(pool: Pool) -> None:
    async with pool.connection() as conn:
        first, second = [await (await send(conn, _ROWS, {"numbers": numbers})).rows() for numbers in ("{1,2}", "{3}")]
        assert [first[1], second[0], first[0]] == [(2, {"a": 1}), (3, {"a": 1}), (1, {"a": 1})]
        assert await _ROWS.rows(conn, {"numbers": "{4,5}"}) == [(4, {"a": 1}), (5, {"a": 1})]
        assert first[0] == (1, {"a": 1})


async def test_closed_connections_are_not_kept_in_memory(database_url: str) -> None:
    conn = await connect(database_url)
    assert await _DIVIDE.rows(conn, {"by": 1}) == [(1,)]
    await conn.close()
    closed = weakref.ref(conn)
    del conn
    async with await connect(database_url) as another:
        assert await _DIVIDE.rows(another, {"by": 1}) == [(1,)]
    gc.collect()
    assert closed() is None
