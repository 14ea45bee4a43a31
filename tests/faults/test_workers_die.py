"""Several workers: one is killed, alone or with PostgreSQL, or their supervisor is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir

import psutil
import pytest

from retrieval import machine
from retrieval.api.metrics_folder import metrics_folder
from tests.faults.servers import Server
from tests.faults.test_embedded_dies import add, fill, found
from tests.folders import disk
from tests.processes import (
    PATIENCE_S,
    ROOT,
    Serving,
    ended,
    environment,
    postgres_in,
    postmaster_of,
    serving,
    status,
    unheard,
    until,
)


@pytest.fixture
def server(data_dir: Path) -> Iterator[Serving]:
    """With two workers and one memory."""
    with serving(TRIVET_DATA_DIR=str(data_dir), workers=2) as started:
        assert add(started) == 201
        yield started


def workers(server: Serving) -> list[psutil.Process]:
    return psutil.Process(server.process.pid).children()


def test_workers_share_the_memory_of_what_they_loaded(server: Serving) -> None:
    """Most of it, or each would load its own 110 MB."""
    for worker in workers(server):
        memory = worker.memory_full_info()
        assert memory.uss < memory.rss / 2


def is_replaced(server: Serving, other: psutil.Process) -> None:
    """Another worker has joined the remaining one, both answer, and the server ends when told to."""
    until(lambda: server.said().count("Application startup complete") == 3)
    assert until(lambda: found(server)) == ["m1"]
    assert len(workers(server)) == 2
    assert other in workers(server)
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("with_postgres", [False, True])
def test_a_killed_worker_is_replaced(server: Serving, data_dir: Path, with_postgres: bool) -> None:
    """Also while the process that replaces it is starting PostgreSQL again."""
    killed, other = workers(server)
    if with_postgres:
        postmaster_of(data_dir).kill()
    killed.kill()
    is_replaced(server, other)
    assert f"WARNING: Worker {killed.pid} was ended by signal 9," in server.said()
    assert postgres_in(data_dir) == []


def test_a_worker_that_is_killed_while_the_database_is_away_is_replaced_once_it_is_back(primary: Server) -> None:
    """The server keeps running: the other worker answers that the database is lost."""
    with serving(TRIVET_DATABASE_URL=primary.url, workers=2) as server:
        assert add(server) == 201
        primary.stop()
        killed, other = workers(server)
        killed.kill()
        until(lambda: server.said().count("startup failed") >= 2)
        assert status(f"{server.url}/health/live") == 200
        primary.start()
        is_replaced(server, other)
        assert "AsyncConnection" not in server.said(), "the log has no line for each connection"


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone limits a process that runs")
def test_a_killed_worker_is_replaced_as_soon_as_another_may_be_started(database_url: str) -> None:
    """A container may have too many processes for a while, or too little memory, or files as here."""
    with serving(TRIVET_DATABASE_URL=database_url, workers=2) as server:
        assert add(server) == 201
        parent = psutil.Process(server.process.pid)
        limits = parent.rlimit(psutil.RLIMIT_NOFILE)
        killed, other = workers(server)
        used = {int(number) for number in os.listdir(f"/proc/{parent.pid}/fd")}
        no_more = min({*range(len(used) + 1)} - used)  # with 0, none of those in use could be waited for
        parent.rlimit(psutil.RLIMIT_NOFILE, (no_more, limits[1]))
        said = "ERROR: A worker cannot be started: [Errno 24] Too many open files"
        parent.send_signal(signal.SIGHUP)  # which replaces all
        until(lambda: said in server.said())
        killed.kill()
        until(lambda: server.said().count(said) > 1)
        parent.rlimit(psutil.RLIMIT_NOFILE, limits)
        is_replaced(server, other)


def test_a_killed_worker_is_replaced_although_nobody_reads_the_log(database_url: str) -> None:
    """Nor is a server that ends with status 120, which is Python's for what it could not write, left running."""
    command = (sys.executable, "-m", "retrieval.cli", "serve", "--port", "0", "--workers", "2")
    variables = environment(TRIVET_DATABASE_URL=database_url, PYTHONUNBUFFERED="")
    with subprocess.Popen(command, env=variables, cwd=ROOT, stderr=subprocess.PIPE, start_new_session=True) as process:
        try:
            assert process.stderr
            started = (b"Application startup complete" in line for line in process.stderr)
            assert [next(each for each in started if each) for _ in range(2)]
            process.stderr.close()
            parent = psutil.Process(process.pid)
            killed, other = parent.children()
            killed.kill()
            until(lambda: len(parent.children()) == 2 and killed not in parent.children())
            assert other in parent.children()
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) in (0, 120)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_workers_whose_database_is_away_when_they_start_end(primary: Server) -> None:
    """And so does the server, with an error for whoever started it, and why in the log, without a traceback."""
    url = primary.url
    primary.stop()
    command = (sys.executable, "-m", "retrieval.cli", "serve", "--port", "0", "--workers", "2")
    said = ended(*command, status=1, TRIVET_DATABASE_URL=url).stderr
    assert "A worker could not start" in said
    assert "ERROR: cannot reach the database trivet at" in said
    assert "Traceback" not in said


