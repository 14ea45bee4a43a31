"""The folder for the metrics of a server's workers."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from retrieval import machine

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Names the folder; prometheus_client reads it when imported."""

_LEAST_ROOM = 16 * 1024 * 1024
"""Bytes that the counts of many workers may take."""

_PREFIX = "trivet-workers-"


@contextmanager
def metrics_folder() -> Iterator[str]:
    """A new folder; those left behind by killed servers are removed.

    A server locks its folder, and its forked workers share the lock. An empty folder may belong to a server that is
    about to lock it.
    """
    # A worker that counts in a file on a full disk is killed by SIGBUS.
    parent = machine.SHARED_MEMORY if machine.shared_memory_bytes() >= _LEAST_ROOM else gettempdir()
    for left in Path(parent).glob(f"{_PREFIX}*"):
        with suppress(OSError), _locked(left, fcntl.LOCK_EX | fcntl.LOCK_NB):
            if any(left.iterdir()):
                shutil.rmtree(left)
    with TemporaryDirectory(prefix=_PREFIX, dir=parent) as folder, _locked(folder, fcntl.LOCK_EX):
        yield folder


@contextmanager
def _locked(folder: str | Path, kind: int) -> Iterator[None]:
    """Hold a lock on a folder; raises OSError if it is no folder, or is locked and `kind` does not wait."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, kind)
        yield
    finally:
        os.close(descriptor)
