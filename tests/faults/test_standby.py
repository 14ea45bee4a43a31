"""Searches on a standby, whose snapshots do not list running transactions of its primary, and its promotion."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from retrieval.api import app
from retrieval.engine import Trivet
from retrieval.errors import StoreUnavailable
from retrieval.index import small_namespaces
from retrieval.index.namespace_index import NamespaceIndex
from retrieval.ingest import transaction
from retrieval.store.changes import one_snapshot
from retrieval.store.pool import open_pool
from retrieval.store.visibility import by_id
from retrieval.types.search import SearchRequest
from tests.faults.servers import Server, Servers
from tests.integration.index.test_registry import Process, assert_right, memory
from tests.serving import client_of, settings_for


@pytest.fixture
async def writer(primary: Server) -> AsyncIterator[Process]:
    """A process over the primary."""
    async with open_pool(primary.url, 3) as pool:
        yield Process(pool)


@pytest.fixture
async def standby(servers: Servers, primary: Server, writer: Process) -> Server:
    """A standby of the primary, with four memories."""
    await writer.ingest.add("n", [memory(id_) for id_ in "abcd"])
    made = servers.new()
    primary.back_up(made, "-R")
    made.start()
    await made.has_replayed(primary)
    return made


@pytest.fixture
async def reader(standby: Server) -> AsyncIterator[Process]:
    """A process over the standby."""
    async with open_pool(standby.url, 3) as pool:
        process = Process(pool)
        yield process
        await process.indexes.aclose()


@pytest.mark.parametrize("how", ["followed", "read anew"])
async def test_a_commit_out_of_order_is_not_missed(
    primary: Server, standby: Server, writer: Process, reader: Process, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction that began before others and ends after them, of whatever the standby has replayed meanwhile."""
    if how == "read anew":
        monkeypatch.setattr(small_namespaces, "MOST_ORDINALS", 0)
        monkeypatch.setattr(NamespaceIndex, "max_incremental", 0)
    assert await reader.ids("boats") == set("abcd")
    async with writer.pool.connection() as conn, conn.transaction():
        await transaction.delete(conn, "n", by_id(["b"]))
        for id_ in "xy":
            await writer.ingest.add("n", [memory(id_)])
            await standby.has_replayed(primary)
            assert id_ in await reader.ids("boats")
        assert await reader.ids("boats") == set("abcdxy")
        before = (await reader.snapshot()).index
        changed = before.changed
        assert (await reader.snapshot()).index is before
        assert before.changed == changed, "what has been taken in is not taken in again"
    await standby.has_replayed(primary)
    assert await reader.ids("boats") == set("acdxy")
    await assert_right(reader)


async def test_it_becomes_a_primary(primary: Server, standby: Server, writer: Process, reader: Process) -> None:
    """While connections to it stay open; running transactions of the old one are lost."""
    async with writer.pool.connection() as conn, conn.transaction(force_rollback=True):
        await transaction.delete(conn, "n", by_id(["b"]))
        await writer.ingest.add("n", [memory("x")])
        await standby.has_replayed(primary)
        assert await reader.ids("boats") == set("abcdx")
        standby.one("select pg_promote()")
        await reader.ingest.add("n", [memory("y")])
        await reader.ingest.delete("n", "c")
        assert await reader.ids("boats") == set("abdxy")
    await assert_right(reader)


async def found(trivet: Trivet) -> set[str]:
    """The memories that a search finds; all legs must answer."""
    answer = await trivet.search("n", SearchRequest(query="Who paints boats?"))
    assert answer.degraded == []
    return {result.id for result in answer.results}


async def test_searches_go_on_while_a_standby_takes_over(servers: Servers, primary: Server, standby: Server) -> None:
    """They write nothing, so they are answered before the promotion; later writes are found."""
    async with Trivet.open(settings_for(servers.url)) as trivet:
        await trivet.delete_namespace("n")
        await trivet.add("n", [memory("a", "Ida paints boats."), memory("b", "Bo paints his boats and sells them.")])
        await standby.has_replayed(primary)
        assert await found(trivet) == {"a", "b"}
        primary.kill()
        standby.serve()
        assert await found(trivet) == {"a", "b"}
        with pytest.raises(StoreUnavailable, match="read-only transaction"):
            await trivet.delete("n", "a")
        standby.one("select pg_promote()")
        await trivet.delete("n", "a")
        assert await found(trivet) == {"b"}


async def test_a_server_starts_on_a_standby_that_is_up_to_date(
    primary: Server, standby: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with Trivet.open(settings_for(primary.url)):
        pass  # writes the profiles
    await standby.has_replayed(primary)
    monkeypatch.setattr(app, "TRIM_INTERVAL_S", 0.01)
    passes, logged = asyncio.Semaphore(0), app._logged

    async def noted(work: Any, name: str, *args: Any, **options: Any) -> str | None:
        failure = await logged(work, name, *args, **options)
        if name == "trimming":
            passes.release()
        return failure

    monkeypatch.setattr(app, "_logged", noted)
    settings = settings_for(standby.url)
    async with Trivet.open(settings) as trivet, client_of(app.create_app(settings, trivet)):
        assert await found(trivet) == {"a"}, "the others say the same"
        with pytest.raises(StoreUnavailable, match="read-only transaction"):
            await trivet.delete("n", "a")
        for _ in range(3):
            await passes.acquire()
    assert caplog.text.count("request trimming failed") == 1, "each pass does, and one says so"


async def test_a_read_that_a_standby_ends_is_no_conflict_of_the_caller(
    primary: Server, standby: Server, writer: Process, reader: Process
) -> None:
    """Rows in its snapshot are removed on the primary; the reader must retry."""
    async with reader.pool.connection() as conn:
        await conn.execute("alter system set max_standby_streaming_delay = 0")
        await conn.execute("select pg_reload_conf()")

    async def read() -> None:
        async with reader.pool.connection() as conn, one_snapshot(conn):
            await conn.execute("select count(*) from memory")
            await writer.ingest.delete("n", "a")
            async with writer.pool.connection() as other:
                await other.execute("vacuum memory")
            await writer.ingest.add("n", [memory("e")])  # a vacuum's log alone is not flushed
            await standby.has_replayed(primary)
            await conn.execute("select count(*) from memory")

    with pytest.raises(StoreUnavailable, match="conflict with recovery"):
        await read()
