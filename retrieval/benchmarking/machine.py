"""Where figures come from."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil
import psycopg

from retrieval.benchmarking.figures import Machine
from retrieval.version import installed_version

_LIBRARIES = ("numpy", "onnxruntime", "psycopg", "uvicorn", "lancedb", "txtai", "torch", "sqlite-vec")


def describe_machine(url: str) -> Machine:
    """This machine, with the versions of what is measured."""
    versions = {"trivet": installed_version(), "python": platform.python_version()}
    with psycopg.connect(url) as conn:
        versions["postgresql"] = _one(conn.execute("show server_version").fetchone())
        extension = "select extversion from pg_extension where extname = 'vector'"
        versions["pgvector"] = _one(conn.execute(extension).fetchone())
    versions |= dict(_installed(_LIBRARIES))
    return Machine(
        cores=os.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        processor=_processor(),
        system=f"{platform.system()} {platform.machine()}",
        versions=versions,
    )


def _one(row: tuple[object, ...] | None) -> str:
    return str(row[0]) if row else "unknown"


def _installed(names: Iterable[str]) -> Iterable[tuple[str, str]]:
    for name in names:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue


def _processor() -> str:
    """Its name, where the system tells."""
    listing = Path("/proc/cpuinfo")
    if listing.is_file():
        for line in listing.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"
