"""LlamaIndex: a retriever whose nodes are memories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trivet import AsyncClient, Client, SearchResult
from trivet.integrations import extra, metadata_of
from trivet.integrations.either_client import arun, found, run

with extra("llamaindex"):
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode


class TrivetNodeRetriever(BaseRetriever):
    """Finds memories; a node's metadata are the memory's own and, over them, its fields, such as `speaker`.

    A model is shown who said it and when; neither models nor embedders are shown the rest of the metadata. With a
    `Client`, `aretrieve` works in a thread; an `AsyncClient` serves that alone. Both raise `TrivetError`.
    """

    def __init__(
        self, client: Client | AsyncClient, *, namespace: str | None = None, similarity_top_k: int = 10, **fields: Any
    ) -> None:
        """Search a namespace.

        Args:
            client: of a server or in process; it is not closed.
            namespace: None for the client's. One that does not exist yet has no memories.
            similarity_top_k: most nodes.
            fields: others of a search, such as `filters`.
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
