"""A server process keeps running while its database loses the end of its history."""

from __future__ import annotations

import os
import signal

import psycopg
import pytest

from retrieval.errors import StoreUnavailable
from retrieval.store.embedded.programs import run_program
from tests.faults.servers import Server, Servers, until
from tests.integration.index.test_registry import Process, assert_right, memory

LOST = 20
"""Transactions whose numbers are used again."""


async def written(process: Process, *ids: str) -> None:
    """Add memories, as soon as the database answers again."""

    async def added() -> bool:
        try:
            await process.ingest.add("n", [memory(ids[0])])
        except StoreUnavailable:
            return False
        return True

    await until(added)
    for id_ in ids[1:]:
        await process.ingest.add("n", [memory(id_)])


def lose_transactions(server: Server) -> None:
    """Transactions that others see as committed, and whose records a crash loses."""
    with psycopg.connect(server.url, autocommit=True) as db:
        for _ in range(LOST):
            with db.transaction(force_rollback=True):
                db.execute("select pg_current_xact_id()")


@pytest.mark.parametrize("crash", ["postmaster", "backend"])
async def test_numbers_of_transactions_are_given_out_again_after_a_crash(
    process: Process, primary: Server, crash: str
) -> None:
    """Of all of PostgreSQL, or of one of its processes, after which it restarts without a new postmaster."""
    await process.ingest.add("n", [memory("a")])
    wal_writer = primary.child("walwriter")
    wal_writer.send_signal(signal.SIGSTOP)  # so that asynchronous commits are not flushed
    lose_transactions(primary)
    assert await process.ids("boats") == {"a"}
    before = primary.next_xid
    if crash == "postmaster":
        primary.kill()
        primary.start()
    else:
        with psycopg.connect(primary.url) as db:
            os.kill(db.info.backend_pid, signal.SIGKILL)
            wal_writer.kill()
    await written(process, "b", "c", "d")
    assert primary.next_xid < before
    assert await process.ids("boats") == {"a", "b", "c", "d"}
    await assert_right(process)


async def test_another_server_takes_over_that_lacks_the_last_commits(
    process: Process, servers: Servers, primary: Server
) -> None:
    """Their numbers and their memories' ordinals are used again by others."""
    await process.ingest.add("n", [memory("a")])
    standby = servers.new()
    primary.back_up(standby, "-R")
    standby.start()
    await standby.has_replayed(primary)
    primary.child("walsender").send_signal(signal.SIGSTOP)
    await process.ingest.add("n", [memory("lost"), memory("a", "boats and more boats")])
    assert await process.ids("boats") == {"a", "lost"}
    before = primary.next_xid
    primary.kill()
    standby.one("select pg_promote()")
    standby.serve()
    assert standby.next_xid < before
    await written(process, "b", "c")
    assert await process.ids("boats") == {"a", "b", "c"}
    await assert_right(process)


async def test_an_older_state_is_restored(process: Process, servers: Servers, primary: Server) -> None:
    """From a base backup, at the same address."""
    await process.ingest.add("n", [memory("a")])
    backup = servers.new()
    primary.back_up(backup)
    await process.ingest.add("n", [memory("lost")])
    assert await process.ids("boats") == {"a", "lost"}
    before = primary.next_xid
    primary.stop()
    backup.start()
    backup.serve()
    assert backup.next_xid < before
    await written(process, "b")
    assert await process.ids("boats") == {"a", "b"}
    await assert_right(process)


async def test_a_dump_is_restored(process: Process, primary: Server) -> None:
    """Into the existing database, while connections to it stay open."""
    await process.ingest.add("n", [memory("a")])
    dump = primary.pgdata / "dump"
    run_program("pg_dump", "-Fc", "--exclude-extension=vector", "-f", dump, "-d", primary.url, owner=primary.pgdata)
    await process.ingest.add("n", [memory("lost")])
    assert await process.ids("boats") == {"a", "lost"}
    run_program("pg_restore", "--clean", "--if-exists", "-d", primary.url, dump, owner=primary.pgdata)
    assert await process.ids("boats") == {"a"}
    await assert_right(process)
