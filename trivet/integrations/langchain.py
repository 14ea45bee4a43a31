"""LangChain: a retriever whose documents are memories."""

from __future__ import annotations

from typing import Any

from trivet import AsyncClient, Client, NotFound, SearchResponse
from trivet.integrations import extra, metadata_of

with extra("langchain"):
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from pydantic import Field


class TrivetRetriever(BaseRetriever, extra="forbid"):
    """Finds memories; a document's metadata are the memory's own and, over them, its fields, such as `speaker`.

    With a `Client`, `ainvoke` works in a thread; an `AsyncClient` serves that alone. Both raise `TrivetError`.
    """

    client: Client | AsyncClient
    """Of a server or in process; it is not closed."""

    namespace: str | None = None
    """None for the client's. One that does not exist yet has no memories."""

    k: int = 10
    """Most documents."""

    search_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Other fields of a search, such as `filters`."""

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        if not isinstance(self.client, Client):
            raise TypeError("a retriever with an AsyncClient has only asynchronous methods, such as ainvoke")
        try:
            return _documents(self.client.search(query, **self._fields()))
        except NotFound:
            return []

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        if isinstance(self.client, Client):
            return await super()._aget_relevant_documents(query, run_manager=run_manager)
        try:
            return _documents(await self.client.search(query, **self._fields()))
        except NotFound:
            return []

    def _fields(self) -> dict[str, Any]:
        return {"top_k": self.k, **self.search_kwargs, "namespace": self.namespace}


def _documents(answer: SearchResponse) -> list[Document]:
    return [Document(each.text, id=each.id, metadata=metadata_of(each)) for each in answer.results]
