"""The embedded PostgreSQL dies under a running server, and comes back without the server's restart."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest

from retrieval.store.embedded import instance
from retrieval.store.embedded.instance import EmbeddedPostgres
from tests.faults.servers import FAST
from tests.folders import disk
from tests.processes import (
    PATIENCE_S,
    Serving,
    kill_postgres_in,
    postgres_in,
    postmaster_of,
    serving,
    status,
    until,
)

MEMORY = {"id": "m1", "text": "My sister Ines moved to Porto."}


def add(server: Serving, **fields: str) -> int:
    url = f"{server.url}/v1/namespaces/a/memories"
    return httpx.post(url, json={"memories": [MEMORY | fields]}, timeout=PATIENCE_S).status_code


def found(server: Serving) -> list[str]:
    """The ids that a search returns; none while it fails."""
    url = f"{server.url}/v1/namespaces/a/search"
    answer = httpx.post(url, json={"query": "Who moved to Porto?"}, timeout=PATIENCE_S)
    return [each["id"] for each in answer.json()["results"]] if answer.status_code == 200 else []


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_postgres_is_started_again(data_dir: Path, workers: int) -> None:
    """Once, however many processes of the server share it; acknowledged writes are kept."""
    with serving(TRIVET_DATA_DIR=str(data_dir), workers=workers) as server:
        assert server.said().count(f"The embedded database is in {data_dir}\n") == 1
        assert add(server) == 201
        killed = postmaster_of(data_dir)
        orphans = killed.children()
        killed.kill()
        psutil.wait_procs(orphans, PATIENCE_S)  # they answer until then
        assert until(lambda: found(server)) == ["m1"]
        assert add(server, id="m2") == 201
        assert server.process.poll() is None
        revived = postmaster_of(data_dir)
        assert revived.pid != killed.pid
        assert [each.pid for each in postgres_in(data_dir) if each.ppid() != revived.pid] == [revived.pid]
        assert "has ended unexpectedly; starting it again" in server.said()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE_S) == 0
    assert postgres_in(data_dir) == []


def test_a_killed_backend_ends_postgres_which_is_started_again(data_dir: Path) -> None:
    """PostgreSQL would do so itself, but on a full disk it may then refuse connections for good."""
    with serving(TRIVET_DATA_DIR=str(data_dir)) as server:
        assert add(server) == 201
        before = postmaster_of(data_dir)
        with psycopg.connect(url_of(data_dir), autocommit=True) as db:
            os.kill(db.info.backend_pid, signal.SIGKILL)
        until(lambda: not before.is_running())
        assert until(lambda: found(server)) == ["m1"]
        assert server.process.poll() is None


def test_a_busy_orphan_of_a_killed_postgres_is_no_obstacle(data_dir: Path) -> None:
    """It does not notice that its server is gone, and holds shared memory."""
    server = EmbeddedPostgres(data_dir, settings=FAST)
    url = server.start()
    try:
        with psycopg.connect(url, autocommit=True) as busy:
            orphan = psutil.Process(busy.info.backend_pid)

            def count() -> None:
                with suppress(psycopg.OperationalError):
                    busy.execute("select count(*) from generate_series(1, 1000000000000)")

            counting = threading.Thread(target=count)
            counting.start()
            try:
                until(lambda: busy.info.transaction_status == psycopg.pq.TransactionStatus.ACTIVE)
                postmaster_of(data_dir).kill()
                until(lambda: answers(url))
            finally:
                with suppress(psutil.NoSuchProcess):
                    orphan.kill()
                counting.join()
    finally:
        server.stop()


def test_postgres_out_of_disk_space_comes_back_once_there_is_room(data_dir: Path) -> None:
    with small_disk(data_dir), serving(TRIVET_DATA_DIR=str(data_dir)) as server:
        assert add(server) == 201
        filler = data_dir / "postgres" / "filler"
        fill(filler)
        with pytest.raises(psycopg.OperationalError):
            use_up_the_log(data_dir)
        until(lambda: "could not be started again" in server.said())
        assert re.search("started again, attempt 1: .*: (FATAL|PANIC): .*No space left on device\n", server.said())
        assert found(server) == []
        filler.unlink()
        assert until(lambda: found(server)) == ["m1"]
        assert add(server, id="m2") == 201
        assert server.process.poll() is None


def test_liveness_fails_while_postgres_cannot_be_started(data_dir: Path) -> None:
    """Then a supervisor that restarts the server helps; once PostgreSQL runs, everything works."""
    with serving(TRIVET_DATA_DIR=str(data_dir)) as server:
        assert status(f"{server.url}/health/live") == 200
        version = data_dir / "postgres" / "PG_VERSION"
        version.rename(aside := version.with_name("aside"))
        postmaster_of(data_dir).kill()
        until(lambda: status(f"{server.url}/health/live") == 503)
        assert status(f"{server.url}/health/ready") == 503
        aside.rename(version)
        until(lambda: status(f"{server.url}/health/live") == 200)
        until(lambda: status(f"{server.url}/health/ready") == 200)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_server_whose_data_folder_is_gone_ends_and_says_so(data_dir: Path, workers: int) -> None:
    """It never continues with an empty database."""
    with serving(TRIVET_DATA_DIR=str(data_dir), workers=workers) as server:
        (data_dir / "postgres").rename(data_dir / "gone")
        try:
            assert server.process.wait(PATIENCE_S) == 1
        finally:
            kill_postgres_in(data_dir)
        last = server.said().rstrip().splitlines()[-1]
        assert last == f"Error: the database's folder {data_dir / 'postgres'} is gone"
    assert not (data_dir / "postgres").exists()


def test_a_server_that_is_stopped_is_not_started_again(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instance, "WATCH_INTERVAL_S", 0.001)
    server = EmbeddedPostgres(data_dir, settings=FAST)
    threads = set(threading.enumerate())
    for _ in range(3):
        assert answers(server.start())
        server.stop()
        assert postgres_in(data_dir) == []
        assert set(threading.enumerate()) <= threads, "nobody watches it any more"


def answers(url: str) -> bool:
    with suppress(psycopg.OperationalError), psycopg.connect(url, autocommit=True) as db:
        return db.execute("select 1").fetchone() == (1,)
    return False


def url_of(data_dir: Path) -> str:
    return f"postgresql://postgres@/trivet?host={data_dir / 'postgres'}&port=5432"


def use_up_the_log(data_dir: Path) -> None:
    """Make PostgreSQL begin one write-ahead log file after another."""
    with psycopg.connect(url_of(data_dir), autocommit=True) as db:
        while True:
            db.execute("select pg_logical_emit_message(false, 'x', 'x'), pg_switch_wal()")


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A disk with hardly more room than a new database needs."""
    used = folder.rename(folder.with_name("used"))
    with disk(folder, "160m"):
        subprocess.run(("cp", "-a", used / "postgres", folder), check=True)
        try:
            yield
        finally:
            kill_postgres_in(folder)


def fill(file: Path) -> None:
    """Write until the disk is full."""
    with file.open("wb") as content, suppress(OSError):
        while True:
            os.write(content.fileno(), bytes(65_536))
