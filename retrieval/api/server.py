"""The HTTP server process: one worker here, or several under a parent that holds the database."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import ipaddress
import logging
import multiprocessing
import multiprocessing.util
import os
import signal
import socket
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from functools import cache, partial
from typing import Any

import uvicorn
import uvicorn._subprocess
import uvloop
from litestar import Litestar
from litestar.types import ASGIApp
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import SIGNALS, Process

from native.malloc import limit_free_memory, trim_heap
from retrieval.api.connections import KEEP_ALIVE_S, BoundedConnection
from retrieval.api.metrics_folder import FOLDER_VARIABLE, metrics_folder
from retrieval.errors import SettingsError, StoreUnavailable
from retrieval.settings import Settings, variable_of
from retrieval.store.embedded.instance import EmbeddedPostgres, signals_raise

logger = logging.getLogger(__name__)

APP = f"{__name__}:app_from_env"

SEND_TIMEOUT_S = 300.0
"""How long a client may read nothing of a response before its connection is closed: an export holds a snapshot."""

START_METHOD = "fork" if sys.platform == "linux" else "spawn"
"""How workers start: the system libraries of other platforms are not fork-safe."""

_PR_SET_PDEATHSIG = 1
"""Linux's `prctl`: the signal that a process gets when its parent ends."""

GRACE_S = 10
"""How long running requests may take to finish once the server is told to stop."""


def run(settings: Settings) -> None:
    """Serve until SIGINT or SIGTERM, then finish running requests and return.

    With several workers, this process only supervises them, and SIGHUP replaces them one by one; otherwise SIGHUP
    stops the server, too.

    Raises:
        SettingsError: a public address without a key, an address that cannot be used.
        StoreError: the database cannot be started, reached or migrated.
    """
    logging.basicConfig(level=settings.log_level.upper())
    check_exposure(settings)
    limit_free_memory()  # before there are threads with heaps of their own
    with listening(settings) as listener:
        settings = replace(settings, port=listener.getsockname()[1])
        if settings.uses_embedded:
            logger.info("The embedded database is in %s", settings.data_dir)
        if settings.workers == 1:
            _run_one(settings, listener)
        else:
            _run_many(settings, listener)


@cache
def app_from_env() -> ASGIApp:
    """The application of a worker process, configured by its environment."""
    from retrieval.api.app import create_app
    from retrieval.api.middleware import stating_startup_failures

    settings = Settings.from_env()
    # As in the parent, from which spawned workers inherit nothing.
    logging.basicConfig(level=settings.log_level.upper(), format="%(levelname)s: %(message)s")
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
    logging.getLogger("uvicorn.error").addFilter(_is_no_cancellation)
    return stating_startup_failures(create_app(settings))


def check_exposure(settings: Settings) -> None:
    """Refuse to listen beyond this machine without a key.

    Raises:
        SettingsError: the address is not a loopback one and there is no key.
    """
    if settings.api_key is None and not _is_loopback(settings.host):
        raise SettingsError(
            f"{settings.host} can be reached from other machines: set TRIVET_API_KEY, or listen on 127.0.0.1"
        )


@contextmanager
def listening(settings: Settings) -> Iterator[socket.socket]:
    """A socket that listens on the settings' address and is closed at the end.

    Raises:
        SettingsError: the address is taken or unknown.
    """
    family, kind, protocol, _, address = _addresses(settings.host, settings.port)[0]
    with ExitStack() as stack:
        try:
            listener = stack.enter_context(socket.socket(family, kind, protocol))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if sys.platform == "linux":  # elsewhere the system's default applies
                listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(SEND_TIMEOUT_S * 1000))
            listener.bind(address)
            listener.listen(2048)
        except OSError as exc:
            raise SettingsError(f"Cannot listen on {settings.host}:{settings.port}: {exc.strerror}") from exc
        listener.set_inheritable(True)
        yield listener


def _is_loopback(host: str) -> bool:
    """Whether all addresses of a host are this machine's own."""
    found = _addresses(host)
    return all(ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback for *_, address in found)


