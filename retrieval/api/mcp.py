"""`/mcp/NAMESPACE`: the tools of `trivet.mcp` over HTTP, where the extra `mcp` is installed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from importlib.util import find_spec

from litestar import Litestar, asgi
from litestar.enums import ScopeType
from litestar.exceptions import NotFoundException
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from retrieval.api.parameters import unquoted
from retrieval.api.state import AppState
from retrieval.api.tokens import check_access, token_in
from retrieval.errors import NotFound
from retrieval.tasks import cancel

NAMESPACE_HEADER = b"x-trivet-namespace"


@asgi("/mcp", is_mount=True, copy_scope=True)
async def mcp_route(scope: Scope, receive: Receive, send: Send) -> None:
    """Pass requests below `/mcp` to the tools, with the namespace from the path or else from a header."""
    assert scope["type"] == ScopeType.HTTP  # noqa: S101  # for mypy
    tools: ASGIApp | None = scope["litestar_app"].state["api"].tools
    if not scope["path"].startswith("/"):  # as that of /mcpx
        raise NotFoundException
    if tools is None:
        raise NotFound("the Model Context Protocol's package is missing on the server: pip install 'trivet[mcp]'")
    header = next((value.decode("latin-1") for name, value in scope["headers"] if name == NAMESPACE_HEADER), "")
    namespace = unquoted(scope["path"].strip("/") or header, "namespace") or None
    check_access(scope, namespace, writes=False)
    token = token_in(scope)
    scope["state"] |= {"namespace": namespace, "only_reads": token is not None and token.access == "read"}
    is_begun = False

    async def send_noting(message: Message) -> None:
        nonlocal is_begun
        is_begun = message["type"] == "http.response.start" or bool(message.get("more_body"))
        await send(message)

    await tools({**scope, "path": "/"}, receive, send_noting)
    if is_begun:  # a stopping server cut off the stream: without an end, its client would see a failure
        await send({"type": "http.response.body", "body": b"", "more_body": False})


@asynccontextmanager
async def serving_tools(app: Litestar, api: AppState) -> AsyncIterator[None]:
    """Serve the tools for the length of a block; their requests go to the HTTP API of the same application."""
    if find_spec("mcp") is None:
        yield
        return
    tools = _Tools(app, api)
    api.tools = tools
    yield
    api.tools = None
    await tools.aclose()


class _Tools:
    """The tools, created on first use: their libraries take 30 MB and half a second."""

    def __init__(self, app: Litestar, api: AppState) -> None:
        self._app = app
        self._settings = api.settings
        self._opened = AsyncExitStack()
        self._making: asyncio.Task[ASGIApp] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._making is None:
            self._making = asyncio.create_task(self._make())
        tools = await asyncio.shield(self._making)
        await tools(scope, receive, send)

    async def aclose(self) -> None:
        """Close the tools if they were created."""
        if self._making is not None:
            await cancel(self._making)
        await self._opened.aclose()

    async def _make(self) -> ASGIApp:
        mcp = await asyncio.to_thread(import_module, "trivet.mcp")
        import httpx

        from trivet import AsyncClient
        from trivet.in_process import in_a_task

        # No client address: the rate limit does not count the requests of tools.
        transport = httpx.ASGITransport(self._app, raise_app_exceptions=False, client=None)  # type: ignore[arg-type]
        client = AsyncClient(self._settings.address, self._settings.api_key, retries=0, transport=transport)
        await self._opened.enter_async_context(client)
        tools: ASGIApp = await self._opened.enter_async_context(in_a_task(mcp.serving_http(client)))
        return tools
