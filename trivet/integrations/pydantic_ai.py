"""Pydantic AI: tools with which an agent remembers."""

from __future__ import annotations

from typing import Any

from trivet import AsyncClient, InvalidInput, NotFound
from trivet.integrations import extra, failing_with, recalled
from trivet.integrations.either_client import found

with extra("pydantic-ai"):
    from pydantic_ai import FunctionToolset, ModelRetry

MOST_RECALLED = 20
"""Most memories that one call of `recall` returns."""


def trivet_toolset(client: AsyncClient, *, namespace: str | None = None) -> FunctionToolset[Any]:
    """The tools `remember`, `recall`, `get_context` and `forget`, for one namespace that no argument can change.

    After a call with bad arguments the agent may try again; other errors are `TrivetError`.

    Args:
        client: of a server or in process; it is not closed.
        namespace: None for the client's.
    """

    async def remember(text: str, speaker: str | None = None) -> str:
        """Store a fact or message for later. Returns its id."""
        [result] = await client.add({"text": text, "speaker": speaker}, namespace=namespace)
        return str(result.id)

    async def recall(query: str, limit: int = 5) -> list[dict[str, Any]]:
        """Memories most relevant to a question, best first, with ids and dates."""
        results = await found(client, query, top_k=max(1, min(limit, MOST_RECALLED)), namespace=namespace)
        return [recalled(each) for each in results]

    async def get_context(query: str, max_tokens: int = 1024) -> str:
        """What is remembered about a question, as one cited text within a token budget."""
        return (await client.context(query, max_tokens=max_tokens, namespace=namespace)).context

    async def forget(id: str) -> str:
        """Delete one memory for good."""
        await client.delete(id, namespace=namespace)
        return f"{id} is deleted"

    tools = (remember, recall, get_context, forget)
    return FunctionToolset([failing_with(ModelRetry, tool, InvalidInput, NotFound) for tool in tools], id="trivet")
