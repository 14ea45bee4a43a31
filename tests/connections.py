"""Trivet as used with a framework: in this process, and over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

import trivet
from tests.serving import on_a_port, settings_for

Connection = Callable[[str], AbstractAsyncContextManager[trivet.AsyncClient]]


@asynccontextmanager
async def in_process(database_url: str) -> AsyncIterator[trivet.AsyncClient]:
    """An asynchronous client of the namespace `ana`."""
    async with trivet.aopen(database_url=database_url, namespace="ana") as client:
        yield client


@asynccontextmanager
async def over_http(database_url: str) -> AsyncIterator[trivet.AsyncClient]:
    """The same of a server."""
    with on_a_port(settings_for(database_url)) as url:
        async with trivet.AsyncClient(url, namespace="ana") as client:
            yield client


connections = pytest.mark.parametrize("connection", [in_process, over_http])
