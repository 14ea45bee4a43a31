"""The PostgreSQL server that Trivet runs itself, one per data folder, shared by all processes that use it.

Each process that uses the server holds a shared lock on a file in the data folder. A process that leaves and finds no
other holder stops the server. The operating system releases the locks of a killed process, so the next start takes over
a server that it left behind.

Each process also watches the server. If it ends unexpectedly, killed or out of disk space, the first process to take
the folder's other lock restarts it, retrying with growing pauses; the others find it running.
"""

from __future__ import annotations

import asyncio
import atexit
import fcntl
import itertools
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from types import FrameType
from urllib.parse import quote, urlencode

import psycopg

from retrieval.errors import EmbeddedPostgresError
from retrieval.store.embedded.cluster import Cluster
from retrieval.store.embedded.programs import check_processor
from retrieval.store.embedded.tuning import tuned_settings

DATABASE = "trivet"
LOCK_TIMEOUT_S = 660
"""How long to wait for another process that is starting or stopping the server."""

WATCH_INTERVAL_S = 0.25
"""How often a process checks that the server still runs."""

LONGEST_PAUSE_S = 10.0
"""Longest pause between restart attempts; pauses double up to this."""

FAILURES_TOLERATED = 5
"""Restart attempts that may fail, within some ten seconds, before the server counts as dead."""

log = logging.getLogger(__name__)

_CLUSTER = "postgres"
_OWN_NAMES = frozenset({_CLUSTER, "postgres.new", "change.lock", "users.lock", "lost+found", "demo", "eval", "index"})

_INSTEAD_OF_VARIABLES = {
    "hostaddr": "", "options": "-clog_error_verbosity=terse", "target_session_attrs": "any",
    "require_auth": "", "channel_binding": "disable", "gssencmode": "disable", "sslnegotiation": "postgres",
}  # fmt: skip
"""Connection parameters that libpq would otherwise take from PGOPTIONS and the like, which are for another server.

Errors are logged without the keys that collided: those of deleted memories would stay in the log.
"""

_UNFIT = frozenset('"\\$`\n\r')  # pg_ctl passes the path to a shell in double quotes


