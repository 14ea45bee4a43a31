"""The database of the tests: one embedded server for the session, a clone of a migrated template per test."""

from __future__ import annotations

import asyncio
import gc
import inspect
import itertools
import os
import pickle
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import httpx
import hypothesis
import onnxruntime as ort
import psycopg
import pytest
from cachetools import cached
from litestar._signature import SignatureModel
from litestar.utils.helpers import unwrap_partial
from litestar.utils.signature import ParsedSignature
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from classifier.inference import open_session
from graph.neighbourhood import Bounds
from retrieval.api import app
from retrieval.embedding import encoder, onnx
from retrieval.machine import processors
from retrieval.store.embedded.instance import DATABASE, EmbeddedPostgres
from retrieval.store.migrate import migrate
from retrieval.store.pool import Pool, open_pool
from tests.folders import database_folder
from tests.processes import PATIENCE_S, new_data_dir
from tests.serving import served

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Shells start background jobs like this, and the programs that tests stop by Ctrl-C would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Results must not depend on how busy the machine is. The variable is for programs started by tests.
os.environ.setdefault("TRIVET_LEG_TIMEOUT_S", str(PATIENCE_S))
# Nor on the terminal of whoever runs the tests: Rich would break lines elsewhere, and colour them.
for variable in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
    os.environ.pop(variable, None)
# Nor on a proxy that may be set: all that they ask is on this machine.
os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost,::1"
# Nor on the run: each uses the same examples. `--hypothesis-profile=search` tries others, to find what these miss.
for name, is_always_the_same, examples in (("search", False, 200), ("trivet", True, 50)):
    hypothesis.settings.register_profile(
        name,
        deadline=None,
        derandomize=is_always_the_same,
        max_examples=examples,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
hypothesis.settings.load_profile("trivet")

_NUMBERS = itertools.count(1)

_UNSAFE_BUT_FAST = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "autovacuum": "off",
    "shared_buffers": "256MB",
    "max_wal_size": "256MB",
}


@pytest.hookimpl(optionalhook=True)  # xdist may be off
def pytest_xdist_auto_num_workers() -> int:
    """Tests wait for databases and processes: one more than there are processors keeps these busy."""
    return processors() + 1


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collecting all tests makes a million objects that stay: they are frozen, so that the GC skips them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """The tests' server: a connection to its `postgres`, and the name of its migrated database."""

    admin: psycopg.Connection[Any]
    template: str

    def database(self, name: str) -> str:
        """The URL of one of its databases."""
        return f"postgresql://postgres@/{name}?host={self.admin.info.host}&port=5432"

    @contextmanager
    def clone(self, template: str | None = None) -> Iterator[str]:
        """The URL of a clone of a database, by default of `template`; dropped at the end, despite connections."""
        name = f"test_{next(_NUMBERS)}"
        new, old = sql.Identifier(name), sql.Identifier(template or self.template)
        self.admin.execute(sql.SQL("create database {} template {} strategy file_copy").format(new, old))
        yield self.database(name)
        self.admin.execute(sql.SQL("drop database if exists {} with (force)").format(new))

    @contextmanager
    def filled(self, fill: Callable[[str], Coroutine[Any, Any, None]]) -> Iterator[str]:
        """The name of a database that `fill` fills once, given its URL, and that tests clone."""
        with self.clone() as url:
            asyncio.run(fill(url))
            yield str(conninfo_to_dict(url)["dbname"])


@pytest.fixture(scope="session", autouse=True)
def the_interpreter_is_not_a_servers_own() -> Iterator[None]:
    """A server collects and freezes all objects when it starts, which took a quarter of the time of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "_tune_interpreter", lambda: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def certificates_are_read_once() -> Iterator[None]:
    """Each client of httpx reads all authorities' certificates, for 30 ms, and most tests make some."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("httpx._transports.default.create_ssl_context", cache(httpx.create_ssl_context))
        yield


@pytest.fixture(scope="session", autouse=True)
def handlers_are_read_once() -> Iterator[None]:
    """Litestar reads the signatures of all handlers for each application, two thirds of the time of making one."""

    def place(handler: Callable[..., object]) -> object:
        code = inspect.unwrap(unwrap_partial(handler)).__code__
        return code.co_filename, code

    with pytest.MonkeyPatch.context() as patch:
        from_fn = cached({}, key=lambda handler, _: place(handler))(ParsedSignature.from_fn)
        create = cached({}, key=lambda **options: place(options["fn"]))(SignatureModel.create)
        patch.setattr(ParsedSignature, "from_fn", from_fn)
        patch.setattr(SignatureModel, "create", create)
        yield


@pytest.fixture(scope="session", autouse=True)
def nothing_is_cut_short_on_a_busy_machine() -> Iterator[None]:
    """Next to other tests a database may take a second to accept a connection, and a walk a tenth to continue.

    A server may take more than the five seconds that httpx waits by default.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "read", "write", "pool"):
            patch.setattr(f"httpx._config.DEFAULT_TIMEOUT_CONFIG.{name}", PATIENCE_S)
        patch.setattr("retrieval.store.reachability.ANSWER_TIMEOUT_S", PATIENCE_S)
        patch.setattr("retrieval.store.pool.RECONNECT_TIMEOUT_S", PATIENCE_S)
        patch.setattr("retrieval.entities.view.DEADLINE_S", PATIENCE_S)
        patch.setattr("retrieval.legs.graph.Bounds", partial(Bounds, time_s=PATIENCE_S))
        yield


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The embedded PostgreSQL of the whole run, in its own folder."""
    with database_folder() as folder:
        server = EmbeddedPostgres(folder / "data", settings=_UNSAFE_BUT_FAST)
        try:
            url = server.start()
            asyncio.run(migrate(url))
            with psycopg.connect(url, dbname="postgres", autocommit=True) as admin:
                yield PostgresServer(admin=admin, template=DATABASE)
        finally:
            server.stop()


class RememberingSession:
    """An encoder with a cache of batches, as tests use the same texts repeatedly."""

    def __init__(self, path: Path) -> None:
        self._session = open_session(path)
        self._outputs: dict[bytes, list[Any]] = {}

    def run(self, names: list[str], inputs: encoder.Inputs, options: ort.RunOptions | None = None) -> list[Any]:
        """The model's outputs; a call with `options` is not cached."""
        if options is not None:
            return self._session.run(names, inputs, options)  # type: ignore[no-any-return]
        batch = pickle.dumps([(name, array.shape, array.tobytes()) for name, array in inputs.items()])
        if batch not in self._outputs:
            self._outputs[batch] = self._session.run(names, inputs)
        return [output.copy() for output in self._outputs[batch]]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


@pytest.fixture(scope="session", autouse=True)
def batches_are_encoded_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnx, "open_session", RememberingSession)
        yield


@pytest.fixture
def database_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The libpq URL of the test's own database: migrated, without rows."""
    with postgres_server.clone() as url:
        yield url


@pytest.fixture
def empty_database_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The libpq URL of the test's own database, not migrated."""
    with postgres_server.clone("template1") as url:
        yield url


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """The test's own folder for an embedded database, not created yet."""
    with new_data_dir() as folder:
        yield folder


@pytest.fixture
async def conn(database_url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """A connection to `database_url`."""
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        yield connection


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    """A pool of connections to `database_url`."""
    async with open_pool(database_url, 4) as opened:
        yield opened


@pytest.fixture
async def client(database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server on `database_url`."""
    async with served(database_url) as opened:
        yield opened
