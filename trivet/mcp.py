"""Trivet as a Model Context Protocol server: memory as tools for an assistant. Needs the extra `mcp`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import msgspec
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import ToolAnnotations
from pydantic import ValidationError
from starlette.applications import Starlette

from retrieval.installation import installed_version
from retrieval.types.search import SearchResult
from trivet._async_client import AsyncClient
from trivet.errors import InvalidInput, TrivetError
from trivet.integrations import failing_with, recalled
from trivet.integrations.either_client import found

MAX_RESULTS = 20

_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
_DELETES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)


class Tools:
    """Six tools; their names, parameters and docstrings are what an assistant reads."""

    def __init__(self, client: AsyncClient, namespace_of: Callable[[Context], str], base_url: str) -> None:
        """Tools that use `client` in the namespace that `namespace_of` finds in a request: no argument can choose it.

        URLs of memories in `search` and `fetch` begin with `base_url`, unless an HTTP request gives one.
        """
        self._client = client
        self._namespace_of = namespace_of
        self._base_url = base_url

    async def remember(self, ctx: Context, text: str, speaker: str | None = None) -> str:
        """Store a fact or message for later. Returns its id."""
        [result] = await self._client.add({"text": text, "speaker": speaker}, namespace=self._namespace_of(ctx))
        return str(result.id)

    async def recall(self, ctx: Context, query: str, limit: int = 5) -> str:
        """Memories most relevant to a question, best first, with ids and dates."""
        rows = [recalled(each) for each in await self._found(ctx, query, limit)]
        return msgspec.json.encode(rows).decode()

    async def get_context(self, ctx: Context, query: str, max_tokens: int = 1024) -> str:
        """What is remembered about a question, as one cited text within a token budget."""
        pack = await self._client.context(query, namespace=self._namespace_of(ctx), max_tokens=max_tokens)
        return pack.context

    async def forget(self, ctx: Context, id: str) -> str:
        """Delete one memory for good."""
        await self._client.delete(id, namespace=self._namespace_of(ctx))
        return f"{id} is deleted"

    async def search(self, ctx: Context, query: str) -> str:
        """Search memories. Returns ids and titles for `fetch`."""
        rows = [
            {"id": each.id, "title": each.title or each.snippet, "url": self._address(ctx, each.id)}
            for each in await self._found(ctx, query, MAX_RESULTS)
        ]
        return msgspec.json.encode({"results": rows}).decode()

    async def fetch(self, ctx: Context, id: str) -> str:
        """One memory in full, by its id."""
        memory = await self._client.get(id, namespace=self._namespace_of(ctx))
        known = {**memory.metadata, "created_at": memory.created_at, "speaker": memory.speaker}
        row = {
            "id": memory.id,
            "title": memory.title or memory.text[:80],
            "text": memory.text,
            "url": self._address(ctx, memory.id),
            "metadata": {name: value for name, value in known.items() if value is not None},
        }
        return msgspec.json.encode(row).decode()

    async def _found(self, ctx: Context, query: str, limit: int) -> list[SearchResult]:
        top_k = max(1, min(limit, MAX_RESULTS))
        return await found(self._client, query, namespace=self._namespace_of(ctx), top_k=top_k)

    def _address(self, ctx: Context, memory_id: str) -> str:
        request: Any = ctx.request_context.request
        base_url = (self._base_url if request is None else str(request.base_url)).rstrip("/")
        namespace = quote(self._namespace_of(ctx), safe="")
        return f"{base_url}/v1/namespaces/{namespace}/memories/{quote(memory_id, safe='')}"


def server(client: AsyncClient, namespace_of: Callable[[Context], str], *, base_url: str = "trivet:") -> MCPServer:
    """A server of the tools; see `Tools` for the arguments."""
    tools = Tools(client, namespace_of, base_url)
    offered: dict[Callable[..., Awaitable[str]], ToolAnnotations] = {
        tools.remember: _ADDS,
        tools.recall: _READS,
        tools.get_context: _READS,
        tools.forget: _DELETES,
        tools.search: _READS,
        tools.fetch: _READS,
    }
    made = [
        _Exact.from_function(failing_with(_failure, tool, TrivetError), annotations=hints, structured_output=False)
        for tool, hints in offered.items()
    ]
    return MCPServer("trivet", version=installed_version(), tools=made, log_level="WARNING")


class _Exact(Tool):
    """A tool that refuses unknown arguments, which others ignore, and says which it takes.

    If it writes, it refuses requests that may only read.
    """

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:
        request = context.request_context.request
        reads = self.annotations is not None and self.annotations.read_only_hint
        if request is not None and request.scope["state"]["only_reads"] and not reads:
            raise ToolError(f"{self.name} writes, and the token only reads")
        known = self.parameters["properties"]
        if unknown := ", ".join(sorted(arguments.keys() - known.keys())):
            raise ToolError(f"{self.name} has no argument {unknown}, only {', '.join(known)}")
        try:
            self.fn_metadata.validate_arguments(arguments)
        except ValidationError as exc:  # its own message names classes and links to their docs
            faults = [f"{fault['loc'][0]}: {fault['msg']}" for fault in exc.errors()]
            raise ToolError(f"{self.name} takes {', '.join(known)}; {'; '.join(faults)}") from exc
        return await super().run(arguments, context, convert_result)


def _failure(message: str) -> ToolError:
    return ToolError(message.removeprefix("memories.0."))  # the one that `remember` stores


@asynccontextmanager
async def serving_http(client: AsyncClient) -> AsyncIterator[Starlette]:
    """An application that answers at `/`, whatever path the request had before, for the length of a block.

    The server around it has checked the request's key, host and origin, and set its namespace and permissions.
    """
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    tools = server(client, namespace_of_request)
    app = tools.streamable_http_app(
        streamable_http_path="/", json_response=True, stateless_http=True, transport_security=unchecked
    )
    async with tools.session_manager.run():
        yield app


def namespace_of_request(context: Context) -> str:
    """The namespace that the server around it found in a request; raises InvalidInput if there is none."""
    request: Any = context.request_context.request
    name: str | None = request.scope["state"]["namespace"]
    if not name:
        raise InvalidInput("name a namespace: /mcp/NAMESPACE, or the header X-Trivet-Namespace")
    return name
