"""Trivet within this process."""

from __future__ import annotations

import asyncio
import gc
import re
import socket
import weakref
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent

import psycopg
import pytest

import trivet
from retrieval.api import app
from retrieval.errors import SettingsError
from retrieval.store import export
from tests.command import trivet as command
from tests.processes import PATIENCE_S, postgres_in, python


def test_the_synchronous_one_is_used_from_several_threads(database_url: str) -> None:
    with trivet.open(database_url=database_url, namespace="ana") as memory:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda number: memory.add(f"Boat number {number} is blue."), range(20)))
        assert len(list(memory.get_all())) == 20
        assert memory.search("boat", top_k=20).degraded == []
        assert "Boat number 7" in memory.context("boat number 7", max_tokens=100).context
        with pytest.raises(trivet.InvalidInput, match="top"):
            memory.search("boat", top=3)  # type: ignore[call-arg]
    with pytest.raises(RuntimeError):
        memory.search("boat")


async def test_the_asynchronous_one(database_url: str) -> None:
    async with trivet.aopen(database_url=database_url) as memory:
        await memory.add("The kettle is copper.", namespace="ana")
        assert [result.text async for result in memory.get_all(namespace="ana")] == ["The kettle is copper."]


async def test_one_task_may_open_it_and_another_close_it(database_url: str) -> None:
    """As pytest-asyncio's fixtures do."""
    opening = trivet.aopen(database_url=database_url, namespace="ana")
    memory = await asyncio.create_task(opening.__aenter__())
    await memory.add("The kettle is copper.")
    await asyncio.create_task(opening.__aexit__(None, None, None))
    with pytest.raises(RuntimeError):
        await memory.search("kettle")


async def test_an_error_leaves_the_block_as_it_is(database_url: str) -> None:
    with pytest.raises(KeyError):
        async with trivet.aopen(database_url=database_url):
            raise KeyError("kettle")


async def test_opening_may_be_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/trivet"
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(trivet.aopen(database_url=url).__aenter__(), 0.5)


@pytest.mark.parametrize("pieces", [0, 1])
def test_an_export_that_fails_on_the_way_is_an_error(
    database_url: str, monkeypatch: pytest.MonkeyPatch, pieces: int
) -> None:
    """As over a connection, and not the end of a shorter one."""

    async def lines(*_: object) -> AsyncIterator[list[tuple[object, ...]]]:
        for _piece in range(pieces):
            yield []
        raise psycopg.OperationalError("lost")

    with trivet.open(database_url=database_url, namespace="ana") as memory:
        memory.add("The kettle is copper.")
        assert len(list(memory.export())) == 2
        monkeypatch.setattr(export, "rows", lines)
        with pytest.raises(trivet.Unreachable, match=r"RemoteProtocolError: \w"):
            list(memory.export())


def test_a_folder_keeps_what_was_added(data_dir: Path) -> None:
    """The embedded PostgreSQL runs as long as the block."""
    for expected in (["created"], ["unchanged"]):
        with trivet.open(data_dir=data_dir, namespace="ana") as memory:
            results = memory.add({"id": "m1", "text": "x"})
            assert [result.status for result in results] == expected
        assert postgres_in(data_dir) == []


def test_a_program_that_ends_closes_what_it_opened(data_dir: Path) -> None:
    """As in a notebook, which has no block around its cells; a process that it forked ends, too."""
    program = f"""
        import multiprocessing, sys, trivet
        memory = trivet.open(namespace="ana", data_dir=sys.argv[1])
        assert memory.add("The kettle is copper.")[0].status == "created"
        child = multiprocessing.get_context("fork").Process(target=print, args=("forked",))
        child.start()
        child.join({PATIENCE_S})
        print("ended", child.exitcode)
    """
    assert run(program, data_dir) == "forked\nended 0\n"


def run(program: str, folder: Path) -> str:
    """The output of a program that opens a folder; no PostgreSQL may be left in it."""
    done = python("-c", dedent(program), folder)
    assert postgres_in(folder) == []
    return done.stdout


