"""Real processes of Trivet and of its embedded PostgreSQL, for tests that kill them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil

from tests.folders import database_folder

T = TypeVar("T")

ROOT = Path(__file__).parents[1]
PATIENCE_S = 120
"""How long a test waits for something that must happen, on any busy machine."""

QUIT_WITHIN_S = 10
"""How long PostgreSQL may take to end by itself, which a frozen one never does."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A `trivet serve`, its address and its output."""

    process: subprocess.Popen[bytes]
    url: str
    output: Path

    def said(self) -> str:
        """Its whole output."""
        return self.output.read_text(encoding="utf-8")


@contextmanager
def new_data_dir() -> Iterator[Path]:
    """A folder not created yet that PostgreSQL's user can reach; servers left in it are ended."""
    with database_folder() as parent:
        try:
            yield parent / "data"
        finally:
            quit_postgres_in(parent / "data")


def environment(**settings: str) -> dict[str, str]:
    """This process's environment for a program of this checkout, with only these settings of Trivet."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("TRIVET_")}
    return {**others, "PYTHONPATH": str(ROOT), "TRIVET_LEG_TIMEOUT_S": str(PATIENCE_S), **settings}


def ended(
    *command: str | Path, status: int | None = 0, stdin: str = "", cwd: Path = ROOT, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, in the `environment` of these settings; its exit status must be `status`."""
    done = subprocess.run(
        command,
        input=stdin,
        env=environment(**settings),
        cwd=cwd,
        capture_output=True,
        encoding="utf-8",
        timeout=3 * PATIENCE_S,
        check=False,
    )
    assert status in (None, done.returncode), done.stdout + done.stderr
    return done


def python(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """The same for a Python program."""
    return ended(sys.executable, *arguments, **options)


@contextmanager
def serving(*, workers: int = 1, **settings: str) -> Iterator[Serving]:
    """A `trivet serve` whose workers are all ready; killed at the end if it still runs."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "output"
        command = (sys.executable, "-m", "retrieval.cli", "serve", "--port", "0")
        with output.open("wb") as file:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment(TRIVET_WORKERS=str(workers), **settings),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            url = until(lambda: _address(output, process))
            server = Serving(process, url, output)
            until(lambda: status(f"{url}/health/ready") == 200)
            until(lambda: server.said().count("Application startup complete") == workers)  # one answers for all
            yield server
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def unheard(*command: str | Path, **settings: str) -> subprocess.Popen[bytes]:
    """A Python program whose output is discarded."""
    return subprocess.Popen(
        (sys.executable, *command),
        env=environment(**settings),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _address(output: Path, process: subprocess.Popen[bytes]) -> str | None:
    said = output.read_text(encoding="utf-8")
    assert process.poll() is None, said
    found = re.search(r"Listening on (http://\S+)", said)
    return found[1] if found else None


def status(url: str) -> int | None:
    """The status of an answer to GET; None if there is no answer."""
    try:
        return httpx.get(url, timeout=PATIENCE_S).status_code
    except httpx.TransportError:
        return None


def until(get: Callable[[], T | None]) -> T:
    """Wait until a function's result is true, and return it."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := get()):
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.02)
    return found


def postgres_in(data_dir: Path) -> list[psutil.Process]:
    """PostgreSQL's processes of a data folder, the server and its children."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.name() in ("postgres", "initdb") and Path(process.cwd()).is_relative_to(data_dir):
                found.append(process)
        except psutil.Error:
            continue
    return found


def quit_postgres_in(folder: Path) -> None:
    """End PostgreSQL's processes at once, in a folder that is removed next.

    A killed one leaves its shared memory to the next server in its folder, and here there will be none.
    """
    running = postgres_in(folder)
    for process in running:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGQUIT)
    psutil.wait_procs(running, QUIT_WITHIN_S)
    kill_postgres_in(folder)


def kill_postgres_in(data_dir: Path) -> None:
    """Kill -9 of PostgreSQL's processes of a data folder, until there are none."""

    def none_left() -> bool:
        processes = postgres_in(data_dir)
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        return not processes

    until(none_left)


def postmaster_of(data_dir: Path) -> psutil.Process:
    """The server of a data folder."""
    return psutil.Process(int((data_dir / "postgres" / "postmaster.pid").read_text().splitlines()[0]))
