"""`/mcp/NAMESPACE`: the tools of the Model Context Protocol over HTTP, where the extra `mcp` is installed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import httpx
from litestar import Litestar, asgi
from litestar.exceptions import NotFoundException
from litestar.types import ASGIApp, Receive, Scope, Send

from retrieval.api.state import AppState
from retrieval.errors import InvalidInput

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context

PATH = "/mcp"
NAMESPACE_HEADER = "x-trivet-namespace"


@asgi(PATH, is_mount=True, copy_scope=True)
async def mcp_route(scope: Scope, receive: Receive, send: Send) -> None:
    """Hand over what is below `/mcp`."""
    tools: ASGIApp | None = scope["litestar_app"].state["api"].tools
    if tools is None:
        raise NotFoundException
    await tools({**scope, "path": "/"}, receive, send)  # type: ignore[arg-type]


@asynccontextmanager
async def serving_tools(app: Litestar, api: AppState) -> AsyncIterator[None]:
    """Serve the tools for the length of a block; their requests go to the HTTP API of the same application."""
    try:
        from mcp.server.transport_security import TransportSecuritySettings

        from trivet import AsyncClient
        from trivet.mcp import server
    except ModuleNotFoundError as exc:
        if exc.name is None or exc.name.partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        yield
        return
    settings = api.settings
    base_url = f"http://{settings.host}:{settings.port}"
    # Without a key, a page in a browser could reach the server by a name of its own that resolves to loopback.
    guard = TransportSecuritySettings(
        enable_dns_rebinding_protection=settings.api_key is None,
        allowed_hosts=["127.0.0.1:*", "localhost:*", "[::1]:*"],
        allowed_origins=["http://127.0.0.1:*", "http://localhost:*", "http://[::1]:*"],
    )
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)  # type: ignore[arg-type]
    async with AsyncClient(base_url, settings.api_key, retries=0, transport=transport) as client:
        tools = server(client, namespace_of, base_url=base_url)
        api.tools = tools.streamable_http_app(  # type: ignore[assignment]
            streamable_http_path="/", json_response=True, stateless_http=True, transport_security=guard
        )
        async with tools.session_manager.run():
            yield
        api.tools = None


def namespace_of(context: Context) -> str:
    """The namespace that a request names by its path or else by a header.

    Raises:
        InvalidInput: by neither.
    """
    request: Any = context.request_context.request
    path = request.scope["raw_path"].decode("latin-1").removeprefix(PATH).strip("/")
    name: str | None = unquote(path) or request.headers.get(NAMESPACE_HEADER)
    if not name:
        raise InvalidInput(f"name a namespace: {PATH}/NAMESPACE, or the header {NAMESPACE_HEADER}")
    return name
