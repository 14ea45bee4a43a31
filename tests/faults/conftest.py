"""A test's own PostgreSQL servers."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from retrieval.store.embedded.instance import EmbeddedPostgres
from retrieval.store.embedded.programs import run_program
from retrieval.store.migrate import migrate
from retrieval.store.pool import open_pool
from tests.faults.servers import FAST, Server, Servers
from tests.folders import database_folder
from tests.integration.index.test_registry import Process
from tests.processes import new_data_dir, quit_postgres_in


@pytest.fixture(scope="session")
def template() -> Iterator[Path]:
    """A data folder in which Trivet was used before, without rows; copying it is faster than making one."""
    with new_data_dir() as folder:
        server = EmbeddedPostgres(folder, settings=FAST)
        asyncio.run(migrate(server.start()))
        server.stop()
        pgdata = folder / "postgres"
        run_program("pg_resetwal", "--wal-segsize", "1", "-D", pgdata, owner=pgdata)  # less to copy
        with (pgdata / "postgresql.conf").open("a", encoding="utf-8") as conf:
            conf.write("fsync = off\n")
        yield folder


@pytest.fixture
def servers() -> Iterator[Servers]:
    """None yet; those that a test starts are ended after it."""
    with database_folder() as folder:
        yield Servers(folder)
        quit_postgres_in(folder)


@pytest.fixture
def primary(servers: Servers, template: Path) -> Server:
    """A server that runs at the address."""
    server = servers.new()
    subprocess.run(("cp", "-a", template / "postgres", server.pgdata), check=True)
    server.start()
    server.serve()
    return server


@pytest.fixture
async def process(servers: Servers, primary: Server) -> AsyncIterator[Process]:
    """A server process over whichever PostgreSQL is at the address."""
    async with open_pool(servers.url, 3) as pool:
        process = Process(pool)
        yield process
        await process.indexes.aclose()


@pytest.fixture
def data_dir(data_dir: Path, template: Path) -> Path:
    """A copy of it, on a PostgreSQL that does not wait for the disk."""
    subprocess.run(("cp", "-a", template, data_dir), check=True)
    return data_dir
