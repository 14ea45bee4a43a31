"""A real `trivet serve` beside the measuring process, and the description of the machine."""

from __future__ import annotations

import os
import platform
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil
import psycopg

from benchmarks.speed.client import Connection, bare
from benchmarks.speed.figures import Machine
from retrieval.errors import StoreUnavailable
from retrieval.installation import installed_version

CHECKOUT = Path(__file__).resolve().parents[2]
START_TIMEOUT_S = 120.0
_LIBRARIES = ("numpy", "onnxruntime", "psycopg", "uvicorn", "lancedb", "txtai", "torch", "sqlite-vec")
_VERSIONS = "select current_setting('server_version'), (select extversion from pg_extension where extname = 'vector')"


@dataclass(frozen=True, slots=True)
class Server:
    """A server's port and process."""

    port: int
    pid: int

    def resident_bytes(self) -> list[int]:
        """Resident memory of each process that answers requests, without the database's."""
        parent = psutil.Process(self.pid)
        children = [child for child in parent.children() if child.exe() == parent.exe()]
        workers = [child for child in children if "resource_tracker" not in " ".join(child.cmdline())]
        return [process.memory_info().rss for process in workers or [parent]]


@contextmanager
def serving(data_dir: Path, *, log: Path, workers: int = 1, checkout: Path = CHECKOUT) -> Iterator[Server]:
    """Run a server from a checkout on a free port during the block.

    Raises:
        StoreUnavailable: it ends, or is not ready in time; the message names its log.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TRIVET_")}
    paths = os.pathsep.join(filter(None, (str(checkout), os.environ.get("PYTHONPATH"))))
    environ |= {"TRIVET_DATA_DIR": str(data_dir), "TRIVET_LOG_LEVEL": "warning", "PYTHONPATH": paths}
    command = [sys.executable, "-m", "retrieval.cli", "serve", "--port", str(port), "--workers", str(workers)]
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, env=environ, cwd=checkout, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        _wait_until_ready(process, port, log)
        yield Server(port, process.pid)
    finally:
        process.terminate()
        process.wait(60)


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise StoreUnavailable(f"the server ended with status {process.returncode}: see {log}")
        with suppress(OSError), Connection(port) as connection:  # it may not listen yet
            if connection.ask(bare("GET", "/health/ready")).status == 200:
                return
        time.sleep(0.1)
    raise StoreUnavailable(f"the server was not ready within {START_TIMEOUT_S:g} s: see {log}")


def describe_machine(url: str) -> Machine:
    """This machine, with the versions of the measured software."""
    versions = {"trivet": installed_version(), "python": platform.python_version()}
    with psycopg.connect(url) as conn:
        row = conn.execute(_VERSIONS).fetchone()
    versions["postgresql"], versions["pgvector"] = map(str, row or ("unknown", "unknown"))
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return Machine(
        cores=os.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        processor=_processor(),
        system=f"{platform.system()} {platform.machine()}",
        versions=versions,
    )


def _processor() -> str:
    listing = Path("/proc/cpuinfo")
    text = listing.read_text(encoding="utf-8", errors="replace") if listing.is_file() else ""
    found = re.search(r"^model name[^:]*:(.*)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.processor() or "unknown"
