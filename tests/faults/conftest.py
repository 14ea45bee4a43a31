"""PostgreSQL servers of a test's own."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from retrieval.store.embedded.instance import EmbeddedPostgres
from retrieval.store.embedded.programs import run_program
from retrieval.store.migrate import migrate
from tests.faults.servers import Server, Servers
from tests.folders import database_folder


@pytest.fixture(scope="session")
def migrated() -> Iterator[Path]:
    """The data folder of a server whose database is migrated and has no rows; it does not run."""
    with database_folder() as folder:
        server = EmbeddedPostgres(folder / "data", settings={"fsync": "off", "shared_buffers": "64MB"})
        asyncio.run(migrate(server.start()))
        server.stop()
        pgdata = server.data_dir / "postgres"
        run_program("pg_resetwal", "--wal-segsize", "1", "-D", pgdata, owner=pgdata)  # there is less to copy
        yield pgdata


@pytest.fixture
def servers(migrated: Path) -> Iterator[Servers]:
    """None yet; those that a test makes are killed after it."""
    with database_folder() as folder:
        made = Servers(folder)
        yield made
        made.kill()


@pytest.fixture
def primary(servers: Servers, migrated: Path) -> Server:
    """A server that runs at the address."""
    server = servers.new()
    subprocess.run(("cp", "-a", migrated, server.pgdata), check=True)
    server.start()
    server.serve()
    return server
