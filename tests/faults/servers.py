"""A test's own PostgreSQL servers, to kill and copy, at an address that can be given to another one."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import psycopg

from retrieval.store.embedded.cluster import Cluster
from retrieval.store.embedded.instance import DATABASE
from retrieval.store.embedded.programs import is_root, run_program
from tests.processes import PATIENCE_S

FAST = {"fsync": "off", "shared_buffers": "64MB"}
"""Settings of a PostgreSQL that does not wait for the disk."""

_SETTINGS = {
    "autovacuum": "off",
    "bgwriter_delay": "10s",
    "checkpoint_timeout": "1h",
    "fsync": "off",
    "max_wal_senders": "4",
    "min_wal_size": "4MB",
    "shared_buffers": "64MB",
    "wal_level": "replica",
}
"""Only the test writes the log. Without fsync, data that a killed process handed to the system are not lost."""


class Server:
    """PostgreSQL on its own data folder."""

    def __init__(self, pgdata: Path, address: Path) -> None:
        self._cluster = Cluster(pgdata)
        self._address = address

    @property
    def pgdata(self) -> Path:
        """Its data folder, which need not exist yet."""
        return self._cluster.pgdata

    def start(self) -> None:
        """Start it, including crash recovery."""
        self._cluster.start(_SETTINGS)

    def stop(self) -> None:
        """Stop it cleanly."""
        self._cluster.stop()

    def serve(self) -> None:
        """Give it the address where Trivet connects."""
        self._address.unlink(missing_ok=True)
        self._address.symlink_to(self._cluster.socket_folder())

    def kill(self) -> None:
        """Kill -9 of the postmaster and of all its children."""
        if not self._cluster.is_running():
            return
        postmaster = self._postmaster()
        everybody = [postmaster, *postmaster.children()]
        for process in everybody:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        while any(map(_is_alive, everybody)):
            time.sleep(0.01)

    def child(self, kind: str) -> psutil.Process:
        """The child with that name; waits for it, since a standby may reconnect."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            with suppress(psutil.NoSuchProcess):
                for each in self._postmaster().children():
                    if f"postgres: {kind}" in " ".join(each.cmdline()):
                        return each
            time.sleep(0.05)
        raise AssertionError(f"the server has no {kind}")

    def one(self, statement: str) -> Any:
        """The first value of a statement's result, over a separate connection."""
        with psycopg.connect(self.url, autocommit=True) as db:
            row = db.execute(statement.encode()).fetchone()
        return row and row[0]

    @property
    def url(self) -> str:
        """Its own URL, independent of the address."""
        return _url(Path(self._cluster.socket_folder()))

    @property
    def next_xid(self) -> int:
        """Approximately the next transaction number."""
        return int(self.one("select pg_snapshot_xmax(pg_current_snapshot())::text"))

    def back_up(self, copy: Server, *options: str) -> None:
        """Copy it with pg_basebackup."""
        _make_owned(copy.pgdata, self.pgdata)
        where = ("-h", self._cluster.socket_folder(), "-D", str(copy.pgdata))
        run_program("pg_basebackup", "-U", "postgres", "-c", "fast", "--no-sync", *where, *options, owner=copy.pgdata)

    async def has_replayed(self, primary: Server) -> None:
        """Wait until a standby has everything its primary has written so far."""
        lsn = primary.one("select pg_current_wal_flush_lsn()")

        async def is_there() -> bool:
            return bool(self.one(f"select pg_last_wal_replay_lsn() >= '{lsn}'"))

        await until(is_there)

    def _postmaster(self) -> psutil.Process:
        return psutil.Process(int((self.pgdata / "postmaster.pid").read_text().split()[0]))


class Servers:
    """Servers at one address."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._loaded: list[Server] = []

    @property
    def url(self) -> str:
        """The URL of whichever server is at the address."""
        return _url(self.folder / "address")

    def new(self) -> Server:
        """A server that does not run yet."""
        server = Server(self.folder / f"server{len(self._loaded)}", self.folder / "address")
        self._loaded.append(server)
        return server


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not await holds():  # noqa: ASYNC110  # other processes tell nobody
            await asyncio.sleep(0.02)


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _url(folder: Path) -> str:
    return f"postgresql://postgres@/{DATABASE}?host={quote(str(folder), safe='')}&port=5432"


def _make_owned(folder: Path, like: Path) -> None:
    folder.mkdir(mode=0o700)
    if is_root():
        os.chown(folder, like.stat().st_uid, like.stat().st_gid)
