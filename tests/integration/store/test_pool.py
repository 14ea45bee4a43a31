"""The pool: its connections' settings, what it survives, and its errors."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import numpy as np
import psycopg
import pytest
from pgvector import HalfVector

from retrieval.errors import MigrationError, StoreUnavailable
from retrieval.store import pool as pool_module
from retrieval.store import reachability
from retrieval.store.pool import Pool, connect, open_pool
from retrieval.store.reachability import Reachability
from tests.processes import PATIENCE_S

SECRET = "hunter2-of-the-database"


async def test_connections_are_set_up(pool: Pool) -> None:
    async with pool.connection() as db:
        assert db.autocommit
        row = await (
            await db.execute(
                "select current_setting('application_name'), current_setting('statement_timeout'), "
                "current_setting('jit'), current_setting('client_encoding')"
            )
        ).fetchone()
    assert row == ("trivet", "30s", "off", "UTF8")


async def test_times_are_read_whatever_the_databases_date_style(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as db:
        db.execute(f"alter database {db.info.dbname} set datestyle = 'German, DMY'")
    async with await connect(database_url) as single, open_pool(database_url, 4) as pool, pool.connection() as pooled:
        for conn in (single, pooled):
            [[time]] = await (await conn.execute("select timestamptz '2024-05-08 13:56Z'")).fetchall()
            assert time == datetime(2024, 5, 8, 13, 56, tzinfo=UTC)


async def test_writers_see_what_they_waited_for_whatever_the_databases_isolation(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as db:
        db.execute(f"alter database {db.info.dbname} set default_transaction_isolation = 'serializable'")
        async with open_pool(database_url, 4) as pool, pool.connection() as writer, writer.transaction():
            ask = "select count(*) from namespace"
            assert await (await writer.execute(ask)).fetchone() == (0,)
            db.execute("insert into namespace (name, settings) values ('n', '{}')")
            assert await (await writer.execute(ask)).fetchone() == (1,)


async def test_transactions_have_no_time_limit_whatever_the_databases(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as db:
        db.execute(f"alter database {db.info.dbname} set transaction_timeout = '1h'")
    async with await connect(database_url) as single, open_pool(database_url, 4) as pool, pool.connection() as pooled:
        for conn in (single, pooled):
            assert await (await conn.execute("show transaction_timeout")).fetchone() == ("0",)


async def test_idle_connections_are_kept_and_arrays_may_have_nulls_whatever_the_databases_settings(
    database_url: str,
) -> None:
    with psycopg.connect(database_url, autocommit=True) as db:
        db.execute(f"alter database {db.info.dbname} set idle_session_timeout = '1h'")
        db.execute(f"alter database {db.info.dbname} set array_nulls = off")
    async with open_pool(database_url, 4) as pool, pool.connection() as conn:
        assert await (await conn.execute("show idle_session_timeout")).fetchone() == ("0",)
        assert await (await conn.execute("select '{NULL}'::text[]")).fetchone() == ([None],)


async def test_vectors_go_in_and_out(pool: Pool) -> None:
    vector = np.array([0.5, -0.25, 2.0], dtype=np.float32)
    async with pool.connection() as db:
        cursor = await db.execute("select %(v)s::halfvec", {"v": HalfVector(vector)})
        row = await cursor.fetchone()
    assert row is not None
    assert isinstance(row[0], HalfVector)
    assert row[0].to_list() == vector.tolist()


async def test_the_urls_own_name_wins(database_url: str) -> None:
    async with open_pool(f"{database_url}&application_name=mine", 4) as pool, pool.connection() as db:
        row = await (await db.execute("select current_setting('application_name')")).fetchone()
    assert row == ("mine",)


async def test_size_connections_work_side_by_side_and_the_next_waits(database_url: str) -> None:
    held, may_end = list[int](), asyncio.Event()

    async def hold(pool: Pool) -> None:
        async with pool.connection() as db:
            held.append(db.info.backend_pid)
            await may_end.wait()

    async with open_pool(database_url, 4) as pool, asyncio.timeout(60):
        holding = asyncio.gather(*(hold(pool) for _ in range(5)))
        while True:
            if len(held) == 4 and pool.get_stats().get("requests_waiting"):
                break
            await asyncio.sleep(0.01)
        assert len(set(held)) == len(held) == 4
        may_end.set()
        await holding
    assert len(held) == 5
    assert len(set(held)) == 4


async def test_a_connection_that_nobody_waits_for_any_more_is_closed(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it exists already and is being configured."""
    opened, setting_up = list[psycopg.AsyncConnection[Any]](), asyncio.Event()

    async def wait(conn: psycopg.AsyncConnection[Any], *_: object) -> None:
        opened.append(conn)
        setting_up.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(psycopg.AsyncConnection, "execute", wait)
    connecting = asyncio.create_task(connect(database_url))
    await setting_up.wait()
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    assert [conn.closed for conn in opened] == [True]