class EmbeddedPostgres:
    """One process's share in the server of a data folder. Methods block and may be called from any thread."""

    def __init__(self, data_dir: Path, *, settings: Mapping[str, str] | None = None) -> None:
        """Touches nothing before `start`, which creates `data_dir` and its parents unless it exists, empty or ours.

        The `settings` of PostgreSQL override the tuned ones, if this process starts the server.
        """
        try:
            self.data_dir = Path(os.path.abspath(data_dir.expanduser()))
        except RuntimeError as exc:
            raise EmbeddedPostgresError(f"There is no home directory for {data_dir}: set TRIVET_DATA_DIR") from exc
        self._cluster = Cluster(self.data_dir / _CLUSTER)
        self._settings = {**tuned_settings(), **(settings or {})}
        self._lock = threading.Lock()
        self._share: int | None = None
        self._process = 0
        self._leaving = threading.Event()
        self._watcher = threading.Thread()
        self.failure: str | None = None
        """Why the server ended and several restarts failed; None if it runs."""
        self.is_lost = False
        """Whether the data folder is gone, so that restarting is pointless; `stop` then raises."""

    def start(self) -> str:
        """Start the server, or join the running one, and create its database if missing; returns its libpq URL.

        Raises EmbeddedPostgresError if the folder or the processor is unsuitable, or the server does not start.
        """
        check_processor()
        self._process = os.getpid()  # set first, as it may be stopped while it starts
        with self._lock:
            self._check_folder()
            with _locked(self.data_dir / "change.lock"):
                share = _open(self.data_dir / "users.lock")
                try:
                    self._join(share)
                    with self._translated_errors():
                        self._cluster.create()
                    self._ensure_running()
                    url = self._ensure_database()
                except BaseException:
                    os.close(share)
                    raise
                if self._share is not None:
                    os.close(self._share)
                else:
                    self._start_watching()
                self._share = share
            atexit.register(self.stop)
            return url

    def stop(self) -> None:
        """Leave; the last process to leave stops the server. Does nothing in a fork, or if `start` did not succeed.

        Raises EmbeddedPostgresError if the server does not stop, or its data folder is gone.
        """
        if os.getpid() != self._process:
            return
        with self._lock:
            if self._share is None:
                return
            share, self._share = self._share, None
            watcher = self._watcher
            self._leaving.set()
            atexit.unregister(self.stop)
            try:
                if self.is_lost:
                    raise EmbeddedPostgresError(self.failure)
                with _locked(self.data_dir / "change.lock"):
                    if _try_lock(share) and self._cluster.is_running():
                        self._cluster.stop()
            finally:
                os.close(share)
        watcher.join()  # it may be waiting for the lock

    def stay_out_of_forks(self) -> None:
        """Detach processes forked from now on: they neither hold its locks nor watch the server."""
        os.register_at_fork(
            before=self._lock.acquire,  # no copy of a lock's descriptor while the server is being restarted
            after_in_parent=self._lock.release,
            after_in_child=self._disown,
        )

    def _disown(self) -> None:
        if self._share is not None:
            os.close(self._share)  # does not release the parent process's lock
            self._share = None
        self._lock.release()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        """Run the server for the duration of the block; SIGTERM, SIGHUP, Ctrl-C and cancellation leave the block.

        Yields the libpq URL of its database, which is not yet migrated; raises as `start` and `stop` do.
        """
        with signals_raise(asyncio.get_running_loop()):
            try:
                yield await asyncio.to_thread(self.start)
            finally:
                await asyncio.to_thread(self.stop)

    def _check_folder(self) -> None:
        """Create the data folder; refuse one that holds anything else."""
        if unfit := sorted(_UNFIT & set(str(self.data_dir))):
            raise EmbeddedPostgresError(f"PostgreSQL cannot use the data folder {self.data_dir}: it has {unfit[0]!r}")
        try:
            self.data_dir.mkdir(parents=True, exist_ok=True)
            names = {entry.name for entry in self.data_dir.iterdir()}
        except OSError as exc:
            raise EmbeddedPostgresError(f"the data folder {self.data_dir} cannot be used: {exc.strerror}") from exc
        is_ours = os.path.exists(self._cluster.pgdata / "PG_VERSION")
        if not is_ours and (strange := sorted(names - _OWN_NAMES)):
            raise EmbeddedPostgresError(
                f"the data folder {self.data_dir} is not empty and not Trivet's (it holds {strange[0]!r}); "
                "set TRIVET_DATA_DIR to a folder of its own"
            )
        if not os.access(self.data_dir, os.W_OK | os.X_OK):
            raise EmbeddedPostgresError(f"the data folder {self.data_dir} cannot be written")

    def _join(self, share: int) -> None:
        """Take a share; processes of another machine or container cannot share the server."""
        machine = _machine()
        if _try_lock(share):
            os.ftruncate(share, 0)
            os.pwrite(share, machine, 0)
        elif os.pread(share, 4_096, 0) != machine:
            raise EmbeddedPostgresError(f"the data folder {self.data_dir} is in use by another machine or container")
        fcntl.flock(share, fcntl.LOCK_SH)

    def _ensure_running(self) -> None:
        """Start the server unless it runs."""
        with self._translated_errors():
            self._cluster.check_version()
            if not self._cluster.becomes_ready():
                self._cluster.start(self._settings)

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Add the data folder to errors of the operating system."""
        try:
            yield
        except OSError as exc:
            raise EmbeddedPostgresError(f"the data folder {self.data_dir} cannot be used: {exc}") from exc

    def _start_watching(self) -> None:
        """Start watching the server, until `stop`."""
        self.failure, self.is_lost, self._leaving = None, False, threading.Event()
        self._watcher = threading.Thread(target=self._watch, args=(self._leaving,), name="watch-postgres", daemon=True)
        self._watcher.start()

    def _watch(self, leaving: threading.Event) -> None:
        """Restart the server whenever it ends, until this process leaves or the data folder is gone."""
        fault = None
        while not leaving.wait(WATCH_INTERVAL_S) and not self.is_lost:
            try:
                has_ended = not self._cluster.is_running()
            except OSError as exc:  # this process may have too many open files
                if str(exc) != fault:
                    fault = str(exc)
                    log.warning("whether PostgreSQL in %s runs cannot be seen: %s", self.data_dir, exc)
                continue
            fault = None
            if has_ended:
                log.error("PostgreSQL in %s has ended unexpectedly; starting it again", self.data_dir)
                self._revive(leaving)

    def _revive(self, leaving: threading.Event) -> None:
        """Restart the server, retrying until it succeeds."""
        pause_s = WATCH_INTERVAL_S
        for attempt in itertools.count(1):
            with self._lock:
                if leaving.is_set():
                    return
                try:
                    self._start_again()
                except Exception as exc:  # the next attempt may succeed
                    log.error("PostgreSQL could not be started again, attempt %d: %s", attempt, exc)
                    if self.is_lost or attempt >= FAILURES_TOLERATED:
                        self.failure = str(exc)
                else:
                    self.failure = None
                    return
            if self.is_lost or leaving.wait(pause_s):
                return
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _start_again(self) -> None:
        """Start the server unless another process did; never in a recreated folder, which would be empty."""
        if not self._cluster.pgdata.is_dir():
            self.is_lost = True
            raise EmbeddedPostgresError(f"the database's folder {self._cluster.pgdata} is gone")
        with _locked(self.data_dir / "change.lock"):
            self._ensure_running()
        log.warning("PostgreSQL in %s answers again", self.data_dir)

    def _ensure_database(self) -> str:
        """Create the database if it is missing; returns its URL."""
        address = {"host": self._cluster.socket_folder(), "port": "5432", **_INSTEAD_OF_VARIABLES}
        parameters = urlencode(address, quote_via=quote)
        try:
            with psycopg.connect(f"postgresql://postgres@/postgres?{parameters}", autocommit=True) as db:
                if not db.execute("select 1 from pg_database where datname = %s", (DATABASE,)).fetchone():
                    db.execute("create database trivet")
        except psycopg.Error as exc:
            raise EmbeddedPostgresError(f"the database of {self.data_dir} cannot be opened: {exc}") from exc
        return f"postgresql://postgres@/{DATABASE}?{parameters}"


def running(data_dir: Path, *, settings: Mapping[str, str] | None = None) -> AbstractAsyncContextManager[str]:
    """`EmbeddedPostgres.running` for a folder."""
    return EmbeddedPostgres(data_dir, settings=settings).running()


def is_made(data_dir: Path) -> bool:
    """Whether a folder already has a database; otherwise `running` creates it."""
    return (data_dir / _CLUSTER).exists()


@contextmanager
def signals_raise(loop: asyncio.AbstractEventLoop | None = None) -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into SystemExit unless they are handled or ignored, so that `finally` blocks run.

    A running event loop raises it between the steps of tasks; within one it would be that task's failure.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(signum: int, _frame: FrameType | None) -> None:
        if loop is None:
            sys.exit(128 + signum)
        loop.call_soon_threadsafe(sys.exit, 128 + signum)

    fatal = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) == signal.SIG_DFL]
    for number in fatal:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in fatal:
            signal.signal(number, signal.SIG_DFL)


def _machine() -> bytes:
    """Host and process namespace: the same for processes that can see one another."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = ""
    return f"{socket.gethostname()} {namespace}".encode()


def _open(path: Path) -> int:
    """Open a lock file, created if missing; returns its descriptor."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        raise EmbeddedPostgresError(f"{path} cannot be used: {exc.strerror}") from exc


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file, waiting up to `LOCK_TIMEOUT_S`."""
    descriptor = _open(path)
    try:
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        while not _try_lock(descriptor):
            if time.monotonic() > deadline:
                raise EmbeddedPostgresError(f"another process has been holding {path} for {LOCK_TIMEOUT_S} s")
            time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)
