"""LlamaIndex: a retriever whose nodes are memories, and the long-term memory of agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trivet import AsyncClient, Client, ContextResponse, SearchResult
from trivet.integrations import extra, metadata_of, storable
from trivet.integrations.either_client import add, arun, found, run

with extra("llamaindex"):
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.base.llms.types import ChatMessage, MessageRole
    from llama_index.core.bridge.pydantic import Field
    from llama_index.core.memory import BaseMemoryBlock
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

MOST_MESSAGES = 1_000
"""Most messages of a conversation that a context pack is made for."""


class TrivetNodeRetriever(BaseRetriever):
    """Finds memories; a node's metadata is the memory's own, overlaid with its fields, such as `speaker`.

    Models see who said it and when; neither models nor embedders see the rest of the metadata. With a `Client`,
    `aretrieve` runs in a thread; with an `AsyncClient` only `aretrieve` works. Both raise `TrivetError`.
    """

    def __init__(
        self, client: Client | AsyncClient, *, namespace: str | None = None, similarity_top_k: int = 10, **fields: Any
    ) -> None:
        """Search a namespace.

        Args:
            client: of a server or in process; it is not closed.
            namespace: None for the client's. One that does not exist yet has no memories.
            similarity_top_k: maximum number of nodes.
            fields: other fields of a search, such as `filters`.
        """
        super().__init__()
        self._client = client
        self._fields = {"top_k": similarity_top_k, **fields, "namespace": namespace}

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(run(self._client, found, query_bundle.query_str, **self._fields))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(await arun(self._client, found, query_bundle.query_str, **self._fields))


def _nodes(results: Sequence[SearchResult]) -> list[NodeWithScore]:
    return [
        NodeWithScore(
            node=TextNode(
                id_=result.id,
                text=result.text,
                metadata=(metadata := metadata_of(result)),
                excluded_llm_metadata_keys=[
                    name for name, value in metadata.items() if value is None or name not in ("speaker", "created_at")
                ],
                excluded_embed_metadata_keys=list(metadata),
            ),
            score=result.score,
        )
        for result in results
    ]


class TrivetMemoryBlock(BaseMemoryBlock[str], extra="forbid"):
    """The long-term part of a `Memory`: a context pack for the conversation, from all sessions of a namespace.

    What users and assistants say becomes messages of their session when it leaves the short-term memory. The pack
    omits what is still there. With a `Client` this runs in a thread. All methods raise `TrivetError`.
    """

    name: str = "RetrievedMemories"
    """The tag around the pack in the prompt."""

    client: Client | AsyncClient
    """Of a server or in process; it is not closed."""

    namespace: str | None = None
    """None for the client's. One that does not exist yet has no memories."""

    context_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Fields of a context pack, such as `max_tokens` and `filters`."""

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        talk = [{"role": each.role.value, "content": text} for each in messages or () if (text := _text(each))]
        if not talk:
            return ""
        fields = {"messages": talk[-MOST_MESSAGES:], "namespace": self.namespace, **self.context_kwargs}
        pack: ContextResponse = await arun(self.client, lambda client: client.context(**fields))
        return pack.context

    async def _aput(self, messages: list[ChatMessage]) -> None:
        memories = [
            {
                "text": text,
                "kind": "message",
                "speaker": each.role.value,
                "session_id": each.additional_kwargs.get("session_id"),
            }
            for each in messages
            if each.role in (MessageRole.USER, MessageRole.ASSISTANT) and (text := _text(each))
        ]
        await arun(self.client, add, memories, namespace=self.namespace)


def _text(message: ChatMessage) -> str:
    return storable(message.content or "").strip()
