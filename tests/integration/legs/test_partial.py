"""Searches of a namespace that is still loading: by SQL, with the same answers as after loading."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from retrieval.api.app import create_app
from retrieval.engine import Trivet
from retrieval.errors import AllLegsFailed
from retrieval.index import registry, small_namespaces
from retrieval.profiles.schema import ProfileInput
from retrieval.store import vectors
from retrieval.store.pool import Pool
from retrieval.types.memory import MemoryInput, MemoryPatch
from retrieval.types.search import Exclude, Filters, Leg, Mode, SearchRequest, SearchResponse
from tests.conftest import PostgresServer
from tests.serving import client_of, settings_for

DAY = datetime(2024, 5, 1, tzinfo=UTC)
WORDS = ("harbour", "boat", "paint", "sail", "rope", "anchor", "tide", "gull")
QUERY = "Which boat did Ida paint in the harbour in May 2024?"
REQUESTS = {
    "all": SearchRequest(query=QUERY),
    "few": SearchRequest(query="gull and anchor", top_k=3),
    "a speaker": SearchRequest(query="What did Bo say of the rope?"),
    "filters": SearchRequest(query=QUERY, filters=Filters(tags_any=["t1"], session_id=["s1", "s2"])),
    "excluded": SearchRequest(query=QUERY, exclude=Exclude(ids=["m002", "m010", "m018"], session_id=["s3"])),
    "metadata": SearchRequest(query=QUERY, filters=Filters(metadata={"third": True})),
    "as of": SearchRequest(query=QUERY, as_of=DAY + timedelta(days=60)),
    "superseded": SearchRequest(query=QUERY, include_superseded=True),
    "another BM25": SearchRequest(query=QUERY, profile="lengthy@1"),
    "no word of it": SearchRequest(query="zzyzx"),
}


def texts() -> list[MemoryInput]:
    """Chats and single memories of many lengths, some superseded, some expired or expiring later."""
    return [
        MemoryInput(
            id=f"m{at:03}",
            text=f"Ida {' '.join(WORDS[at * step % 8] for step in range(1, 3 + at % 11))} {at}{'?' * (at % 7 == 0)}",
            created_at=DAY + timedelta(days=at % 90),
            session_id=f"s{at % 5}" if at % 3 else None,
            speaker=("Bo", "Zoë", None)[at % 3],
            tags=[f"t{at % 4}"],
            metadata={"third": at % 3 == 0},
            expires_at=DAY + timedelta(days=80) if at % 17 == 0 else None,
            supersedes=f"m{at - 1:03}" if at % 13 == 1 else None,
        )
        for at in range(240)
    ]


async def fill(database_url: str) -> None:
    """Write a mostly packed namespace, with some deleted and some changed memories, and another one."""
    async with Trivet.open(settings_for(database_url, bm25_tail_docs=30)) as trivet:
        await trivet.profiles.put("lengthy", ProfileInput(bm25_k1=50.0, bm25_b=1.0))
        memories = texts()
        await trivet.add("n", memories[:200])
        await trivet.maintain()
        await trivet.add("n", memories[200:])
        await trivet.add("other", memories)
        for at in (5, 50, 210):
            await trivet.delete("n", f"m{at:03}")
            await trivet.patch("n", f"m{at + 1:03}", MemoryPatch(tags=["t1"]))


@pytest.fixture(scope="module")
def filled(postgres_server: PostgresServer) -> Iterator[str]:
    with postgres_server.filled(fill) as name:
        yield name


@pytest.fixture
def database_url(postgres_server: PostgresServer, filled: str) -> Iterator[str]:
    with postgres_server.clone(filled) as url:
        yield url


@pytest.fixture
def namespace(monkeypatch: pytest.MonkeyPatch) -> str:
    """A namespace that the engine treats as large."""
    monkeypatch.setattr(small_namespaces, "MOST_ORDINALS", 0)
    monkeypatch.setattr(registry, "LARGE_FROM", 1)
    monkeypatch.setattr(registry, "PATIENCE_S", 0.0)
    return "n"


@asynccontextmanager
async def held_up(trivet: Trivet, pool: Pool) -> AsyncIterator[None]:
    """No namespace can be loaded meanwhile, and none is loaded."""
    trivet._indexes._entries.clear()
    async with pool.connection() as conn, conn.transaction():
        await conn.execute("lock table mention in access exclusive mode")
        yield


def ranked(response: SearchResponse) -> list[tuple[object, ...]]:
    return [(result.id, result.text, result.legs, result.duplicates) for result in response.results]


def words_of(response: SearchResponse) -> dict[str, object]:
    """The BM25 leg's figures for each result."""
    return {result.id: evidence for result in response.results if (evidence := result.legs.get("bm25"))}


