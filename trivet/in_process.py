"""Trivet in the caller's process: the same clients, without a server or a network."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor  # imported before `_close_all` is registered, so that it ends later
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal

from retrieval.errors import ModelFileError, SettingsError, StoreError
from retrieval.settings import EMBEDDED, Settings
from trivet._async_client import AsyncClient
from trivet._client import Client
from trivet.errors import Unavailable

T = TypeVar("T")

_BASE_URL = "http://localhost"

log = logging.getLogger(__name__)


@asynccontextmanager
async def aopen(
    *, data_dir: Path | str | None = None, database_url: str | None = None, namespace: str | None = None
) -> AsyncIterator[AsyncClient]:
    """Open Trivet within a block, as an `AsyncClient`.

    Args:
        data_dir: the folder of the embedded PostgreSQL, which several processes may share; None for that of
            `TRIVET_DATA_DIR` or the default.
        database_url: a libpq URL of an external PostgreSQL instead; without either, that of
            `TRIVET_DATABASE_URL`, if it is set.
        namespace: used by calls that name none.

    Raises:
        SettingsError: both a folder and a URL, or a bad `TRIVET_` variable.
        Unavailable: the database cannot be started or reached, or a model file is damaged.
    """
    async with opened(_settings(data_dir, database_url), namespace) as client:
        yield client


@asynccontextmanager
async def opened(settings: Settings, namespace: str | None = None) -> AsyncIterator[AsyncClient]:
    """`aopen` with all settings."""
    async with (
        in_a_task(_transport(settings)) as transport,
        AsyncClient(_BASE_URL, namespace=namespace, retries=0, transport=transport) as client,
    ):
        yield client


@asynccontextmanager
async def in_a_task(context: AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
    """Enter and leave a context in one task, as it requires, even if two tasks enter and leave this one.

    That is the case in fixtures of pytest-asyncio and in cells of a notebook.
    """
    entered: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def hold() -> None:
        async with context as value:
            entered.set_result(value)
            await over.wait()

    task = asyncio.create_task(hold())
    try:
        await asyncio.wait((task, entered), return_when=asyncio.FIRST_COMPLETED)
        if entered.done():
            yield entered.result()
    finally:
        if not entered.done():
            task.cancel()
        over.set()
        await task


def open_(
    *, data_dir: Path | str | None = None, database_url: str | None = None, namespace: str | None = None
) -> Client:
    """Open Trivet for synchronous code and notebooks, as a `Client`; it runs in its own thread.

    It stays open until the `with` block ends, `close` is called or the program ends. A forked process must open its
    own.
    """
    settings = _settings(data_dir, database_url)
    with ExitStack() as stack:
        # Called in another thread, as Ctrl-C would make it wait for a thread that never ends.
        with ThreadPoolExecutor(1) as starter:
            starting = starter.submit(stack.enter_context, start_blocking_portal(backend_options={"use_uvloop": True}))
        portal = starting.result()
        transport = stack.enter_context(portal.wrap_async_context_manager(_transport(settings)))
        blocking = _Blocking(portal, transport, stack.pop_all())
    _open.add(blocking)
    return Client(_BASE_URL, namespace=namespace, retries=0, transport=blocking)


class _WholeAnswers(httpx.ASGITransport):
    """Fails if the application fails in the middle of an answer, like a connection that ends early."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        try:
            return await super().handle_async_request(request)
        except Exception as exc:  # before an answer begins, the application turns it into one
            raise httpx.RemoteProtocolError(str(exc)) from exc


class _Blocking(httpx.BaseTransport):
    """Sends requests from synchronous code to an application in another thread; `close` ends the thread."""

    def __init__(self, portal: BlockingPortal, transport: httpx.AsyncBaseTransport, opened: ExitStack) -> None:
        self._portal = portal
        self._transport = transport
        self._opened = opened
        self._process = os.getpid()

    def close(self) -> None:
        if self._is_here:
            _open.discard(self)
            self._opened.close()

    @property
    def _is_here(self) -> bool:
        """Whether this is the process that opened it; a fork has no such thread."""
        return os.getpid() == self._process

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if not self._is_here:
            raise RuntimeError("this client was opened by another process: open one in this process, too")
        answer = self._portal.start_task_soon(self._answer, request)
        try:
            return answer.result()
        except BaseException:  # Ctrl-C: nothing waits for the answer any more
            answer.cancel()
            raise

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        answer = await self._transport.handle_async_request(request)
        return httpx.Response(answer.status_code, headers=answer.headers, content=await answer.aread())


_open: set[_Blocking] = set()


def _close_all() -> None:
    """Close what is open at the end of the program."""
    for each in [*_open]:
        try:
            each.close()
        except Exception as exc:  # still close the others
            log.error("Trivet could not be closed: %s", exc)


# `atexit` is too late: by then threads can no longer be started, nor used through `to_thread`.
threading._register_atexit(_close_all)  # type: ignore[attr-defined]


@asynccontextmanager
async def _transport(settings: Settings) -> AsyncIterator[httpx.AsyncBaseTransport]:
    from retrieval.api.app import create_app  # brings all of Litestar
    from retrieval.engine import Trivet

    async with AsyncExitStack() as stack:
        try:
            engine = await stack.enter_async_context(Trivet.open(settings))
        except (StoreError, ModelFileError) as exc:  # which a server answers with a 503
            raise Unavailable(str(exc)) from exc
        app = create_app(settings, engine, is_server=False)
        async with app.lifespan():
            yield _WholeAnswers(app)  # type: ignore[arg-type]


def _settings(data_dir: Path | str | None, database_url: str | None) -> Settings:
    if data_dir is not None and database_url is not None:
        raise SettingsError("give a data_dir or a database_url, not both")
    url = EMBEDDED if data_dir is not None else database_url
    return replace(Settings.from_env(data_dir=data_dir, database_url=url), api_key=None)
