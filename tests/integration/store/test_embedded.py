"""The embedded PostgreSQL: clean and unclean shutdowns, shared folders, unsuitable folders."""

from __future__ import annotations

import asyncio
import errno
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Semaphore

import psutil
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from retrieval import machine
from retrieval.errors import EmbeddedPostgresError
from retrieval.store.embedded import instance, programs
from retrieval.store.embedded.cluster import Cluster
from retrieval.store.embedded.instance import EmbeddedPostgres, running
from tests.folders import database_folder, disk
from tests.processes import PATIENCE_S, python

FAST = {"fsync": "off", "shared_buffers": "64MB"}

USER = """
import asyncio, sys
from pathlib import Path
from retrieval.store.embedded.instance import running

async def main():
    async with running(Path(sys.argv[1])) as url:
        print(url, flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""
"""A process that uses the server of a folder until it is told to stop."""


@pytest.fixture
def new_folder() -> Iterator[Path]:
    """A folder not created yet that the server's user can reach; servers left in it are stopped."""
    with database_folder() as parent:
        yield parent / "deep" / "data"
        for server in servers(parent):
            server.kill()


@pytest.fixture(scope="session")
def template() -> Iterator[Path]:
    """A data folder as after a clean shutdown."""
    with database_folder() as parent:
        server = EmbeddedPostgres(parent / "data", settings=FAST)
        server.start()
        server.stop()
        yield parent / "data"


