"""LangChain: a retriever whose documents are memories, and a vector store that keeps documents as memories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Self

from trivet import AsyncClient, Client, NotFound, SearchResult, StoredMemory
from trivet.integrations import extra, metadata_of
from trivet.integrations.either_client import EitherClient, add, arun, delete, found, run

with extra("langchain"):
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.vectorstores import VectorStore
    from pydantic import Field


class TrivetRetriever(BaseRetriever, extra="forbid"):
    """Finds memories; a document's metadata is the memory's own, overlaid with its fields, such as `speaker`.

    A call may pass other fields: `invoke(query, k=3, filters=...)`. With a `Client`, `ainvoke` runs in a thread; with
    an `AsyncClient` only `ainvoke` works. Both raise `TrivetError`.
    """

    client: Client | AsyncClient
    """Of a server or in process; it is not closed."""

    namespace: str | None = None
    """None for the client's. One that does not exist yet has no memories."""

    k: int = 10
    """Maximum number of documents."""

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
        """The fields of a search: a call's fields override those of the retriever."""
        fields = {"namespace": self.namespace, "k": self.k, **self.search_kwargs, **given}
        return {"top_k": fields.pop("k"), **fields}


def _documents(results: Sequence[SearchResult]) -> list[Document]:
    return [Document(each.text, id=each.id, metadata=metadata_of(each)) for each in results]


