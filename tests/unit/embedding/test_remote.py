"""Embedding by a provider: requests, vectors from answers, and retries."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from itertools import count

import numpy as np
import pytest

from retrieval.embedding import remote
from retrieval.embedding.remote import RemoteEmbedder
from retrieval.errors import EmbeddingFailed
from tests.embedding_provider import KEY, MODELS, Provider, embedded, served
from tests.loopback import Reply
from tests.processes import PATIENCE_S


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    monkeypatch.setattr(remote, "PAUSES_S", (0.0, 0.0))
    with served() as running:
        yield running


@pytest.fixture
async def embedder(provider: Provider) -> AsyncIterator[RemoteEmbedder]:
    opened = RemoteEmbedder(provider.settings("openai"))
    yield opened
    await opened.aclose()


@pytest.mark.parametrize("name", MODELS)
async def test_vectors_are_those_of_the_provider_at_unit_length(provider: Provider, name: str) -> None:
    embedder = RemoteEmbedder(provider.settings(name))
    texts = ["a red boat", "two red boats", "the moon"]
    vectors = await embedder.embed_documents(texts)
    query = await embedder.embed_query("a red boat")
    await embedder.aclose()
    expected = np.array([embedded(text) for text in texts])
    np.testing.assert_allclose(vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)
    np.testing.assert_allclose(query, vectors[0], atol=1e-6)
    assert (query.shape, embedder.model) == ((384,), f"{name}/{MODELS[name]}")


async def test_a_proxy_that_cannot_be_used_is_said_without_its_password(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for proxy in ("http://user:pass/word@proxy:80", "socks5://proxy:80", "ftp://proxy"):
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        with pytest.raises(EmbeddingFailed, match="HTTPS_PROXY or ALL_PROXY is not the") as failed:
            RemoteEmbedder(provider.settings("openai"))
        assert "word" not in str(failed.value)


async def test_each_provider_is_asked_in_its_own_way(provider: Provider) -> None:
    for name in MODELS:
        embedder = RemoteEmbedder(provider.settings(name))
        await embedder.embed_documents(["boat"])
        await embedder.embed_query("moon")
        await embedder.aclose()
    openai, _, ollama, _, document, query = provider.received
    sent = {"model": "text-embedding-3-small", "input": ["boat"], "dimensions": 384, "encoding_format": "float"}
    assert (openai.path, openai.headers["authorization"], openai.body) == ("/embeddings", f"Bearer {KEY}", sent)
    sent = {"model": "all-minilm", "input": ["boat"], "dimensions": 384}
    assert (ollama.path, ollama.body) == ("/api/embed", sent)
    assert document.path == "/v1beta/models/gemini-embedding-001:batchEmbedContents"
    assert (document.headers["x-goog-api-key"], "authorization" in document.headers) == (KEY, False)
    [asked] = document.body["requests"]
    assert asked == {
        "model": "models/gemini-embedding-001",
        "content": {"parts": [{"text": "boat"}]},
        "taskType": "RETRIEVAL_DOCUMENT",
        "outputDimensionality": 384,
    }
    assert query.body["requests"][0]["taskType"] == "RETRIEVAL_QUERY"


async def test_many_texts_go_in_batches_and_come_back_in_order(provider: Provider, embedder: RemoteEmbedder) -> None:
    texts = [f"boat {number}" for number in range(250)]
    vectors = await embedder.embed_documents(texts)
    assert sorted(len(one.texts) for one in provider.received) == [50, 100, 100]
    for row in (0, 99, 100, 249):
        assert vectors[row] @ np.array(embedded(texts[row])) == pytest.approx(np.linalg.norm(embedded(texts[row])))
    provider.received.clear()
    await embedder.embed_documents(["long " * 1_500] * 40)  # 300,000 bytes
    assert sorted(len(one.texts) for one in provider.received) == [7, 33]


@pytest.mark.parametrize("text", ["word " * 9_000, "船" * 9_000, "🛶" * 9_000])
async def test_a_long_text_is_cut_between_characters(provider: Provider, embedder: RemoteEmbedder, text: str) -> None:
    await embedder.embed_documents([text])
    [[sent]] = [one.texts for one in provider.received]
    assert text.startswith(sent)
    assert 7_996 < len(sent.encode()) <= 8_000


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_documents_are_sent_again_after_a_passing_failure(
    provider: Provider, embedder: RemoteEmbedder, status: int
) -> None:
    provider.replies = [Reply(status), Reply(status)]
    assert (await embedder.embed_documents(["boat"])).shape == (1, 384)
    assert len(provider.received) == 3


async def test_a_failure_that_lasts_is_told(provider: Provider, embedder: RemoteEmbedder) -> None:
    provider.is_down = True
    with pytest.raises(EmbeddingFailed, match=r"^the embedding provider openai answered 503: overloaded for now$"):
        await embedder.embed_documents(["boat"])
    assert len(provider.received) == 3


async def test_documents_wait_as_long_as_the_provider_asks(
    provider: Provider, embedder: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = list[float]()

    async def note(pause_s: float) -> None:
        pauses.append(pause_s)

    monkeypatch.setattr("asyncio.sleep", note)
    provider.replies = [Reply(429, headers={"retry-after": "7"}), Reply(429)]
    await embedder.embed_documents(["boat"])
    assert pauses == [7.0, 0.0]
    provider.replies = [Reply(429, b'{"error": "next hour"}', {"retry-after": "3600"})]
    with pytest.raises(EmbeddingFailed, match="429: next hour"):
        await embedder.embed_documents(["boat"])
    assert pauses == [7.0, 0.0]


async def test_a_query_is_sent_once(provider: Provider, embedder: RemoteEmbedder) -> None:
    provider.replies = [Reply(429)]
    with pytest.raises(EmbeddingFailed, match="429"):
        await embedder.embed_query("boat")
    assert len(provider.received) == 1


async def test_one_query_at_a_time_waits_for_a_provider_that_has_kept_one_waiting(
    provider: Provider, embedder: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "QUERY_TIMEOUT_S", 0.2)
    with provider.hanging():
        with pytest.raises(EmbeddingFailed, match=r"\(\w*Timeout"):
            await embedder.embed_query("boat")
        monkeypatch.setattr(remote, "QUERY_TIMEOUT_S", PATIENCE_S)
        asked = asyncio.create_task(embedder.embed_query("boat"))
        await asyncio.sleep(0)
        with pytest.raises(EmbeddingFailed, match="does not answer"):
            async with asyncio.timeout(PATIENCE_S / 2):
                await embedder.embed_query("moon")
        assert not asked.done()
    await asked
    await asyncio.gather(embedder.embed_query("boat"), embedder.embed_query("moon"))


async def test_what_is_refused_is_not_sent_again(provider: Provider) -> None:
    """Nor is the key repeated, even where the provider does."""
    wrong = "sk-wrong-123456"
    embedder = RemoteEmbedder(provider.settings("openai", embedding_api_key=wrong))
    with pytest.raises(EmbeddingFailed, match=r"answered 401: Incorrect API key: \*\*\*$") as raised:
        await embedder.embed_documents(["boat"])
    await embedder.aclose()
    assert (len(provider.received), wrong in repr(raised.value)) == (1, False)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (rb'{"error": {"message": "not \ud83d\u001b[2J of \u202ea"}}', "not \ufffd\ufffd[2J of \ufffda"),
        (b"caf\xe9", "caf\ufffd"),
        (b"[" * 100_000, "[" * 250),
    ],
    ids=["characters", "bytes", "depth"],
)
async def test_whatever_a_provider_says_can_be_passed_on(
    provider: Provider, embedder: RemoteEmbedder, content: bytes, told: str
) -> None:
    """Half an emoji cannot be sent, and the search would fail with its leg."""
    provider.replies = [Reply(400, content, {"content-type": "application/json; charset=punycode"})]
    with pytest.raises(EmbeddingFailed) as raised:
        await embedder.embed_query("boat")
    assert str(raised.value).startswith(f"the embedding provider openai answered 400: {told}")


async def test_a_redirect_is_told_and_not_followed(provider: Provider, embedder: RemoteEmbedder) -> None:
    """It would take texts and key to another address."""
    provider.replies = [Reply(308, b"", {"location": f"{provider.url}/elsewhere"})]
    with pytest.raises(EmbeddingFailed, match="answered 308"):
        await embedder.embed_documents(["boat"])
    assert len(provider.received) == 1


async def test_an_answer_is_read_up_to_a_limit(
    provider: Provider, embedder: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a provider could fill the server's memory by a small file."""
    monkeypatch.setattr(remote, "MOST_ANSWER_BYTES", 100_000)
    provider.replies = [Reply(200, gzip.compress(bytes(100_001)), {"content-encoding": "gzip"})]
    with pytest.raises(EmbeddingFailed, match="more than 100,000 bytes"):
        await embedder.embed_query("boat")
    assert (await embedder.embed_query("boat")).shape == (384,)