@pytest.fixture
def folder(new_folder: Path, template: Path) -> Path:
    """A data folder that was used before; copying it is faster than making one."""
    new_folder.parent.mkdir()
    subprocess.run(("cp", "-a", template, new_folder), check=True)
    return new_folder


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that a test started; those still running are killed."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def use(folder: Path, started: list[subprocess.Popen[str]], *launcher: str) -> tuple[subprocess.Popen[str], str]:
    """Start a process that uses the folder's server; the process and the URL that it got."""
    process = subprocess.Popen(
        (*launcher, sys.executable, "-c", USER, str(folder)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    started.append(process)
    assert process.stdout
    url = process.stdout.readline().strip()
    assert url.startswith("postgresql://"), process.communicate()
    return process, url


def end(process: subprocess.Popen[str], number: signal.Signals) -> tuple[int, str]:
    """Signal a process; its exit status and what it wrote to stderr."""
    process.send_signal(number)
    _, errors = process.communicate(timeout=PATIENCE_S)
    return process.returncode, errors


def servers(folder: Path) -> list[psutil.Process]:
    """The PostgreSQL servers that run on data folders below `folder`, without the processes that they have forked."""
    found = {}
    for process in psutil.process_iter(["name", "cmdline", "ppid"]):
        command = process.info["cmdline"] or []
        if process.info["name"] == "postgres" and any(str(folder) in part for part in command):
            found[process.pid] = process
    return [process for process in found.values() if process.info["ppid"] not in found]


def one(url: str, statement: str) -> object:
    """The first value of the last of the statements."""
    with psycopg.connect(url, autocommit=True) as db:
        cursor = db.execute(statement.encode())
        while cursor.nextset():
            pass
        row = cursor.fetchone()
        return row and row[0]


async def test_starts_in_a_new_folder_and_stops_at_the_end_of_the_block(new_folder: Path) -> None:
    async with running(new_folder, settings=FAST) as url:
        assert one(url, "select current_database()") == "trivet"
        assert one(url, "show jit") == "off"
        assert one(url, "show listen_addresses") == ""
        assert len(servers(new_folder)) == 1
    assert servers(new_folder) == []


async def test_keeps_what_was_committed(folder: Path) -> None:
    async with running(folder, settings=FAST) as url:
        one(url, "create table kept (value integer); insert into kept values (7); select 1")
    async with running(folder, settings=FAST) as url:
        assert one(url, "select value from kept") == 7


async def test_the_log_of_an_error_has_no_value_of_a_key(folder: Path) -> None:
    async with running(folder, settings=FAST) as url:
        with pytest.raises(psycopg.errors.UniqueViolation):
            one(url, "create table kept (name text unique); insert into kept values ('Lucy'), ('Lucy')")
        log = (folder / "postgres" / "server.log").read_text()
    assert "violates unique constraint" in log
    assert "Lucy" not in log


async def test_two_uses_in_one_process_share_the_server(folder: Path) -> None:
    async with running(folder, settings=FAST) as outer:
        async with running(folder, settings=FAST) as inner:
            assert inner == outer
        assert one(outer, "select 1") == 1
    assert servers(folder) == []


async def test_variables_for_another_server_change_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every connection of libpq reads them; some providers have their customers set PGCHANNELBINDING=require."""
    others = folder.parent / "pg_service.conf"
    others.write_text("[work]\nhost=db.invalid\nhostaddr=192.0.2.1\nport=6543\nchannel_binding=require\n")
    variables = {
        "PGSERVICE": "work",
        "PGSERVICEFILE": str(others),
        "PGHOSTADDR": "192.0.2.1",
        "PGOPTIONS": "-c search_path=elsewhere",
        "PGTARGETSESSIONATTRS": "standby",
        "PGREQUIREAUTH": "scram-sha-256",
        "PGCHANNELBINDING": "require",
        "PGGSSENCMODE": "require",
        "PGSSLMODE": "require",
        "PGSSLNEGOTIATION": "direct",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    async with running(folder, settings=FAST) as url:
        assert one(url, "show search_path") == '"$user", public'


async def test_a_failing_block_stops_the_server(folder: Path) -> None:
    with pytest.raises(KeyError):
        async with running(folder, settings=FAST):
            raise KeyError
    assert servers(folder) == []


async def test_cancelled_while_it_starts_it_leaves_nothing_running(new_folder: Path) -> None:
    async def serve() -> None:
        async with running(new_folder, settings=FAST):
            await asyncio.sleep(600)

    task = asyncio.create_task(serve())
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.get_running_loop().shutdown_default_executor()  # in which it may be starting still
    assert servers(new_folder) == []


def test_a_signal_within_a_task_is_no_failure_of_it(folder: Path) -> None:
    code = """
import asyncio, os, signal, sys
from pathlib import Path
from retrieval.store.embedded.instance import running

async def end():
    os.kill(os.getpid(), signal.SIGTERM)

async def main():
    async with running(Path(sys.argv[1])):
        ending = asyncio.create_task(end())
        await asyncio.sleep(600)

asyncio.run(main())
"""
    assert python("-c", code, folder, status=128 + signal.SIGTERM).stderr == ""
    assert servers(folder) == []


def test_two_processes_share_and_the_last_one_stops_it(folder: Path, started: list[subprocess.Popen[str]]) -> None:
    first, url = use(folder, started)
    second, same = use(folder, started)
    assert same == url

    assert end(first, signal.SIGTERM) == (128 + signal.SIGTERM, "")
    assert one(url, "select 1") == 1, "the other process still uses it"

    assert end(second, signal.SIGTERM) == (128 + signal.SIGTERM, "")
    assert servers(folder) == []


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root can give up a capability")
def test_root_of_a_container_sees_the_servers_processes(folder: Path, started: list[subprocess.Popen[str]]) -> None:
    """Without this capability it took the server of another user for ended, started it again and never stopped it."""
    process, _ = use(folder, started, "setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace")
    assert end(process, signal.SIGTERM) == (128 + signal.SIGTERM, "")
    assert servers(folder) == []


def test_two_processes_may_start_at_the_same_moment(new_folder: Path, started: list[subprocess.Popen[str]]) -> None:
    with ThreadPoolExecutor(2) as threads:
        urls = {url for _, url in threads.map(use, [new_folder] * 2, [started] * 2)}
    assert len(urls) == 1
    assert len(servers(new_folder)) == 1


def test_ctrl_c_stops_the_server(folder: Path, started: list[subprocess.Popen[str]]) -> None:
    process, _ = use(folder, started)
    status, errors = end(process, signal.SIGINT)
    assert status != 0
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert servers(folder) == []


def test_a_killed_process_leaves_a_server_that_the_next_one_takes_over(
    folder: Path, started: list[subprocess.Popen[str]]
) -> None:
    killed, url = use(folder, started)
    end(killed, signal.SIGKILL)
    assert len(servers(folder)) == 1

    following, same = use(folder, started)
    assert same == url
    assert one(url, "select 1") == 1
    end(following, signal.SIGTERM)
    assert servers(folder) == []


def test_a_killed_server_is_recovered(folder: Path, started: list[subprocess.Popen[str]]) -> None:
    process, url = use(folder, started)
    one(url, "create table kept (value integer); insert into kept values (7); select 1")
    for server in servers(folder):
        server.kill()
    end(process, signal.SIGKILL)
    assert (folder / "postgres" / "postmaster.pid").exists()

    following, url = use(folder, started)
    assert one(url, "select value from kept") == 7
    end(following, signal.SIGTERM)
    assert servers(folder) == []


def test_a_killed_server_is_started_again_beside_a_process_that_still_uses_it(
    folder: Path, started: list[subprocess.Popen[str]]
) -> None:
    _, url = use(folder, started)
    for server in servers(folder):
        server.kill()
    _, same = use(folder, started)
    assert same == url
    assert one(url, "select 1") == 1


def test_the_process_number_of_a_stale_server_may_be_another_programs(folder: Path) -> None:
    server = EmbeddedPostgres(folder, settings=FAST)
    server.start()
    pid_file = folder / "postgres" / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    server.stop()
    pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]))
    try:
        assert one(server.start(), "select 1") == 1
    finally:
        server.stop()


def test_a_start_that_was_cut_off_is_begun_anew(new_folder: Path) -> None:
    unfinished = new_folder / "postgres.new"
    unfinished.mkdir(parents=True)
    (unfinished / "PG_VERSION").write_text("18\n")
    server = EmbeddedPostgres(new_folder, settings=FAST)
    try:
        assert one(server.start(), "select 1") == 1
    finally:
        server.stop()
    assert not unfinished.exists()


def test_two_paths_to_one_folder_share_the_server(folder: Path) -> None:
    """Otherwise each would treat the other's server as a leftover."""
    (link := folder.with_name("link")).symlink_to(folder)
    one_path, other_path = EmbeddedPostgres(folder, settings=FAST), EmbeddedPostgres(link, settings=FAST)
    try:
        url = one_path.start()
        (server,) = servers(folder)
        assert one(other_path.start(), "select 1") == 1
        assert one(url, "select 1") == 1
        assert servers(folder) == [server]
    finally:
        other_path.stop()
        one_path.stop()


def test_a_path_too_long_for_a_socket_works(new_folder: Path, tmp_path: Path) -> None:
    server = EmbeddedPostgres(new_folder / ("long" * 30), settings=FAST)
    try:
        url = server.start()
        assert one(url, "select 1") == 1
    finally:
        server.stop()
    socket_folder = Path(str(conninfo_to_dict(url)["host"]))
    assert not socket_folder.is_relative_to(new_folder)
    assert not socket_folder.exists()
    (other := tmp_path / "other").mkdir()
    socket_folder.symlink_to(other)  # as any user can who knows the path
    try:
        with pytest.raises(EmbeddedPostgresError, match="belongs to somebody else"):
            server.start()
        assert other.owner() == tmp_path.owner()
    finally:
        socket_folder.unlink()


def test_no_link_that_the_owner_of_a_folder_set_is_written_through(folder: Path, tmp_path: Path) -> None:
    """Root may start another user's database."""
    (other := tmp_path / "other").write_text("kept")
    (folder / "postgres" / "trivet.conf.new").symlink_to(other)
    server = EmbeddedPostgres(folder, settings=FAST)
    server.start()
    server.stop()
    assert (other.read_text(), other.owner()) == ("kept", tmp_path.owner())
    (folder / "postgres" / "postmaster.pid").symlink_to(other)
    other.write_text("first\nsecret\n")
    with pytest.raises(EmbeddedPostgresError):
        server.start()
    assert (folder / "postgres" / "postmaster.pid").is_symlink()


def test_a_path_with_spaces_and_quotes_works(new_folder: Path) -> None:
    server = EmbeddedPostgres(new_folder / "it's a new_folder & more", settings=FAST)
    try:
        assert one(server.start(), "select 1") == 1
    finally:
        server.stop()
    assert servers(new_folder) == []


async def test_starts_where_shared_memory_has_no_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a folder without room, as in some containers."""
    if sys.platform != "linux":
        pytest.skip("shared memory is a folder on Linux only")
    monkeypatch.setattr(machine, "SHARED_MEMORY", folder / "none")
    async with running(folder, settings=FAST) as url:
        assert one(url, "show dynamic_shared_memory_type") == "sysv"


def test_stopping_twice_or_unstarted_does_nothing(new_folder: Path) -> None:
    server = EmbeddedPostgres(new_folder, settings=FAST)
    server.stop()
    assert not new_folder.exists()
    server.start()
    server.stop()
    server.stop()


@pytest.mark.parametrize("beside", [[], ["postgres"]], ids=["alone", "beside a folder called postgres"])
def test_a_folder_with_other_files_is_refused(new_folder: Path, beside: list[str]) -> None:
    new_folder.mkdir(parents=True)
    for name in beside:
        (new_folder / name).mkdir()
    (new_folder / "thesis.txt").write_text("do not touch")
    with pytest.raises(EmbeddedPostgresError, match=r"not empty and not Trivet's \(it holds 'thesis.txt'\)"):
        EmbeddedPostgres(new_folder).start()
    assert sorted(entry.name for entry in new_folder.iterdir()) == [*beside, "thesis.txt"]


@pytest.mark.parametrize("name", ['a"b', "a$b", "a`b", "a\\b", "a\nb"])
def test_a_path_that_a_shell_would_read_is_refused(new_folder: Path, name: str) -> None:
    with pytest.raises(EmbeddedPostgresError, match="PostgreSQL cannot use the data folder"):
        EmbeddedPostgres(new_folder / name).start()
    assert not new_folder.exists()


def test_a_file_in_place_of_the_folder_is_refused(new_folder: Path) -> None:
    new_folder.parent.mkdir(parents=True)
    new_folder.write_text("")
    with pytest.raises(EmbeddedPostgresError, match="cannot be used: File exists"):
        EmbeddedPostgres(new_folder).start()


def test_a_folder_that_cannot_be_made_is_refused() -> None:
    with pytest.raises(EmbeddedPostgresError, match="the data folder /proc/trivet cannot be used"):
        EmbeddedPostgres(Path("/proc/trivet")).start()


def test_a_user_without_a_name_is_refused(new_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a container may have been told to run as: initdb would fail."""
    monkeypatch.setattr(os, "geteuid", lambda: 1_000_650_000)
    with pytest.raises(EmbeddedPostgresError, match="user 1000650000, who is not in /etc/passwd; run Trivet as a user"):
        EmbeddedPostgres(new_folder).start()
    assert not (new_folder / "postgres.new").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the package has other builds")
def test_an_arm_processor_without_sve_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package's pgvector would end the server with the first vector."""
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    features = 0x10FF
    monkeypatch.setattr(programs, "_processor_features", lambda: features)
    with pytest.raises(EmbeddedPostgresError, match=r"needs an ARM processor with SVE.*set TRIVET_DATABASE_URL"):
        EmbeddedPostgres(folder).start()
    assert not servers(folder)
    features |= 1 << 22
    server = EmbeddedPostgres(folder)
    server.start()
    server.stop()


def test_an_x86_processor_without_avx2_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one without SVE is."""
    monkeypatch.setattr(programs, "is_old_x86", lambda: True)
    with pytest.raises(EmbeddedPostgresError, match=r"needs a processor with AVX2.*set TRIVET_DATABASE_URL"):
        EmbeddedPostgres(folder).start()
    assert not servers(folder)


def test_another_major_version_is_refused(new_folder: Path) -> None:
    (new_folder / "postgres").mkdir(parents=True)
    (new_folder / "postgres" / "PG_VERSION").write_text("16\n")
    with pytest.raises(EmbeddedPostgresError, match="was made by PostgreSQL 16 and this Trivet brings 18"):
        EmbeddedPostgres(new_folder).start()


def test_a_folder_of_that_name_that_is_not_postgres_is_refused(new_folder: Path) -> None:
    (new_folder / "postgres").mkdir(parents=True)
    with pytest.raises(EmbeddedPostgresError, match="is not a PostgreSQL data folder"):
        EmbeddedPostgres(new_folder).start()


def test_a_server_that_does_not_start_says_why(folder: Path) -> None:
    with pytest.raises(EmbeddedPostgresError, match='invalid value for parameter "shared_buffers"'):
        EmbeddedPostgres(folder, settings={"shared_buffers": "many"}).start()


def test_why_a_server_does_not_start_is_told_before_what_clients_were_told(folder: Path) -> None:
    (folder / "postgres" / "recovery.signal").touch()
    client = f"""{sys.executable} -c "import psycopg; psycopg.connect('host={folder / "postgres"} user=postgres')\""""
    recovery = {"restore_command": client, "recovery_target_timeline": "7"}
    with pytest.raises(EmbeddedPostgresError, match="postgres: FATAL:  recovery target timeline 7") as caught:
        EmbeddedPostgres(folder, settings=recovery).start()
    assert "FATAL:  the database system is " in str(caught.value)


def test_a_disk_without_room_for_a_database_is_told_without_what_went_well(new_folder: Path) -> None:
    new_folder.parent.mkdir()
    with disk(new_folder, "4m"), pytest.raises(EmbeddedPostgresError, match="No space left on device") as caught:
        EmbeddedPostgres(new_folder).start()
    assert "... ok" not in str(caught.value)


def test_a_shortage_of_open_files_is_told_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = EmbeddedPostgres(folder, settings=FAST)
    server.start()
    try:
        may_go_on, really_runs = Semaphore(0), Cluster.is_running

        def is_running(cluster: Cluster) -> bool:
            if cluster != server._cluster:  # the other tests' own, which this process may watch, too
                return really_runs(cluster)
            may_go_on.release()
            raise OSError(errno.EMFILE, "Too many open files")

        monkeypatch.setattr(instance, "WATCH_INTERVAL_S", 0.001)
        with monkeypatch.context() as patch:
            patch.setattr(Cluster, "is_running", is_running)
            for _ in range(5):
                assert may_go_on.acquire(timeout=PATIENCE_S)
    finally:
        server.stop()
    assert caplog.text.count("cannot be seen: [Errno 24] Too many open files") == 1


def test_use_from_another_container_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = EmbeddedPostgres(folder, settings=FAST)
    server.start()
    try:
        monkeypatch.setattr("retrieval.store.embedded.instance._machine", lambda: b"elsewhere pid:[1]")
        with pytest.raises(EmbeddedPostgresError, match="in use by another machine or container"):
            EmbeddedPostgres(folder).start()
    finally:
        server.stop()
