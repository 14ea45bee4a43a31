"""Trivet's HTTP interface for the tests: in this process, or as a separate server on a free port."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

import httpx
import uvicorn
from litestar import Litestar

from retrieval.api.app import create_app
from retrieval.api.server import config, listening
from retrieval.settings import Settings
from tests.processes import PATIENCE_S, status, until
from trivet.in_process import in_a_task


def settings_for(database_url: str, **changes: object) -> Settings:
    """Settings of a small server on a free port, without tight deadlines of legs."""
    settings = Settings(database_url=database_url, pool_size=4, port=0, leg_timeout_s=PATIENCE_S)
    return replace(settings, **changes)  # type: ignore[arg-type]


@asynccontextmanager
async def client_of(app: Litestar) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application in this process, from its start to its stop."""
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)  # type: ignore[arg-type]
    async with (
        in_a_task(app.lifespan()),
        httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
    ):
        yield client


@asynccontextmanager
async def served(database_url: str, **changes: object) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the real engine on a database, ready: the largest namespaces are loaded."""
    app = create_app(settings_for(database_url, **changes))
    async with client_of(app) as client:
        await until_ready(client)
        yield client


async def until_ready(client: httpx.AsyncClient) -> None:
    """Wait until a server is ready, which may take a while on a busy machine."""
    async with asyncio.timeout(PATIENCE_S):
        while (await client.get("/health/ready")).status_code != 200:  # noqa: ASYNC110 - nothing signals it
            await asyncio.sleep(0.02)


@contextmanager
def on_a_port(settings: Settings) -> Iterator[str]:
    """A server in a thread; its URL."""
    with listening(settings) as listener:
        server = uvicorn.Server(config(create_app(settings), settings))
        thread = threading.Thread(target=asyncio.run, args=(server.serve(sockets=[listener]),))
        thread.start()
        try:
            host, port = listener.getsockname()[:2]
            url = f"http://{host}:{port}"
            _wait_until_started(server, thread)
            until(lambda: status(f"{url}/health/ready") == 200)
            yield url
        finally:
            server.should_exit = True
            thread.join(timeout=PATIENCE_S)


def _wait_until_started(server: uvicorn.Server, thread: threading.Thread) -> None:
    while not server.started:
        thread.join(timeout=0.02)
        if not thread.is_alive():
            raise RuntimeError("the server did not start")


def problem_of(answer: httpx.Response, status: int) -> dict[str, object]:
    """The problem in an answer, which must have this status."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found: dict[str, object] = answer.json()
    assert found["status"] == status
    assert {"type", "title", "detail"} <= found.keys()
    return found
