"""An index file survives the database's restarts, and is not used if the database lacks some of its data."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from retrieval.index import array_file
from retrieval.store.embedded.programs import run_program
from retrieval.store.pool import open_pool
from tests.faults.servers import Server, Servers
from tests.faults.test_database_history import lose_transactions, written
from tests.integration.index.test_files import Keeper, every_namespace_is_large
from tests.integration.index.test_registry import assert_right, memory

__all__ = ["every_namespace_is_large"]


@asynccontextmanager
async def a_process(servers: Servers, folder: Path) -> AsyncIterator[Keeper]:
    """A process over whichever server is at the address."""
    async with open_pool(servers.url, 3) as pool:
        process = await Keeper.start(pool, folder)
        yield process
        await process.indexes.aclose()


async def has_file(process: Keeper) -> bool:
    """Whether a process started from the file; its index is right in either case."""
    index = await process.loaded()
    await assert_right(process)
    await process.ingest.add("n", [memory("last")])
    await assert_right(process)
    return bool(index.file)


@pytest.mark.parametrize("how", ["stopped", "killed"])
async def test_a_restart_of_the_database_leaves_it_usable(
    servers: Servers, primary: Server, tmp_path: Path, how: str
) -> None:
    """Also if a crash loses transactions whose numbers are used again."""
    async with a_process(servers, tmp_path) as process:
        await process.ingest.add("n", [memory("a"), memory("b")])
        await process.save()
        primary.child("walwriter").send_signal(signal.SIGSTOP)
        lose_transactions(primary)
        before = primary.next_xid
        if how == "killed":
            primary.kill()
        else:
            primary.child("walwriter").send_signal(signal.SIGCONT)
            primary.stop()
        primary.start()
        await written(process, "c", "a")
        assert (primary.next_xid < before) == (how == "killed")
    async with a_process(servers, tmp_path) as fresh:
        assert await has_file(fresh)


@pytest.mark.parametrize("is_lost", [False, True])
async def test_a_server_that_takes_over_may_lack_it(
    servers: Servers, primary: Server, tmp_path: Path, is_lost: bool
) -> None:
    """The second file is lost, with its memory."""
    standby = servers.new()
    async with a_process(servers, tmp_path) as process:
        await process.ingest.add("n", [memory("a")])
        await process.save()
        primary.back_up(standby, "-R")
        standby.start()
        await standby.has_replayed(primary)
        primary.child("walsender").send_signal(signal.SIGSTOP)
        await process.ingest.add("n", [memory("lost"), memory("a", "boats and more boats")])
        if is_lost:
            async with a_process(servers, tmp_path) as second:
                assert (await second.loaded()).file
                assert await second.save()
    primary.kill()
    standby.one("select pg_promote()")
    standby.serve()
    async with a_process(servers, tmp_path) as fresh:
        await written(fresh, "b", "c")
        assert await has_file(fresh) is not is_lost


async def test_a_standby_uses_it(servers: Servers, primary: Server, tmp_path: Path) -> None:
    """Over the same folder."""
    standby = servers.new()
    async with a_process(servers, tmp_path) as process:
        await process.ingest.add("n", [memory("a"), memory("b")])
        await process.save()
        primary.back_up(standby, "-R")
        standby.start()
        await process.ingest.add("n", [memory("c"), memory("a", "harbour")])
        await standby.has_replayed(primary)
        standby.serve()
        async with a_process(servers, tmp_path) as other:
            assert (await other.loaded()).file
            assert await other.ids("boats") == {"b", "c"}
            await assert_right(other)


async def test_an_older_state_lacks_it(servers: Servers, primary: Server, tmp_path: Path) -> None:
    backup = servers.new()
    async with a_process(servers, tmp_path) as process:
        await process.ingest.add("n", [memory("a")])
        primary.back_up(backup)
        await process.ingest.add("n", [memory("lost")])
        await process.save()
    primary.stop()
    backup.start()
    backup.serve()
    async with a_process(servers, tmp_path) as fresh:
        await written(fresh, "b")
        assert not await has_file(fresh)


async def test_a_restored_dump_is_another_database(
    servers: Servers, primary: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a process that lives on as for a new one, although the rows of the files are in the dump.

    It writes no file that it could not keep, as that may take more than a gigabyte.
    """
    dump = primary.pgdata / "dump"
    async with a_process(servers, tmp_path) as process:
        await process.ingest.add("n", [memory("a")])
        await process.save()
        run_program("pg_dump", "-Fc", "--exclude-extension=vector", "-f", dump, "-d", primary.url, owner=primary.pgdata)
        run_program("pg_restore", "--clean", "--if-exists", "-d", primary.url, dump, owner=primary.pgdata)
        assert not await has_file(process)
        with monkeypatch.context() as patch:
            patch.setattr(array_file, "write", None)
            assert not await process.save()
    async with a_process(servers, tmp_path) as fresh:
        assert not await has_file(fresh)