async def test_connections_that_the_server_closed_are_replaced(pool: Pool, database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as other:
        other.execute(
            "select pg_terminate_backend(pid, 60000) from pg_stat_activity where datname = current_database() "
            "and pid <> pg_backend_pid()"
        )
    async with asyncio.timeout(60):
        for _ in range(8):
            async with pool.connection() as db:
                assert await (await db.execute("select 1")).fetchone() == (1,)


async def test_a_database_that_is_not_migrated_is_an_error(empty_database_url: str) -> None:
    with pytest.raises(MigrationError, match="run `trivet migrate`"):
        async with open_pool(empty_database_url, 4):
            pass


async def test_an_unreachable_database_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the wait that a connection of a pool may take."""
    monkeypatch.setattr("retrieval.store.pool.WAIT_TIMEOUT_S", 3_600.0)
    with pytest.raises(StoreUnavailable, match=r"cannot reach the database notes at 127\.0\.0\.1:1: .*refused"):
        async with asyncio.timeout(60), open_pool(f"postgresql://ann:{SECRET}@127.0.0.1:1/notes", 4):
            pass


async def test_a_server_that_never_answers_is_an_error_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://ann:{SECRET}@127.0.0.1:{silent.getsockname()[1]}/notes?connect_timeout=2"
        with pytest.raises(StoreUnavailable, match="cannot reach the database"):
            async with asyncio.timeout(60):
                await connect(url)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ann:{SECRET}@127.0.0.1:1/notes",
        f"postgresql://ann:{SECRET}@127.0.0.1:one/notes",
        f"postgresql://ann:{SECRET}@127.0.0.1:1/notes?nonsense=1",
        f"postgresql://ann:{SECRET}@[127.0.0.1:1/notes",
        f"postgresql://127.0.0.1:1/notes?user=ann&password={SECRET}&sslpassword={SECRET}",
        *(f"postgresql://ann:x{sign}{SECRET}@127.0.0.1:1/notes" for sign in "@/?#:%"),
        f"ann {SECRET}",
    ],
)
async def test_the_password_is_never_told(url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(StoreUnavailable) as caught:
        await connect(url)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert SECRET not in caplog.text


async def test_a_session_that_began_read_only_does_not_outlast_that(database_url: str) -> None:
    """Hosts set this default while a disk is nearly full, and a session keeps the default of when it began."""
    with psycopg.connect(database_url, autocommit=True) as db:
        alter = f"alter database {db.info.dbname} %s default_transaction_read_only"
        db.execute((alter % "set" + " = on").encode())
        async with open_pool(database_url, 4) as pool, asyncio.timeout(60):
            db.execute((alter % "reset").encode())
            outcomes = [await _writes(pool) for _ in range(5)]
    assert (outcomes[0], outcomes[-1]) == (False, True), "each of them is refused at most once"


async def _writes(pool: Pool) -> bool:
    with suppress(StoreUnavailable):
        async with pool.connection() as conn:
            await conn.execute("create table if not exists written ()")
            return True
    return False


async def test_too_few_connections_is_an_error(
    database_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wait = Pool.wait

    async def until_refused(pool: Pool, timeout: float) -> None:
        """Its time is over once the database has refused a connection, which a busy machine may put off."""
        async with asyncio.timeout(PATIENCE_S):
            while "refuses another connection" not in caplog.text:  # noqa: ASYNC110 - nothing signals it
                await asyncio.sleep(0.01)
        await wait(pool, timeout=0.0)

    monkeypatch.setattr(Pool, "wait", until_refused)
    with psycopg.connect(database_url, autocommit=True) as db:
        db.execute("create role pool_of_two login connection limit 2")
    try:
        with pytest.raises(StoreUnavailable, match="does not give 4 connections"):
            async with open_pool(database_url.replace("postgres@", "pool_of_two@"), 4):
                pass
    finally:
        with psycopg.connect(database_url, autocommit=True) as db:
            db.execute("drop role pool_of_two")
    assert "too many connections for role" in caplog.text


async def _pid(pool: Pool) -> int:
    async with pool.connection() as db:
        return db.info.backend_pid


async def test_what_was_given_back_last_is_given_out_first(database_url: str) -> None:
    """Sequential uses share one server process; concurrent ones use one each."""
    async with open_pool(database_url, 4) as pool:
        assert len({await _pid(pool) for _ in range(10)}) == 1
        async with pool.connection() as one, pool.connection() as two, pool.connection() as three:
            held = {one.info.backend_pid, two.info.backend_pid, three.info.backend_pid}
            assert len(held) == 3
            assert await _pid(pool) not in held
        assert len({await _pid(pool) for _ in range(10)}) == 1


async def test_who_waits_comes_before_who_asks_again(database_url: str) -> None:
    """A task that returns a connection and requests one at once does not starve the others."""
    async with open_pool(database_url, 4) as pool:
        served = list[int]()
        stop = asyncio.Event()

        async def again() -> None:
            while not stop.is_set():
                async with pool.connection():
                    await asyncio.sleep(0)

        async def once(number: int) -> None:
            async with pool.connection():
                served.append(number)

        busy = [asyncio.create_task(again()) for _ in range(4)]
        await asyncio.sleep(0)
        async with asyncio.timeout(60):
            await asyncio.gather(*(once(number) for number in range(20)))
        stop.set()
        await asyncio.gather(*busy)
    assert served == list(range(20))


async def test_connections_are_seen_by_the_pool_from_time_to_time(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which replaces those that are too old."""
    async with open_pool(database_url, 4) as pool:
        monkeypatch.setattr(pool_module, "WARM_S", 0.0)
        assert len({await _pid(pool) for _ in range(8)}) == 4


async def test_closing_closes_the_warm_ones_too(database_url: str) -> None:
    async with open_pool(database_url, 4) as pool:
        async with pool.connection() as one, pool.connection() as two:
            pass
        late = await pool.getconn()
        assert late is one
    assert [each.closed for each in (one, two)] == [False, True]
    await pool.putconn(late)
    assert late.closed


@pytest.mark.parametrize("turns", range(8))
async def test_an_attempt_that_the_closing_pool_overtakes_leaves_no_connection_open(
    database_url: str, turns: int
) -> None:
    """The watch ends some turns of the event loop after the database has accepted the attempt."""
    opened = list[psycopg.AsyncConnection[tuple[object, ...]]]()
    accepted = asyncio.Event()

    async def attempt() -> psycopg.AsyncConnection[tuple[object, ...]]:
        opened.append(connection := await connect(database_url))
        if len(opened) > 1:
            accepted.set()
        return connection

    watch = Reachability(attempt)
    async with asyncio.timeout(60), watch.watched():
        watch.recheck()
        await accepted.wait()
        for _ in range(turns):
            await asyncio.sleep(0)
    assert len(opened) == 2
    assert all(connection.closed for connection in opened)


async def test_an_attempt_that_the_closing_pool_overtakes_ends_with_it(database_url: str) -> None:
    naps = iter((0, 60))
    begun = asyncio.Event()

    async def attempt() -> psycopg.AsyncConnection[tuple[object, ...]]:
        connection = await connect(database_url)
        if nap := next(naps):
            begun.set()
        try:
            await connection.execute("select pg_sleep(%s)", [nap])
        except BaseException:
            await connection.close()
            raise
        return connection

    watch = Reachability(attempt)
    async with asyncio.timeout(30), watch.watched():
        watch.recheck()
        await begun.wait()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_an_event_loop_that_was_late_is_not_a_lost_database(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At whatever moment of the wait it was: here it is in time again when the wait ends."""
    monkeypatch.setattr(reachability, "ANSWER_TIMEOUT_S", 1.5)
    ways = iter((0.0, 1.0))
    accepted = asyncio.Event()

    async def attempt() -> psycopg.AsyncConnection[tuple[object, ...]]:
        if busy_s := next(ways):
            time.sleep(busy_s)  # noqa: ASYNC251  # what makes it late
            await asyncio.sleep(0.9)
            accepted.set()
        return await connect(database_url)

    watch = Reachability(attempt)
    async with asyncio.timeout(60), watch.watched():
        watch.recheck()
        await accepted.wait()
    assert watch.losses == 0