def _addresses(host: str, port: int | None = None) -> Sequence[tuple[Any, ...]]:
    """The addresses of a host, at least one; raises SettingsError if there is none."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as exc:
        raise SettingsError(f"Cannot listen on {host!r}: {exc.strerror}") from exc
    except UnicodeError as exc:  # such as an empty part between two dots
        raise SettingsError(f"Cannot listen on {host!r}: it is not a valid host name") from exc


class _Server(uvicorn.Server):
    """Stops on a signal without raising it again, so that resources are closed and the exit status is 0.

    It also stops if the embedded database cannot come back.
    """

    def __init__(self, config: uvicorn.Config, postgres: EmbeddedPostgres | None) -> None:
        super().__init__(config)
        self._postgres = postgres

    async def on_tick(self, counter: int) -> bool:
        is_lost = self._postgres is not None and self._postgres.is_lost
        return await super().on_tick(counter) or is_lost

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        stops = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup ignores it
            stops.append(signal.SIGHUP)
        former = {number: signal.signal(number, self.handle_exit) for number in stops}
        try:
            yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)


class _Workers(Multiprocess):
    """Supervises workers: ends all if the embedded database cannot come back, or if one of the first fails to start.

    Later, a replacement for a dead worker that fails to start is started again: the database may be down, and the
    other workers report that to their callers until it is back.
    """

    def __init__(self, config: uvicorn.Config, listener: socket.socket, postgres: EmbeddedPostgres | None) -> None:
        super().__init__(config, sockets=[listener])
        self._postgres = postgres
        self._first: list[Process] = []

    def run(self) -> None:
        try:
            super().run()
        except BaseException:  # such as too many open files; multiprocessing would wait until they end by themselves
            self.terminate_all()
            self.join_all()
            raise

    def init_processes(self) -> None:
        super().init_processes()
        self._first = [*self.processes]

    def terminate_all(self) -> None:
        for listener in self.sockets:
            listener.close()  # or new connections would wait here until the last worker has ended
        super().terminate_all()

    def keep_subprocess_alive(self) -> None:
        if self._postgres is not None and self._postgres.is_lost:
            self.should_exit.set()
        if self.should_exit.is_set():
            return
        with _logged_if_short():  # tried again within a second
            self._replace_dead()

    def handle_signals(self) -> None:
        with _logged_if_short():  # those that SIGHUP would replace serve on
            super().handle_signals()

    def _replace_dead(self) -> None:
        former = [*self.processes]
        super().keep_subprocess_alive()
        for process in former:
            if process not in self.processes and (status := process.exitcode or 0) < 0:
                cause = "as when memory runs out or it does not answer"
                logger.warning("Worker %d was ended by signal %d, %s; it is replaced", process.pid, -status, cause)
        for place, process in enumerate(self.processes):
            if process.exitcode == STARTUP_FAILURE and process not in self._first:
                logger.info("Restarting the worker that failed to start; the others keep running")
                self.should_exit.clear()  # uvicorn has set it
                another = Process(self.config, self.sockets)
                another.start()
                self.processes[place] = another


@contextmanager
def _logged_if_short() -> Iterator[None]:
    """Log instead of raising that no worker can be started: files, processes or memory may be short."""
    try:
        yield
    except OSError as exc:
        logger.error("A worker cannot be started: %s", exc)


def _is_no_cancellation(record: logging.LogRecord) -> bool:
    """Whether a record of the log is not the traceback of a request that was cut off when the server stopped."""
    return record.exc_info is None or not isinstance(record.exc_info[1], asyncio.CancelledError)


def config(app: Litestar | str, settings: Settings) -> uvicorn.Config:
    """Uvicorn's configuration for an application or the name of its factory."""
    logging.getLogger("uvicorn.error").addFilter(_is_no_cancellation)
    return uvicorn.Config(
        app,
        factory=isinstance(app, str),
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        loop="uvloop",
        http=BoundedConnection,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the rate limit counts by the connection's address
        timeout_graceful_shutdown=GRACE_S,
        timeout_keep_alive=KEEP_ALIVE_S,
    )


def _run_one(settings: Settings, listener: socket.socket) -> None:
    from retrieval.api.app import create_app
    from retrieval.engine import Trivet

    async def serve() -> None:
        async with Trivet.open(settings) as engine:
            server = _Server(config(create_app(settings, engine), settings), engine.postgres)
            await asyncio.sleep(0)  # Ctrl-C so far ends it here: within the server it would be logged as a failed start
            logger.info("Listening on %s", settings.address)
            await server.serve(sockets=[listener])

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve())


def _run_many(settings: Settings, listener: socket.socket) -> None:
    with ExitStack() as stack:
        postgres = EmbeddedPostgres(settings.data_dir) if settings.uses_embedded else None
        if postgres is not None:  # started before the workers, which share it
            stack.enter_context(signals_raise())  # until the workers' supervisor handles them
            stack.callback(postgres.stop)
            with ThreadPoolExecutor(max_workers=1) as beside:  # signals must not end it half-way
                beside.submit(postgres.start).result()
        os.environ.update({**as_environment(settings), FOLDER_VARIABLE: stack.enter_context(metrics_folder())})
        multiprocessing.util._flush_std_streams = _flush_streams  # type: ignore[attr-defined]
        uvicorn._subprocess.spawn = multiprocessing.get_context(START_METHOD)  # type: ignore[assignment]
        if START_METHOD == "fork":
            _share_with_forks(postgres)
        logger.info("Listening on %s with %d workers", settings.address, settings.workers)
        supervisor = _Workers(config(APP, settings), listener, postgres)
        supervisor.run()
        if any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes):
            raise StoreUnavailable("A worker could not start; its log says why")


def _flush_streams() -> None:
    """Flush both streams, as multiprocessing does before it starts a process, but even if a log is full or closed."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError, OSError):  # closed at the start, since then, full
            stream.flush()


def _share_with_forks(postgres: EmbeddedPostgres | None) -> None:
    """Load what every worker needs, so that workers forked later share its memory, and prepare for forking.

    Besides their indexes, two workers take 225 MB together, and would take 350 if each loaded its own. Raises
    InvalidInput or ModelFileError for a model that is missing or damaged.
    """
    from retrieval.engine import load_models

    load_models()
    app_from_env()
    gc.collect()
    gc.freeze()  # a collection writes to each object that it sees
    trim_heap()
    # A signal before uvicorn's server handles it must end the worker; this process's handlers would only note it.
    stops = {signal.SIGINT, signal.SIGTERM}
    os.register_at_fork(
        before=partial(signal.pthread_sigmask, signal.SIG_BLOCK, stops),
        after_in_parent=partial(signal.pthread_sigmask, signal.SIG_UNBLOCK, stops),
        after_in_child=partial(_restore_signals, stops),
    )
    if postgres is not None:
        postgres.stay_out_of_forks()


def _restore_signals(blocked: Collection[signal.Signals]) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)  # or a killed parent would leave workers on its port
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a terminal sends it to all; the parent replaces workers
    signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)


def as_environment(settings: Settings) -> Mapping[str, str]:
    """The settings as `TRIVET_*` variables, which `Settings.from_env` reads back."""
    values = {variable_of(name): value for name, value in asdict(settings).items()}
    return {name: str(value) for name, value in values.items() if value is not None}
