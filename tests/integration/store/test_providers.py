"""Namespaces with a provider's vectors: writing, searching, moving, and an unreachable provider."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import httpx
import pytest

from retrieval.api.app import create_app
from retrieval.doctor import examine
from retrieval.embedding import remote
from retrieval.engine import Trivet
from retrieval.errors import AllLegsFailed, Conflict, EmbedderMissing, EmbeddingFailed, InvalidInput, NotFound
from retrieval.settings import Settings
from retrieval.types.document import DocumentInput
from retrieval.types.memory import MemoryInput
from retrieval.types.namespace import NamespaceInput, NamespaceSettings
from retrieval.types.search import ContextRequest, Mode, SearchRequest
from tests.embedding_provider import KEY, MODELS, Provider, Received, served
from tests.loopback import Reply
from tests.processes import PATIENCE_S, until
from tests.serving import client_of, settings_for, until_ready

NAME = "openai/text-embedding-3-small"
BUNDLED = "all-MiniLM-L6-v2"
MEMORIES = [
    MemoryInput(id="boat", text="Nadia painted the rowing boat red.", session_id="s"),
    MemoryInput(id="cat", text="Her cat sleeps on the piano.", session_id="s"),
    MemoryInput(id="train", text="The night train to Kazan leaves at eleven."),
]
QUERY = "night train"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    monkeypatch.setattr(remote, "PAUSES_S", (0.0,))
    with served() as running:
        yield running


def settings_with(provider: Provider, database_url: str, name: str = "openai") -> Settings:
    return provider.settings(name, database_url=database_url, pool_size=4, port=0, leg_timeout_s=PATIENCE_S)


@pytest.fixture
async def remoted(provider: Provider, database_url: str) -> AsyncIterator[Trivet]:
    """With memories in `n`, which the first of them created."""
    async with Trivet.open(settings_with(provider, database_url)) as engine:
        assert {result.status for result in await engine.add("n", MEMORIES)} == {"created"}
        yield engine


@pytest.fixture
async def client(provider: Provider, database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(create_app(settings_with(provider, database_url))) as opened:
        await until_ready(opened)
        yield opened


async def best(engine: Trivet, namespace: str = "n", mode: Mode = Mode.VECTOR) -> str:
    """The first result; no leg failed."""
    response = await engine.search(namespace, SearchRequest(query=QUERY, mode=mode))
    assert response.degraded == []
    return response.results[0].id


@pytest.mark.parametrize("name", MODELS)
async def test_memories_and_documents_are_written_and_found(provider: Provider, database_url: str, name: str) -> None:
    async with Trivet.open(settings_with(provider, database_url, name)) as engine:
        await engine.add("n", MEMORIES)
        await engine.documents.put("n", DocumentInput(id="d", text="# Knots\n\nA bowline holds.\n\n" * 60))
        assert (await engine.get_namespace("n")).settings.embedder == f"{name}/{MODELS[name]}"
        for mode in (Mode.VECTOR, Mode.ADAPTIVE):
            assert await best(engine, mode=mode) == "train"
        context = await engine.context("n", ContextRequest(query="Which boat is red?"))
        assert "rowing boat" in context.context
        assert (await engine.documents.get("n", "d")).text.count("bowline") == 60


async def test_the_classifier_reads_the_bundled_embedders_vector(remoted: Trivet) -> None:
    await remoted.put_namespace("bundled", NamespaceInput(embedder=BUNDLED))
    await remoted.add("bundled", MEMORIES)
    answers = [await remoted.answer(name, SearchRequest(query="When does it leave?")) for name in ("n", "bundled")]
    assert answers[0].prediction == answers[1].prediction
    assert answers[0].fragment_share == 0


async def test_a_new_namespace_gets_the_servers_embedder_and_others_keep_theirs(
    remoted: Trivet, trivet: Trivet
) -> None:
    """Also those of a database from before providers existed, which name none."""
    await trivet.add("old", MEMORIES)
    assert (await remoted.get_namespace("old")).settings == NamespaceSettings()
    assert await best(remoted, "old") == "train"
    for name, embedder in (("old", BUNDLED), ("n", NAME), ("new", NAME)):
        changed = await remoted.put_namespace(name, NamespaceInput(rules=[]))
        assert (changed.settings.embedder, changed.settings.rules) == (embedder, [])
    assert (await remoted.put_namespace("new", NamespaceInput(embedder=BUNDLED))).settings.embedder == BUNDLED
    assert (await remoted.put_namespace("new", NamespaceInput())).settings.embedder == BUNDLED
    with pytest.raises(Conflict, match=f"embedder of namespace 'n' is '{NAME}'"):
        await remoted.put_namespace("n", NamespaceSettings())


async def test_a_first_write_that_cannot_be_embedded_leaves_no_namespace(remoted: Trivet, provider: Provider) -> None:
    """It would be bound to an embedder that may never answer."""
    provider.is_down = True
    with pytest.raises(EmbeddingFailed):
        await remoted.add("new", MEMORIES)
    with pytest.raises(EmbeddingFailed):
        await remoted.documents.put("new", DocumentInput(text="A bowline holds."))
    with pytest.raises(NotFound):
        await remoted.get_namespace("new")
    provider.is_down = False
    assert {result.status for result in await remoted.add("new", MEMORIES)} == {"created"}
    assert await best(remoted, "new") == "train"


async def test_a_first_write_is_embedded_as_the_namespace_is_created_meanwhile(
    remoted: Trivet, provider: Provider
) -> None:
    """With another embedder."""
    provider.received.clear()
    with provider.hanging():
        writing = asyncio.create_task(remoted.add("new", MEMORIES))
        await asyncio.to_thread(until, lambda: provider.received or None)
        await remoted.put_namespace("new", NamespaceInput(embedder=BUNDLED))
    assert {result.status for result in await writing} == {"created"}
    provider.received.clear()
    assert await best(remoted, "new") == "train"
    assert provider.received == []


async def test_vectors_are_replaced_by_the_providers_and_back(remoted: Trivet, provider: Provider) -> None:
    await remoted.reembedding.run("n", BUNDLED)
    provider.received.clear()
    assert await best(remoted) == "train"
    assert provider.received == []
    assert await remoted.reembedding.run("n", NAME) == len(MEMORIES)
    assert (await remoted.get_namespace("n")).settings.embedder == NAME
    assert await best(remoted) == "train"
    assert provider.received[-1].texts == [QUERY]


async def test_an_outage_ends_a_replacement_which_then_goes_on(remoted: Trivet, provider: Provider) -> None:
    await remoted.put_namespace("big", NamespaceInput(embedder=BUNDLED))
    await remoted.add("big", [MemoryInput(id=f"m{number}", text=f"Recipe {number}.") for number in range(80)])
    answer, answered, provider.drift = provider.answer, list[int](), 0.01

    def fail_in_the_third(request: Received) -> Reply:
        answered.append(1)
        provider.is_down = len(answered) > 2
        return answer(request)

    provider.answer = fail_in_the_third  # type: ignore[method-assign]
    with pytest.raises(EmbeddingFailed):
        await remoted.reembedding.run("big", NAME)
    assert (await remoted.get_namespace("big")).settings.embedder == BUNDLED
    provider.answer, provider.is_down = answer, False  # type: ignore[method-assign]
    provider.received.clear()
    await remoted.reembedding.run("big", NAME)
    assert sum(len(one.texts) for one in provider.received) == 1 + 80 - 32


async def test_during_an_outage_the_other_legs_answer_and_a_write_stores_nothing(
    client: httpx.AsyncClient, provider: Provider
) -> None:
    path = "/v1/namespaces/n"
    rows = [{"id": memory.id, "text": memory.text} for memory in MEMORIES]
    assert (await client.post(f"{path}/memories", json={"memories": rows})).status_code == 201
    provider.is_down = True
    reply = (await client.post(f"{path}/search", json={"query": QUERY})).json()
    assert reply["results"][0]["id"] == "train"
    [degraded] = reply["degraded"]
    assert degraded["leg"] == "vector"
    assert "the embedding provider openai answered 503: overloaded for now" in degraded["reason"]
    assert (await client.post(f"{path}/search", json={"query": QUERY, "mode": "vector"})).status_code == 503
    problem = (await client.post(f"{path}/memories", json={"memories": [{"id": "cat", "text": "It is gone."}]})).json()
    assert (problem["status"], problem["detail"]) == (
        503,
        "the embedding provider openai answered 503: overloaded for now",
    )
    assert (await client.get(f"{path}/memories/cat")).json()["text"] == MEMORIES[1].text
    assert (await client.get("/health/ready")).status_code == 200
    provider.is_down = False
    back = await client.post(f"{path}/memories", json={"memories": [{"id": "cat", "text": "It is back."}]})
    assert (back.status_code, back.json()["results"][0]["status"]) == (201, "updated")
    assert (await client.post(f"{path}/search", json={"query": QUERY})).json()["degraded"] == []


async def test_a_provider_that_does_not_answer_takes_the_vector_leg_only(
    remoted: Trivet, provider: Provider, database_url: str
) -> None:
    async with Trivet.open(replace(settings_with(provider, database_url), leg_timeout_s=1.0)) as hurried:
        with provider.hanging():
            response = await hurried.search("n", SearchRequest(query=QUERY))
    assert response.results[0].id == "train"
    assert ("vector", "passed its deadline of 1 s") in [(one.leg, one.reason) for one in response.degraded]


async def test_a_bulk_write_during_an_outage_tells_what_is_stored(
    client: httpx.AsyncClient, provider: Provider
) -> None:
    lines = b"".join(b'{"id": "m%d", "text": "Recipe %d."}\n' % (number, number) for number in range(3))
    provider.is_down = True
    headers = {"content-type": "application/x-ndjson"}
    reply = await client.post("/v1/namespaces/n/memories/bulk", content=lines, headers=headers)
    assert "overloaded" in reply.text
    assert (await client.get("/v1/namespaces/n")).status_code == 404


async def test_what_a_server_without_the_provider_does(
    remoted: Trivet, provider: Provider, database_url: str, trivet: Trivet
) -> None:
    """Writes are refused, searches use the other legs, and the error says what to set."""
    told = (
        "set TRIVET_EMBEDDING_PROVIDER=openai and TRIVET_EMBEDDING_MODEL=text-embedding-3-small, "
        "or give the namespace another one by `trivet reembed`"
    )
    with pytest.raises(EmbedderMissing, match=told):
        await trivet.add("n", [MemoryInput(id="new", text="Not stored.")])
    with pytest.raises(EmbedderMissing, match=told):
        await trivet.documents.put("n", DocumentInput(id="new", text="Not stored."))
    for embedder in (NAME, "openai/", "word2vec"):
        with pytest.raises(InvalidInput) as raised:
            await trivet.put_namespace("other", NamespaceInput(embedder=embedder))
        assert (raised.value.loc, embedder in str(raised.value)) == (("embedder",), True)
        with pytest.raises(InvalidInput):
            await trivet.reembedding.run("n", embedder)
    with pytest.raises(NotFound):
        await trivet.get_namespace("other")
    response = await trivet.search("n", SearchRequest(query=QUERY))
    assert (response.results[0].id, [one.leg for one in response.degraded]) == ("train", ["vector"])
    assert told in response.degraded[0].reason
    with pytest.raises(AllLegsFailed, match=told):
        await trivet.search("n", SearchRequest(query=QUERY, mode=Mode.VECTOR))
    assert [(await one.readiness())["models"] for one in (trivet, remoted)] == [False, True]
    found = {one.name: one for one in await examine(settings_for(database_url))}
    assert (found[f"embedder {NAME}"].ok, told in found[f"embedder {NAME}"].detail) == (False, True)
    await trivet.reembedding.run("n", BUNDLED)
    assert await best(trivet) == "train"


async def test_the_doctor_asks_the_provider(remoted: Trivet, provider: Provider, database_url: str) -> None:
    settings = settings_with(provider, database_url)
    found = {one.name: one for one in await examine(settings)}
    assert found["embedding provider"].detail == f"{NAME} answers at {provider.url}"
    assert found[f"embedder {NAME}"].ok
    provider.dimensions = 1_536
    found = {one.name: one for one in await examine(settings)}
    assert (found["embedding provider"].ok, "vectors of 1536 numbers" in found["embedding provider"].detail) == (
        False,
        True,
    )


async def test_the_key_is_in_no_log_and_no_answer(
    client: httpx.AsyncClient, provider: Provider, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("retrieval.legs.base._logged", {})
    caplog.set_level(logging.DEBUG)
    path = "/v1/namespaces/n"
    texts = list[str]()
    for is_down in (False, True):
        provider.is_down = is_down
        texts.append((await client.post(f"{path}/memories", json={"memories": [{"text": f"Down: {is_down}"}]})).text)
        texts.append((await client.post(f"{path}/search", json={"query": f"down {is_down}"})).text)
    texts += [(await client.get("/v1/state")).text, repr(provider.settings("openai")), caplog.text]
    assert [KEY in text for text in texts] == [False] * len(texts)
    assert "leg vector failed: EmbeddingFailed: the embedding provider openai answered 503: overloaded" in caplog.text
    assert "Traceback" not in caplog.text
