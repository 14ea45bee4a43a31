"""`/mcp/NAMESPACE`: the tools of `trivet.mcp` over HTTP, where the extra `mcp` is installed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec

from litestar import Litestar, asgi
from litestar.exceptions import NotFoundException
from litestar.types import ASGIApp, Receive, Scope, Send

from retrieval.api.state import AppState


@asgi("/mcp", is_mount=True, copy_scope=True)
async def mcp_route(scope: Scope, receive: Receive, send: Send) -> None:
    """Hand over what is below `/mcp`."""
    tools: ASGIApp | None = scope["litestar_app"].state["api"].tools
    if tools is None:
        raise NotFoundException
    await tools({**scope, "path": "/"}, receive, send)  # type: ignore[arg-type]


@asynccontextmanager
async def serving_tools(app: Litestar, api: AppState) -> AsyncIterator[None]:
    """Serve the tools for the length of a block; their requests go to the HTTP API of the same application."""
    if find_spec("mcp") is None:
        yield
        return
    import httpx

    from trivet import AsyncClient
    from trivet.mcp import serving_http

    base_url = f"http://{api.settings.host}:{api.settings.port}"
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)  # type: ignore[arg-type]
    async with (
        AsyncClient(base_url, api.settings.api_key, retries=0, transport=transport) as client,
        serving_http(client, base_url) as tools,
    ):
        api.tools = tools  # type: ignore[assignment]
        yield
        api.tools = None