def test_a_fork_has_no_share_in_what_is_open(data_dir: Path) -> None:
    """It gets an error instead of waiting forever, and its end does not affect its parent."""
    program = """
        import os, sys, trivet
        memory = trivet.open(namespace="ana", data_dir=sys.argv[1])
        memory.add("The kettle is copper.")
        server = open(f"{sys.argv[1]}/postgres/postmaster.pid").read()
        if not (child := os.fork()):
            try:
                memory.search("kettle")
            except RuntimeError as exc:
                print(exc, flush=True)
            sys.exit()
        os.waitpid(child, 0)
        assert open(f"{sys.argv[1]}/postgres/postmaster.pid").read() == server
        print(memory.search("kettle").results[0].text)
    """
    told, *rest = run(program, data_dir).splitlines()
    assert "another process" in told
    assert rest == ["The kettle is copper."]


def test_ctrl_c_while_its_thread_starts_ends_the_call(data_dir: Path) -> None:
    """In a notebook the same cell may be run again."""
    program = """
        import signal, sys, threading, trivet, uvloop
        new_event_loop = uvloop.new_event_loop

        def interrupting():
            uvloop.new_event_loop = new_event_loop
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            return new_event_loop()

        uvloop.new_event_loop = interrupting
        try:
            trivet.open(data_dir=sys.argv[1])
        except KeyboardInterrupt:
            print("interrupted")
        print(trivet.open(data_dir=sys.argv[1]).namespaces())
    """
    assert run(program, data_dir) == "interrupted\n[]\n"


def test_one_that_fails_to_close_at_the_end_keeps_no_other_open(data_dir: Path) -> None:
    program = """
        import sys, trivet
        clients = [trivet.open(data_dir=sys.argv[1]) for _ in range(3)]
        for client in clients[:2]:
            client._http._transport._opened.callback(int, "no number")
    """
    run(program, data_dir)


def test_what_is_closed_is_not_kept(database_url: str) -> None:
    memory = trivet.open(database_url=database_url)
    application = weakref.ref(memory._http._transport)
    memory.close()
    del memory
    gc.collect()
    assert application() is None


def test_what_is_closed_is_closed_once(database_url: str) -> None:
    memory = trivet.open(database_url=database_url, namespace="ana")
    memory.close()
    memory.close()
    with pytest.raises(RuntimeError):
        memory.search("boat")


def test_a_server_key_of_the_environment_is_not_asked_for(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVET_API_KEY", "a-key-of-the-server")
    with trivet.open(database_url=database_url, namespace="ana") as memory:
        assert memory.add("x")[0].status == "created"


def test_the_interpreter_stays_as_its_owner_set_it(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tuned: list[bool] = []
    monkeypatch.setattr(app, "_tune_interpreter", lambda: tuned.append(True))
    with trivet.open(database_url=database_url):
        assert tuned == []


def test_a_folder_and_a_url_are_too_much(database_url: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="not both"), trivet.open(data_dir=tmp_path, database_url=database_url):
        pass


@pytest.fixture
def without_rights(empty_database_url: str) -> Iterator[str]:
    """The URL of a database for a role that may log in and do nothing more."""
    role = "may_only_log_in"
    with psycopg.connect(empty_database_url, autocommit=True) as db:
        db.execute(f"create role {role} login")
        try:
            yield empty_database_url.replace("postgres@", f"{role}:{PASSWORD}@")
        finally:
            db.execute(f"drop role {role}")


PASSWORD = "never-to-be-shown"


@pytest.mark.parametrize("fault", ["nothing listens", "no such database", "no such role", "no rights"])
async def test_a_database_that_refuses_is_one_error_without_its_password(
    database_url: str, without_rights: str, fault: str
) -> None:
    """Named by database and host, whether it is opened from Python or from the command line."""
    url, name = {
        "nothing listens": (f"postgresql://ann:{PASSWORD}@127.0.0.1:1/notes", "notes at 127.0.0.1:1"),
        "no such database": (re.sub(r"/test_\d+", "/notes", database_url), "notes at /"),
        "no such role": (database_url.replace("postgres@", f"nobody:{PASSWORD}@"), " at /"),
        "no rights": (without_rights, " at /"),
    }[fault]
    with pytest.raises(trivet.Unavailable) as synchronous, trivet.open(database_url=url):
        pass
    with pytest.raises(trivet.Unavailable) as asynchronous:
        async with trivet.aopen(database_url=url):
            pass
    told = (await asyncio.to_thread(command, url, "search", "boats", status=1)).output
    for message in (str(synchronous.value), str(asynchronous.value), told.rstrip("\n")):
        assert name in message
        assert PASSWORD not in message
        assert "\n" not in message
    assert told.startswith("Error: ")
