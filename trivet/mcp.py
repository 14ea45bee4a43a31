"""Trivet as a Model Context Protocol server: memory as tools of an assistant. Needs the extra `mcp`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import wraps
from typing import Any, ParamSpec, TypeVar
from urllib.parse import quote

import msgspec
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from retrieval.installation import installed_version
from retrieval.types.search import SearchResult
from trivet._async_client import AsyncClient
from trivet.errors import NotFound, TrivetError

P = ParamSpec("P")
T = TypeVar("T")

MAX_RESULTS = 20

_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
_DELETES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)


async def serve_stdio(
    opening: AbstractAsyncContextManager[AsyncClient], namespace: str, *, base_url: str | None
) -> None:
    """Serve one namespace over standard input and output until the input ends."""
    async with opening as client:
        await server(client, lambda _: namespace, base_url=base_url or "trivet:").run_stdio_async()


def server(client: AsyncClient, namespace_of: Callable[[Context], str], *, base_url: str = "trivet:") -> MCPServer:
    """A server of six tools.

    Args:
        client: does the work.
        namespace_of: the namespace of a request, which no argument of a tool can choose.
        base_url: what the addresses of memories begin with in `search` and `fetch`.
    """
    made = MCPServer("trivet", version=installed_version(), log_level="WARNING")

    def tool(annotations: ToolAnnotations) -> Callable[[Callable[P, Awaitable[T]]], Callable[P, Awaitable[T]]]:
        """Register a tool; what Trivet says of a failure is the tool's error."""

        def decorate(function: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
            @wraps(function)
            async def telling(*arguments: P.args, **named: P.kwargs) -> T:
                try:
                    return await function(*arguments, **named)
                except TrivetError as exc:
                    raise ToolError(str(exc)) from exc

            return made.tool(annotations=annotations, structured_output=False)(telling)

        return decorate

    async def found(ctx: Context, query: str, limit: int) -> list[SearchResult]:
        try:
            answer = await client.search(query, namespace=namespace_of(ctx), top_k=max(1, min(limit, MAX_RESULTS)))
        except NotFound:  # nothing was remembered yet
            return []
        return answer.results

    @tool(_ADDS)
    async def remember(ctx: Context, text: str, speaker: str | None = None) -> str:
        """Store a fact or message for later. Returns its id."""
        [result] = await client.add({"text": text, "speaker": speaker}, namespace=namespace_of(ctx))
        return str(result.id)

    @tool(_READS)
    async def recall(ctx: Context, query: str, limit: int = 5) -> str:
        """Memories most relevant to a question, best first, with ids and dates."""
        rows = [
            {"id": each.id, "created_at": each.created_at, "speaker": each.speaker, "text": each.text}
            for each in await found(ctx, query, limit)
        ]
        return msgspec.json.encode(rows).decode()

    @tool(_READS)
    async def get_context(ctx: Context, query: str, max_tokens: int = 1024) -> str:
        """What is remembered about a question, as one cited text within a token budget."""
        return (await client.context(query, namespace=namespace_of(ctx), max_tokens=max_tokens)).context

    @tool(_DELETES)
    async def forget(ctx: Context, id: str) -> str:
        """Delete one memory for good."""
        await client.delete(id, namespace=namespace_of(ctx))
        return f"{id} is deleted"

    @tool(_READS)
    async def search(ctx: Context, query: str) -> str:
        """Search memories. Returns ids and titles for `fetch`."""
        rows = [
            {"id": each.id, "title": each.title or each.snippet, "url": address(namespace_of(ctx), each.id)}
            for each in await found(ctx, query, MAX_RESULTS)
        ]
        return msgspec.json.encode({"results": rows}).decode()

    @tool(_READS)
    async def fetch(ctx: Context, id: str) -> str:
        """One memory in full, by its id."""
        memory = await client.get(id, namespace=namespace_of(ctx))
        known: dict[str, Any] = {"created_at": memory.created_at, "speaker": memory.speaker, **memory.metadata}
        row = {
            "id": memory.id,
            "title": memory.title or memory.text[:80],
            "text": memory.text,
            "url": address(namespace_of(ctx), memory.id),
            "metadata": {name: value for name, value in known.items() if value is not None},
        }
        return msgspec.json.encode(row).decode()

    def address(namespace: str, memory_id: str) -> str:
        return f"{base_url}/v1/namespaces/{quote(namespace, safe='')}/memories/{quote(memory_id, safe='')}"

    return made
