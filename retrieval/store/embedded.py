"""The PostgreSQL that Trivet runs itself, one per data folder, shared by all processes that use it.

Each process that uses the server holds a shared lock on a file of the data folder. Whoever leaves and
finds no other holder stops the server. The system drops the locks of a killed process, so a server that
it left behind is taken over by the next start and stopped after it.
"""

from __future__ import annotations

import asyncio
import atexit
import fcntl
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn
from urllib.parse import quote

import psycopg

from retrieval.errors import EmbeddedPostgresError
from retrieval.store.cluster import Cluster
from retrieval.store.tuning import tuned_settings

DATABASE = "trivet"
LOCK_TIMEOUT_S = 660
"""How long to wait for another process that is starting or stopping the server."""

_OWN_NAMES = frozenset({"postgres", "postgres.new", "change.lock", "users.lock", "lost+found", "demo", "eval"})

_UNFIT = frozenset('"\\$`\n\r')  # pg_ctl hands the path to a shell in double quotes


class EmbeddedPostgres:
    """One process's share in the server of a data folder. Methods block and may be called from any thread."""

    def __init__(self, data_dir: Path, *, settings: Mapping[str, str] | None = None) -> None:
        """Nothing is touched before `start`.

        Args:
            data_dir: made with its parents if missing; empty or made by Trivet.
            settings: PostgreSQL settings over the tuned ones, where this process starts the server.
        """
        self.data_dir = Path(os.path.abspath(data_dir.expanduser()))
        self._cluster = Cluster(self.data_dir / "postgres")
        self._settings = {**tuned_settings(), **(settings or {})}
        self._turn = threading.Lock()
        self._share: int | None = None

    def start(self) -> str:
        """Start the server, or join the one that runs, and make sure its database exists.

        Returns:
            A libpq URL of the database.

        Raises:
            EmbeddedPostgresError: the folder is unsuitable, or the server does not start.
        """
        with self._turn:
            self._check_folder()
            with _locked(self.data_dir / "change.lock"):
                share = _open(self.data_dir / "users.lock")
                try:
                    self._join(share)
                    self._ensure_running()
                    url = self._ensure_database()
                except BaseException:
                    os.close(share)
                    raise
                if self._share is not None:
                    os.close(self._share)
                self._share = share
            atexit.register(self.stop)
            return url

    def stop(self) -> None:
        """Leave; the last to leave stops the server. Does nothing where `start` did not succeed.

        Raises:
            EmbeddedPostgresError: the server does not stop.
        """
        with self._turn:
            if self._share is None:
                return
            share, self._share = self._share, None
            atexit.unregister(self.stop)
            try:
                with _locked(self.data_dir / "change.lock"):
                    if _try_lock(share, fcntl.LOCK_EX) and self._cluster.is_running():
                        self._cluster.stop()
            finally:
                os.close(share)

    def _check_folder(self) -> None:
        """Make the data folder; refuse one that holds anything else."""
        if unfit := sorted(_UNFIT & set(str(self.data_dir))):
            raise EmbeddedPostgresError(f"PostgreSQL cannot use the data folder {self.data_dir}: it has {unfit[0]!r}")
        try:
            self.data_dir.mkdir(parents=True, exist_ok=True)
            names = {entry.name for entry in self.data_dir.iterdir()}
        except OSError as exc:
            raise EmbeddedPostgresError(f"the data folder {self.data_dir} cannot be used: {exc.strerror}") from exc
        if "postgres" not in names and (strange := sorted(names - _OWN_NAMES)):
            raise EmbeddedPostgresError(
                f"the data folder {self.data_dir} is not empty and not Trivet's (it holds {strange[0]!r}); "
                "set TRIVET_DATA_DIR to a folder of its own"
            )
        if not os.access(self.data_dir, os.W_OK | os.X_OK):
            raise EmbeddedPostgresError(f"the data folder {self.data_dir} cannot be written")

    def _join(self, share: int) -> None:
        """Take a share. Processes of another machine or container are none that we could share with."""
        machine = _machine()
        if _try_lock(share, fcntl.LOCK_EX):
            os.ftruncate(share, 0)
            os.pwrite(share, machine, 0)
        elif os.pread(share, 4_096, 0) != machine:
            raise EmbeddedPostgresError(f"the data folder {self.data_dir} is in use by another machine or container")
        fcntl.flock(share, fcntl.LOCK_SH)

    def _ensure_running(self) -> None:
        """Have the server run, whatever an earlier one left behind."""
        try:
            self._cluster.create()
            self._cluster.check_version()
            if self._cluster.is_running():
                self._cluster.wait_until_ready()
            else:
                self._cluster.start(self._settings)
        except OSError as exc:
            raise EmbeddedPostgresError(f"the data folder {self.data_dir} cannot be used: {exc}") from exc

    def _ensure_database(self) -> str:
        """Make the database if it is missing; its URL."""
        folder = quote(self._cluster.socket_folder(), safe="")
        try:
            with psycopg.connect(f"postgresql://postgres@/postgres?host={folder}&port=5432", autocommit=True) as db:
                if not db.execute("select 1 from pg_database where datname = %s", (DATABASE,)).fetchone():
                    db.execute("create database trivet")
        except psycopg.Error as exc:
            raise EmbeddedPostgresError(f"the database of {self.data_dir} cannot be opened: {exc}") from exc
        return f"postgresql://postgres@/{DATABASE}?host={folder}&port=5432"


@asynccontextmanager
async def running(data_dir: Path, *, settings: Mapping[str, str] | None = None) -> AsyncIterator[str]:
    """The embedded server for as long as the block lasts, SIGTERM, Ctrl-C and cancellation included.

    Args:
        data_dir: its folder, see `EmbeddedPostgres`.
        settings: PostgreSQL settings over the tuned ones, where this process starts the server.

    Yields:
        A libpq URL of its database, which is not migrated yet.

    Raises:
        EmbeddedPostgresError: see `EmbeddedPostgres.start` and `stop`.
    """
    server = EmbeddedPostgres(data_dir, settings=settings)
    with _sigterm_raises():
        try:
            yield await asyncio.to_thread(server.start)
        finally:
            await asyncio.to_thread(server.stop)


@contextmanager
def _sigterm_raises() -> Iterator[None]:
    """SIGTERM, where nobody handles it, leaves by SystemExit, so that `finally` blocks run."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    def leave(signum: int, _frame: FrameType | None) -> NoReturn:
        sys.exit(128 + signum)

    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _machine() -> bytes:
    """What tells processes that see one another from those that do not: host and process namespace."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = ""
    return f"{socket.gethostname()} {namespace}".encode()


def _open(path: Path) -> int:
    """A descriptor of a lock file, made if missing."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        raise EmbeddedPostgresError(f"{path} cannot be used: {exc.strerror}") from exc


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the exclusive lock of a file, waiting for at most `LOCK_TIMEOUT_S`."""
    descriptor = _open(path)
    try:
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        while not _try_lock(descriptor, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                raise EmbeddedPostgresError(f"another process has been holding {path} for {LOCK_TIMEOUT_S} s")
            time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)
