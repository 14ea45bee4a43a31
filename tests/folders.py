"""Folders for tests: of databases, of evaluations, and with a disk of their own."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from retrieval.machine import SHARED_MEMORY, shared_memory_bytes

_ROOM_BYTES = 4 << 30


@contextmanager
def database_folder() -> Iterator[Path]:
    """An empty folder that PostgreSQL's user can enter, which as root is not the tests' user; removed at the end.

    In memory if there is room: cloning a database takes 20 ms there, and 300 on some disks.
    """
    fits = shared_memory_bytes() >= _ROOM_BYTES
    folder = Path(tempfile.mkdtemp(prefix="trivet-tests-", dir=SHARED_MEMORY if fits else "/tmp"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def disk(folder: Path, size: str) -> Iterator[None]:
    """A separate disk for a new folder."""
    folder.mkdir()
    mount = ("mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", str(folder))
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a disk of limited size cannot be mounted here")
    try:
        yield
    finally:
        subprocess.run(("umount", "--lazy", str(folder)), check=True)


def evaluation_folder(path: Path, corpus: Iterable[Mapping[str, Any]], queries: Iterable[Mapping[str, Any]]) -> Path:
    """A new evaluation folder of these rows; its path."""
    path.mkdir()
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path