async def test_words_are_found_as_in_a_namespace_that_was_read(
    trivet: Trivet, pool: Pool, namespace: str, subtests: pytest.Subtests
) -> None:
    """Turns in their context have the same scores, with any filters and times."""
    requests = {name: replace(request, mode=Mode.BM25, top_k=20) for name, request in REQUESTS.items()}
    await trivet.load(namespace)
    expected = {name: await trivet.search(namespace, request) for name, request in requests.items()}
    for name, request in requests.items():
        with subtests.test(request=name):
            async with held_up(trivet, pool):
                found = await trivet.search(namespace, request)
            assert ranked(found) == ranked(expected[name])
            assert found.degraded == expected[name].degraded == []
            assert bool(found.results) == (name != "no word of it")


async def test_vectors_are_found_as_in_a_namespace_that_was_read(
    trivet: Trivet, pool: Pool, namespace: str, subtests: pytest.Subtests
) -> None:
    """Two of three are in the HNSW index, the others outside; exact if both together find too few."""
    requests = {name: replace(request, mode=Mode.VECTOR) for name, request in REQUESTS.items()}
    async with pool.connection() as conn:
        await conn.execute("update memory set indexed = doc % 3 > 0")
    await trivet.load(namespace)
    expected = {name: await trivet.search(namespace, request) for name, request in requests.items()}
    for name, request in requests.items():
        with subtests.test(request=name):
            async with held_up(trivet, pool):
                found = await trivet.search(namespace, request)
            assert found.results
            assert [result.id for result in found.results] == [result.id for result in expected[name].results]
            assert found.degraded == []


@pytest.mark.parametrize("mode", [Mode.BM25, Mode.VECTOR, Mode.ADAPTIVE])
async def test_sessions_are_not_counted_in_a_part_of_the_namespace(
    trivet: Trivet, pool: Pool, namespace: str, mode: Mode
) -> None:
    """The second one of the memories that were read may be any: none is put first."""
    request = SearchRequest(query="What was said of the tide in our second session?", mode=mode, explain=True)
    async with held_up(trivet, pool):
        found = await trivet.search(namespace, request)
    assert found.results
    assert found.explanation
    assert found.explanation.time is None


async def test_a_leg_that_cannot_answer_yet_is_named(trivet: Trivet, pool: Pool, namespace: str) -> None:
    """The graph is walked once the namespace is loaded, and later searches use the index."""
    async with held_up(trivet, pool):
        first = await trivet.search(namespace, REQUESTS["all"])
        assert [each.leg for each in first.degraded] == ["graph"]
        assert first.results
        assert {leg for result in first.results for leg in result.legs} == {Leg.VECTOR, Leg.BM25}
        second = await trivet.search(namespace, REQUESTS["all"])
        assert ranked(second) == ranked(first)
    await trivet.load(namespace)
    later = await trivet.search(namespace, REQUESTS["all"])
    assert later.degraded == []
    assert words_of(later).items() & words_of(first).items()


async def test_one_leg_that_fails_leaves_the_other(
    trivet: Trivet, pool: Pool, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(*_: object, **__: object) -> None:
        raise ConnectionResetError("gone")

    async with held_up(trivet, pool):
        monkeypatch.setattr(vectors, "by_index", failing)
        found = await trivet.search(namespace, REQUESTS["all"])
    assert [each.leg for each in found.degraded] == ["vector", "graph"]
    assert {leg for result in found.results for leg in result.legs} == {Leg.BM25}


async def test_the_graph_alone_waits_no_longer_than_a_leg_may(
    trivet: Trivet, pool: Pool, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = SearchRequest(query=QUERY, mode=Mode.GRAPH)
    async with held_up(trivet, pool):
        with monkeypatch.context() as hasty:
            hasty.setattr(trivet._pipeline._preparation, "_timeout_s", 0.1)
            with pytest.raises(AllLegsFailed, match="still being read"):
                await trivet.search(namespace, request)
    await trivet.load(namespace)
    assert (await trivet.search(namespace, request)).degraded == []


async def test_a_server_is_ready_once_the_largest_namespaces_are_read(
    database_url: str, trivet: Trivet, pool: Pool, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And says what it waits for; it answers searches meanwhile."""
    warm, is_warm = trivet._indexes.warm, asyncio.Event()

    async def warm_all() -> None:
        await warm(least=1)
        is_warm.set()

    monkeypatch.setattr(trivet._indexes, "warm", warm_all)
    async with AsyncExitStack() as lock:
        await lock.enter_async_context(held_up(trivet, pool))
        async with client_of(create_app(settings_for(database_url), trivet)) as client:
            answer = await client.get("/health/ready")
            assert answer.status_code == 503
            assert "namespaces" in answer.text
            found = await client.post(f"/v1/namespaces/{namespace}/search", json={"query": QUERY})
            assert (found.status_code, bool(found.json()["results"])) == (200, True)
            await lock.aclose()
            async with asyncio.timeout(120):
                await is_warm.wait()
            answer = await client.get("/health/ready")
    assert (answer.status_code, answer.json()["checks"]["namespaces"]) == (200, True)
    assert {*trivet._indexes._entries} >= {namespace, "other"}