class TrivetVectorStore(VectorStore):
    """Documents in a namespace of Trivet, which embeds documents and queries itself.

    They are returned with the metadata that they were added with, as JSON types. Searches take any field of Trivet,
    such as `filters`; of documents that say the same, one is found. There is no search by vector. With a `Client` the
    asynchronous methods run in a thread; with an `AsyncClient` only those work.

    Raises (all methods):
        TrivetError: the server refuses or fails.
    """

    def __init__(self, client: Client | AsyncClient, *, namespace: str | None = None) -> None:
        """Keep documents in a namespace.

        Args:
            client: of a server or in process; it is not closed.
            namespace: None for the client's. One that does not exist yet has no documents.
        """
        self._client = client
        self._namespace = namespace

    @classmethod
    def from_texts(  # type: ignore[override]  # a store needs a client
        cls,
        texts: list[str],
        embedding: Embeddings | None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        client: Client | AsyncClient,
        namespace: str | None = None,
        **fields: Any,
    ) -> Self:
        """A store to which texts were added; raises ValueError for an `embedding`, which must be None."""
        _check_is_none(embedding)
        store = cls(client, namespace=namespace)
        store.add_texts(texts, metadatas, ids=ids, **fields)
        return store

    @classmethod
    async def afrom_texts(  # type: ignore[override]  # a store needs a client
        cls,
        texts: list[str],
        embedding: Embeddings | None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        client: Client | AsyncClient,
        namespace: str | None = None,
        **fields: Any,
    ) -> Self:
        """A store to which texts were added; raises ValueError for an `embedding`, which must be None."""
        _check_is_none(embedding)
        store = cls(client, namespace=namespace)
        await store.aadd_texts(texts, metadatas, ids=ids, **fields)
        return store

    @classmethod
    def from_documents(cls, documents: list[Document], embedding: Embeddings | None, **named: Any) -> Self:
        """As `from_texts`, whose other arguments are `named`, with documents."""
        return super().from_documents(documents, embedding, **named)  # type: ignore[arg-type]  # passes it on

    @classmethod
    async def afrom_documents(cls, documents: list[Document], embedding: Embeddings | None, **named: Any) -> Self:
        """As `from_documents`."""
        return await super().afrom_documents(documents, embedding, **named)  # type: ignore[arg-type]  # passes it on

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **fields: Any,
    ) -> list[str]:
        """Add or replace documents; returns their ids.

        Args:
            texts: none of them empty.
            metadatas: one for each text.
            ids: one for each text; None, for one or for all, generates new ones.
            fields: other fields of a memory, such as `tags`, for all of them.

        Raises:
            InvalidInput: some were refused; the others are stored.
            ValueError: there are more or fewer `metadatas` or `ids` than texts.
        """
        return run(self._client, add, _memories(texts, metadatas, ids, fields), namespace=self._namespace)

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **fields: Any,
    ) -> list[str]:
        """As `add_texts`."""
        return await arun(self._client, add, _memories(texts, metadatas, ids, fields), namespace=self._namespace)

    def delete(self, ids: list[str] | None = None, **named: Any) -> bool:
        """Delete documents, ignoring those that do not exist; raises ValueError without ids."""
        return run(self._client, _delete, ids, **{"namespace": self._namespace, **named})

    async def adelete(self, ids: list[str] | None = None, **named: Any) -> bool:
        """As `delete`."""
        return await arun(self._client, _delete, ids, **{"namespace": self._namespace, **named})

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents that exist, in the order of the ids."""
        return run(self._client, _get, ids, namespace=self._namespace)

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """As `get_by_ids`."""
        return await arun(self._client, _get, ids, namespace=self._namespace)

    def similarity_search(self, query: str, k: int = 4, **fields: Any) -> list[Document]:
        """The `k` best documents, at most 200."""
        return [document for document, _ in self.similarity_search_with_score(query, k, **fields)]

    async def asimilarity_search(self, query: str, k: int = 4, **fields: Any) -> list[Document]:
        """As `similarity_search`."""
        return [document for document, _ in await self.asimilarity_search_with_score(query, k, **fields)]

    def similarity_search_with_score(self, query: str, k: int = 4, **fields: Any) -> list[tuple[Document, float]]:
        """The same with their scores: higher is better; scores of different queries cannot be compared."""
        results = run(self._client, found, query, **{"top_k": k, "namespace": self._namespace, **fields})
        return [(_document(each), each.score) for each in results]

    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, **fields: Any
    ) -> list[tuple[Document, float]]:
        """As `similarity_search_with_score`."""
        results = await arun(self._client, found, query, **{"top_k": k, "namespace": self._namespace, **fields})
        return [(_document(each), each.score) for each in results]

    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **fields: Any
    ) -> list[tuple[Document, float]]:
        rescored = {"top_k": k, "rescore": True, "namespace": self._namespace, **fields}
        return _with_relevance(run(self._client, found, query, **rescored))

    async def _asimilarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **fields: Any
    ) -> list[tuple[Document, float]]:
        rescored = {"top_k": k, "rescore": True, "namespace": self._namespace, **fields}
        return _with_relevance(await arun(self._client, found, query, **rescored))

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **fields: Any
    ) -> list[Document]:
        """The best documents with a `diversity` of 1 - `lambda_mult`, of all candidates: `fetch_k` has no effect."""
        return self.similarity_search(query, k, diversity=1 - lambda_mult, **fields)

    async def amax_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **fields: Any
    ) -> list[Document]:
        """As `max_marginal_relevance_search`."""
        return await self.asimilarity_search(query, k, diversity=1 - lambda_mult, **fields)


def _check_is_none(embedding: Embeddings | None) -> None:
    if embedding is not None:
        raise ValueError("Trivet embeds texts by itself, with the model of the namespace: give None as the embedding")


def _memories(
    texts: Iterable[str],
    metadatas: Sequence[dict[str, Any]] | None,
    ids: Sequence[str | None] | None,
    fields: Mapping[str, Any],
) -> list[dict[str, Any]]:
    texts = list(texts)
    # LangChain's `index` also passes a `batch_size`, but clients make their own batches.
    shared = {name: value for name, value in fields.items() if name != "batch_size"}
    return [
        {**shared, "text": text, "metadata": metadata, "id": each}
        for text, metadata, each in zip(texts, metadatas or [{}] * len(texts), ids or [None] * len(texts), strict=True)
    ]


async def _delete(client: EitherClient, ids: Sequence[str] | None, /, **named: Any) -> bool:
    if ids is None:
        raise ValueError("name the ids to delete; to delete everything, delete the namespace with the client")
    await delete(client, ids, **named)
    return True


async def _get(client: EitherClient, ids: Sequence[str], /, **named: Any) -> list[Document]:
    documents = []
    for each in ids:
        with suppress(NotFound):
            documents.append(_document(await client.get(each, **named)))
    return documents


def _document(memory: SearchResult | StoredMemory) -> Document:
    return Document(memory.text, id=memory.id, metadata=memory.metadata)


def _with_relevance(results: Sequence[SearchResult]) -> list[tuple[Document, float]]:
    scored = [(_document(each), each.relevance) for each in results if each.relevance is not None]
    if len(scored) < len(results):
        raise ValueError("no rescorer ran, which gives the relevance: the profile has none, or it took too long")
    return scored