async def test_an_answer_that_comes_byte_by_byte_is_not_waited_for(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one query at a time, once it has kept one waiting."""
    monkeypatch.setattr(remote, "QUERY_TIMEOUT_S", 0.3)
    answers = count()

    async def drip(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        next(answers)
        with closing(writer):
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n")
            for _ in range(100):
                writer.write(b" ")
                await asyncio.sleep(0.01)

    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        embedder = RemoteEmbedder(provider.settings("openai", embedding_url=f"http://{host}:{port}"))
        with pytest.raises(EmbeddingFailed, match="does not answer"):
            await embedder.embed_query("boat")
        await asyncio.gather(*map(embedder.embed_query, ("boat", "moon")), return_exceptions=True)
        await embedder.aclose()
    assert next(answers) == 2


async def test_vectors_of_another_length_are_refused(provider: Provider, embedder: RemoteEmbedder) -> None:
    provider.dimensions = 768
    with pytest.raises(EmbeddingFailed, match=r"gives vectors of 768 numbers, and the database has room for 384"):
        await embedder.embed_documents(["boat"])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<html>", "something else than embeddings"),
        (b'{"data": [{"index": 0}]}', "something else than embeddings"),
        (b'{"data": []}', "0 vectors for 1 texts"),
        (b'{"data": [{"index": 0, "embedding": [%s]}]}' % b",".join([b"0"] * 384), "no direction"),
        (b'{"data": [{"index": 0, "embedding": [%s]}]}' % b",".join([b"1e300"] * 384), "no direction"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
async def test_an_answer_that_is_no_vector(
    provider: Provider, embedder: RemoteEmbedder, content: bytes, reason: str
) -> None:
    provider.replies = [Reply(200, content)]
    with pytest.raises(EmbeddingFailed, match=reason):
        await embedder.embed_query("boat")


async def test_nobody_at_the_address(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = RemoteEmbedder(provider.settings("ollama", embedding_url="http://127.0.0.1:9"))
    for embed in (embedder.embed_documents(["boat"]), embedder.embed_query("boat")):
        with pytest.raises(EmbeddingFailed, match=r"ollama does not answer at http://127.0.0.1:9/api/embed \("):
            await embed
    await embedder.aclose()
