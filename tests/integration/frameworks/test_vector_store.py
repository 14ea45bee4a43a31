"""LangChain's vector store."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.example_selectors import SemanticSimilarityExampleSelector
from langchain_core.indexing import InMemoryRecordManager, index

import trivet
from tests.connections import Connection, connections
from trivet.integrations.langchain import TrivetVectorStore

QUESTION = "Where did Ines move?"
PORTO = Document("My sister Ines moved to Porto.", id="m1", metadata={"source": "a.md", "pages": [1, 2]})
LISBON = Document("Ines paints boats in Lisbon.", id="m2", metadata={"source": "b.md"})
AGAIN = Document("My sister Ines moved on to Porto in May.", id="m3", metadata={})


def test_documents_come_back_as_they_were_added(client: trivet.Client) -> None:
    store = TrivetVectorStore(client)
    assert (store.similarity_search(QUESTION), store.get_by_ids(["m1"]), store.delete(["m1"])) == ([], [], True)
    assert store.add_documents([PORTO, LISBON]) == ["m1", "m2"]
    assert store.similarity_search(QUESTION, k=1) == [PORTO]
    assert store.similarity_search(QUESTION, filters={"metadata": {"source": "b.md"}}) == [LISBON]
    assert store.get_by_ids(["m2", "none", "m1"]) == [LISBON, PORTO]

    later = Document("Ines sculpts in Lisbon.", metadata={"source": "c.md"})
    assert store.add_documents([PORTO, later], ids=["m1", "m2"]) == ["m1", "m2"]
    assert store.get_by_ids(["m1", "m2"]) == [PORTO, later.model_copy(update={"id": "m2"})]
    [made, given] = store.add_texts(["Ben sails."] * 2, ids=[None, "m4"], tags=["sea"])  # type: ignore[list-item]
    assert (given, len(store.get_by_ids([made]))) == ("m4", 1)
    assert [each.id for each in client.get_all(tags_all=["sea"])] == [made, "m4"]

    assert store.delete(["m1", "none", "m2"])
    assert store.get_by_ids(["m1", "m2", "m4"]) == [Document("Ben sails.", id="m4")]
    assert TrivetVectorStore(client, namespace="ben").similarity_search("Who sails?") == []
    assert store.similarity_search("Who sails?", namespace="ben") == []


def test_searches_that_retrievers_are_made_of(client: trivet.Client) -> None:
    store = TrivetVectorStore.from_documents([PORTO, LISBON, AGAIN], None, client=client)
    assert store.as_retriever(search_kwargs={"k": 1}).invoke(QUESTION) == [PORTO]

    scored = store.similarity_search_with_score(QUESTION)
    assert [document for document, _ in scored] == store.similarity_search(QUESTION)
    assert [score for _, score in scored] == sorted((score for _, score in scored), reverse=True)

    relevant = store.similarity_search_with_relevance_scores(QUESTION, mode="bm25")
    [(best, most), *_, (_, least)] = relevant
    assert (best, 0 < least < most < 1) == (PORTO, True)
    by_threshold = {"search_type": "similarity_score_threshold", "search_kwargs": {"score_threshold": most}}
    assert store.as_retriever(**by_threshold).invoke(QUESTION, mode="bm25") == [PORTO]

    assert store.search(QUESTION, "mmr", k=2, lambda_mult=1.0) == [PORTO, AGAIN]
    assert store.as_retriever(search_type="mmr", search_kwargs={"k": 2, "lambda_mult": 0.1}).invoke(QUESTION) == [
        PORTO,
        LISBON,
    ]


def test_what_langchain_builds_on_a_store(client: trivet.Client) -> None:
    store, records = TrivetVectorStore(client), InMemoryRecordManager("ana")
    records.create_schema()

    def indexed(*documents: Document) -> tuple[int, int, int]:
        counts = index(documents, records, store, cleanup="full", key_encoder="sha256")
        return counts["num_added"], counts["num_skipped"], counts["num_deleted"]

    assert indexed(PORTO, LISBON) == (2, 0, 0)
    assert indexed(PORTO, AGAIN) == (1, 1, 1)
    assert {each.text for each in client.get_all()} == {PORTO.page_content, AGAIN.page_content}

    examples = [{"input": "How do I moor a boat?"}, {"input": "How do I prune a rose?"}]
    given: dict[str, Any] = {"embeddings": None, "client": client, "namespace": "examples"}
    selector = SemanticSimilarityExampleSelector.from_examples(
        examples, vectorstore_cls=TrivetVectorStore, k=1, **given
    )
    assert selector.select_examples({"input": "Which knot holds a ship?"}) == examples[:1]


@connections
async def test_asynchronous_methods_with_either_client(connection: Connection, database_url: str) -> None:
    async with connection(database_url) as asynchronous:
        with trivet.open(database_url=database_url, namespace="ana") as synchronous:
            for client in (asynchronous, synchronous):
                store = await TrivetVectorStore.afrom_documents([PORTO, LISBON], None, client=client)
                assert await store.asimilarity_search(QUESTION, k=1) == [PORTO]
                assert (await store.asimilarity_search_with_score(QUESTION, k=1))[0][0] == PORTO
                assert (await store.asimilarity_search_with_relevance_scores(QUESTION, k=1))[0][0] == PORTO
                assert await store.as_retriever(search_type="mmr").ainvoke(QUESTION, k=1) == [PORTO]
                assert await store.adelete(["m1", "none"])
                assert await store.aget_by_ids(["m1", "m2"]) == [LISBON]


def test_what_is_wrong_is_said(client: trivet.Client) -> None:
    store = TrivetVectorStore(client)
    with pytest.raises(trivet.InvalidInput, match="text 2 of 3 was not stored"):
        store.add_texts(["one", "", "three"], ids=["1", "2", "3"])
    assert [each.id for each in store.get_by_ids(["1", "2", "3"])] == ["1", "3"]
    with pytest.raises(trivet.InvalidInput, match="colour"):
        store.add_texts(["four"], colour="red")
    with pytest.raises(ValueError, match="shorter"):
        store.add_texts(["four", "five"], [{"n": 4}])
    with pytest.raises(ValueError, match="name the ids"):
        store.delete()
    with pytest.raises(trivet.InvalidInput, match="filter"):
        store.similarity_search("one", filter={"n": 4})
    with pytest.raises(ValueError, match="no rescorer"):
        store.similarity_search_with_relevance_scores("one", rescore=False)
    with pytest.raises(NotImplementedError):
        store.similarity_search_by_vector([0.1])
    given: dict[str, Any] = {"texts": ["six"], "embedding": DeterministicFakeEmbedding(size=3), "client": client}
    with pytest.raises(ValueError, match="embeds texts by itself"):
        TrivetVectorStore.from_texts(**given)
    with pytest.raises(TypeError, match="asynchronous"):
        TrivetVectorStore(trivet.AsyncClient()).similarity_search("one")
