"""LangChain: a retriever whose documents are memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trivet import AsyncClient, Client, SearchResult
from trivet.integrations import extra, metadata_of
from trivet.integrations.either_client import arun, found, run

with extra("langchain"):
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from pydantic import Field


class TrivetRetriever(BaseRetriever, extra="forbid"):
    """Finds memories; a document's metadata are the memory's own and, over them, its fields, such as `speaker`.

    A call may name other fields: `invoke(query, k=3, filters=...)`. With a `Client`, `ainvoke` works in a thread; an
    `AsyncClient` serves that alone. Both raise `TrivetError`.
    """

    client: Client | AsyncClient
    """Of a server or in process; it is not closed."""

    namespace: str | None = None
    """None for the client's. One that does not exist yet has no memories."""

    k: int = 10
    """Most documents."""

    search_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Other fields of a search, such as `filters`."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **fields: Any
    ) -> list[Document]:
        return _documents(run(self.client, found, query, **self._fields(fields)))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **fields: Any
    ) -> list[Document]:
        return _documents(await arun(self.client, found, query, **self._fields(fields)))

    def _fields(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a search: those that a call gives come before those of the retriever."""
        fields = {"namespace": self.namespace, "k": self.k, **self.search_kwargs, **given}
        return {"top_k": fields.pop("k"), **fields}


def _documents(results: Sequence[SearchResult]) -> list[Document]:
    return [Document(each.text, id=each.id, metadata=metadata_of(each)) for each in results]
