"""The retrievers of LangChain and LlamaIndex."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from llama_index.core.schema import MetadataMode, TextNode

import trivet
from tests.connections import Connection, connections
from trivet.integrations.langchain import TrivetRetriever
from trivet.integrations.llamaindex import TrivetNodeRetriever

QUESTION = "Where did Ines move?"
MEMORIES: list[dict[str, Any]] = [
    {
        "id": "m1",
        "text": "My sister Ines moved to Porto.",
        "speaker": "Ana",
        "created_at": datetime(2025, 5, 20, 18, tzinfo=UTC),
        "tags": ["home"],
        "metadata": {"channel": "web", "speaker": "someone"},
    },
    {"id": "m2", "text": "Ines paints boats in Lisbon.", "tags": ["work"]},
]


def test_langchain_finds_documents_in_a_chain(client: trivet.Client) -> None:
    retriever = TrivetRetriever(client=client, k=1)
    assert retriever.invoke(QUESTION) == []
    client.add(MEMORIES)
    [document] = retriever.invoke(QUESTION)
    assert (document.id, document.page_content) == ("m1", "My sister Ines moved to Porto.")
    assert document.metadata["speaker"] == "Ana"
    assert document.metadata["channel"] == "web"
    assert document.metadata["created_at"] == "2025-05-20T18:00:00Z"
    assert document.metadata["score"] > 0
    assert 0 < document.metadata["relevance"] < 1
    work = TrivetRetriever(client=client, search_kwargs={"filters": {"tags_all": ["work"]}})
    assert [each.id for each in work.invoke(QUESTION)] == ["m2"]
    assert [each.id for each in retriever.invoke(QUESTION, k=2)] == ["m1", "m2"]
    assert [each.id for each in retriever.invoke(QUESTION, filters={"tags_all": ["work"]})] == ["m2"]
    assert work.invoke(QUESTION, namespace="ben") == []
    with pytest.raises(trivet.InvalidInput, match="fetch_k"):
        retriever.invoke(QUESTION, fetch_k=5)
    with pytest.raises(ValueError, match="filters"):  # would be of no effect
        TrivetRetriever(client=client, filters={"tags_all": ["work"]})  # type: ignore[call-arg]
    assert TrivetRetriever(client=client, namespace="ben").invoke(QUESTION) == []
    chain = (
        {"notes": retriever | (lambda found: found[0].page_content), "question": RunnablePassthrough()}
        | ChatPromptTemplate.from_template("{notes} {question}")
        | RunnableLambda(lambda prompt: prompt.to_string())
        | StrOutputParser()
    )
    assert chain.invoke(QUESTION) == f"Human: My sister Ines moved to Porto. {QUESTION}"


def test_llamaindex_finds_nodes(client: trivet.Client) -> None:
    retriever = TrivetNodeRetriever(client, similarity_top_k=1)
    assert retriever.retrieve(QUESTION) == []
    client.add(MEMORIES)
    [found] = retriever.retrieve(QUESTION)
    assert isinstance(found.node, TextNode)
    assert (found.node.node_id, found.text) == ("m1", "My sister Ines moved to Porto.")
    assert found.score
    assert found.metadata["channel"] == "web"
    assert 0 < found.metadata["relevance"] < 1
    shown = found.node.get_content(MetadataMode.LLM)
    assert "speaker: Ana" in shown
    assert "2025-05-20" in shown
    assert "web" not in shown
    work = TrivetNodeRetriever(client, filters={"tags_all": ["work"]})
    assert [each.node.node_id for each in work.retrieve(QUESTION)] == ["m2"]


@connections
async def test_both_with_either_client(connection: Connection, database_url: str) -> None:
    async with connection(database_url) as asynchronous:
        assert await TrivetRetriever(client=asynchronous).ainvoke(QUESTION) == []
        assert await TrivetNodeRetriever(asynchronous).aretrieve(QUESTION) == []
        await asynchronous.add(MEMORIES)
        with trivet.open(database_url=database_url, namespace="ana") as synchronous:
            for client in (asynchronous, synchronous):
                [document] = await TrivetRetriever(client=client).ainvoke(QUESTION, k=1)
                [node] = await TrivetNodeRetriever(client, similarity_top_k=1).aretrieve(QUESTION)
                assert document.id == node.node.node_id == "m1"


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(TypeError, match="asynchronous"):
        TrivetRetriever(client=trivet.AsyncClient()).invoke(QUESTION)
    with pytest.raises(TypeError, match="asynchronous"):
        TrivetNodeRetriever(trivet.AsyncClient()).retrieve(QUESTION)
    with trivet.Client("http://127.0.0.1:9", namespace="ana", retries=0) as away:
        with pytest.raises(trivet.Unreachable, match=r"no answer from http://127"):
            TrivetRetriever(client=away).invoke(QUESTION)
        with pytest.raises(trivet.Unreachable, match=r"no answer from http://127"):
            TrivetNodeRetriever(away).retrieve(QUESTION)