def test_a_server_that_cannot_start_all_of_its_workers_ends(database_url: str) -> None:
    limited = ("sh", "-c", 'ulimit -n 42; exec "$0" "$@"')
    command = (*limited, sys.executable, "-m", "retrieval.cli", "serve", "--port", "0", "--workers", "12")
    assert "Error: [Errno 24] Too many open files" in ended(*command, status=1, TRIVET_DATABASE_URL=database_url).stderr


def test_no_worker_is_killed_where_temporary_files_have_no_room(data_dir: Path, tmp_path: Path) -> None:
    """Their common counts are in memory."""
    temporary = tmp_path / "tmp"
    settings = {"TRIVET_DATA_DIR": str(data_dir), "TMPDIR": str(temporary)}
    with disk(temporary, "1m"), serving(**settings, workers=2) as server:
        fill(temporary / "all")
        before = workers(server)
        assert [status(f"{server.url}/{path}") for path in ("version", "", "metrics", "docs") * 8] == [200] * 32
        assert workers(server) == before


def test_workers_count_elsewhere_where_shared_memory_has_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with disk(tmp_path / "shm", "1m"):
        monkeypatch.setattr(machine, "SHARED_MEMORY", tmp_path / "shm")
        with metrics_folder() as folder:
            assert Path(folder).parent == Path(gettempdir())


def test_workers_end_with_their_parent_and_the_last_stops_postgres(server: Serving, data_dir: Path) -> None:
    """Like every process that uses it: none holds another's lock."""
    try:
        server.process.kill()
        server.process.wait()
        until(lambda: status(f"{server.url}/health/live") is None)
        until(lambda: postgres_in(data_dir) == [])
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.process.pid, signal.SIGKILL)


def test_what_the_workers_of_a_killed_server_counted_in_is_removed_by_the_next(server: Serving, data_dir: Path) -> None:
    """But not while one of them is left."""
    folder, left = counted_in(server), workers(server)[0]
    left.suspend()
    server.process.kill()
    server.process.wait()
    try:
        with serving(TRIVET_DATA_DIR=str(data_dir), workers=2):
            assert folder.exists()
    finally:
        left.kill()
    until(
        lambda: all(each.pid != left.pid or each.info["status"] == "zombie" for each in psutil.process_iter(["status"]))
    )
    with serving(TRIVET_DATA_DIR=str(data_dir), workers=2) as last:
        assert not folder.exists()
        assert counted_in(last).exists()


def counted_in(server: Serving) -> Path:
    """The folder in which its workers count."""
    maps = (Path(each.path) for each in workers(server)[0].memory_maps())
    return next(path.parent for path in maps if path.parent.name.startswith("trivet-workers-"))


@pytest.mark.parametrize("seen", ["postgres/postmaster.pid", "postgres/trivet.conf"])
@pytest.mark.parametrize(("workers", "stop"), [(1, signal.SIGHUP), (2, signal.SIGTERM)])
def test_a_server_that_is_told_to_stop_while_it_starts_leaves_nothing(
    data_dir: Path, seen: str, workers: int, stop: signal.Signals
) -> None:
    if signal.getsignal(stop) == signal.SIG_IGN:
        pytest.skip("the tests were started by nohup")
    command = ("-m", "retrieval.cli", "serve", "--port", "0", "--workers", str(workers))
    process = unheard(*command, TRIVET_DATA_DIR=str(data_dir))
    until((data_dir / seen).exists)
    process.send_signal(stop)
    assert process.wait(PATIENCE_S) in (0, 128 + stop, -stop)
    until(lambda: postgres_in(data_dir) == [])
