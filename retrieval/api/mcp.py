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
    """Serve the tools for the length of a block; their requests go to the HTTP API of the same application.

    They are made on first use: their libraries take 30 MB and half a second.
    """
    if find_spec("mcp") is None:
        yield
        return
    making: asyncio.Task[ASGIApp] | None = None

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal making
        making = making or asyncio.create_task(_make(app, api, opened))
        tools = await asyncio.shield(making)
        await tools(scope, receive, send)

    async with AsyncExitStack() as opened:
        api.tools = serve
        yield
        api.tools = None
        if making is not None:
            await cancel(making)


async def _make(app: Litestar, api: AppState, opened: AsyncExitStack) -> ASGIApp:
    mcp = await asyncio.to_thread(import_module, "trivet.mcp")
    import httpx

    from trivet import AsyncClient
    from trivet.in_process import in_a_task

    # No client address: the rate limit does not count the requests of tools.
    transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=None)  # type: ignore[arg-type]
    client = AsyncClient(api.settings.address, api.settings.api_key, retries=0, transport=transport)
    await opened.enter_async_context(client)
    tools: ASGIApp = await opened.enter_async_context(in_a_task(mcp.serving_http(client)))
    return tools
