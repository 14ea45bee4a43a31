"""Another server writes during a search: the search shows each memory in one of its versions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from retrieval.engine import Trivet
from retrieval.index import rows
from retrieval.index.freshness import FollowedIndex
from retrieval.index.query_vectors import QueryVectors
from retrieval.index.registry import IndexRegistry
from retrieval.index.snapshot import NamespaceSnapshot
from retrieval.legs.bm25 import Bm25Retriever
from retrieval.pipeline import MOST_AT_ONCE
from retrieval.store import memories, vectors
from retrieval.types.memory import MemoryInput, MemoryPatch
from retrieval.types.search import Filters, Leg, Mode, SearchRequest, SearchResponse
from tests.serving import settings_for

QUERY = "Which boat did Ida paint in Porto?"
BEFORE, AFTER = "Ida painted a boat in Porto.", "Ida painted a boat in Porto, and then a house."


@pytest.fixture
async def servers(database_url: str) -> AsyncIterator[tuple[Trivet, Trivet]]:
    """One that writes and one that searches, with twelve memories of which `m` answers `QUERY` best."""
    settings = settings_for(database_url, pool_size=6)
    async with Trivet.open(settings) as writer, Trivet.open(settings) as reader:
        beside = [MemoryInput(id=f"b{at}", text=f"Boat {at} is in harbour {at}.", tags=["t"]) for at in range(11)]
        ours = MemoryInput(id="m", text=BEFORE, tags=["t"], metadata={"of": "ida"})
        await writer.add("n", [*beside, ours])
        await reader.search("n", SearchRequest(query="Ida"))
        yield writer, reader


def texts(answer: SearchResponse) -> dict[str, str]:
    assert len({each.id for each in answer.results}) == len(answer.results)
    return {each.id: each.text for each in answer.results}


def legs(answer: SearchResponse) -> dict[str, Collection[str]]:
    return {each.id: each.legs.keys() for each in answer.results}


@contextmanager
def before_first(holder: ModuleType | type, name: str, do: Callable[[], Awaitable[object]]) -> Iterator[None]:
    """Run something once, before a function's first call."""
    real, calls = getattr(holder, name), list[str]()

    async def wrapped(*args: Any, **options: Any) -> Any:
        calls.append(name)
        if len(calls) == 1:
            await do()
        return await real(*args, **options)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(holder, name, wrapped)
        yield
    assert calls


@pytest.fixture
def held(servers: tuple[Trivet, Trivet]) -> Callable[..., Any]:
    """Searches, and runs something between the search's freshness check and everything else."""
    _, reader = servers
    current = IndexRegistry.current

    async def search(request: SearchRequest, meanwhile: Callable[[], Awaitable[object]]) -> SearchResponse:
        turns, checked = reader._pipeline._concurrency, asyncio.Event()

        async def noted(*args: Any, **options: Any) -> NamespaceSnapshot:
            snapshot = await current(*args, **options)
            checked.set()
            return snapshot

        for _ in range(MOST_AT_ONCE):
            await turns.acquire()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(IndexRegistry, "current", noted)
            searching = asyncio.create_task(reader.search("n", request))
            check = asyncio.create_task(checked.wait())
            await asyncio.wait((check, searching), return_when=asyncio.FIRST_COMPLETED)
            assert checked.is_set(), await searching
        await meanwhile()
        for _ in range(MOST_AT_ONCE):
            turns.release()
        return await searching

    return search


async def test_a_memory_updated_before_its_text_is_read_is_shown(servers: tuple[Trivet, Trivet]) -> None:
    writer, reader = servers
    for mode in Mode:
        now = f"{AFTER} So {mode} says."
        with before_first(memories, "hydrate", partial(writer.patch, "n", "m", MemoryPatch(text=now))):
            assert texts(await reader.search("n", SearchRequest(query=QUERY, mode=mode)))["m"] == now


async def test_others_take_the_place_of_what_is_gone_or_meets_the_filters_no_more(
    servers: tuple[Trivet, Trivet],
) -> None:
    writer, reader = servers

    async def change() -> None:
        await writer.patch("n", "m", MemoryPatch(tags=["other"]))
        for at in range(6):
            await writer.delete("n", f"b{at}")

    request = SearchRequest(query=QUERY, filters=Filters(tags_all=["t"]), top_k=5)
    with before_first(memories, "hydrate", change):
        assert texts(await reader.search("n", request)).keys() == {f"b{at}" for at in range(6, 11)}


async def test_a_memory_whose_update_another_search_saw_is_shown(
    servers: tuple[Trivet, Trivet], held: Callable[..., Any]
) -> None:
    """The other search updates the shared index between the first one's check and its legs."""
    writer, reader = servers
    for mode, metadata in product(Mode, [{}, {"of": "ida"}]):
        now = f"{AFTER} So {mode} says of {metadata}."

        async def update(now: str = now) -> None:
            await writer.patch("n", "m", MemoryPatch(text=now))
            await reader._indexes.current("n", lambda _: ())

        request = SearchRequest(query=QUERY, mode=mode, filters=Filters(metadata=metadata))
        assert texts(await held(request, update))["m"] == now


async def test_a_memory_updated_before_its_vector_is_read_is_found_by_it(
    servers: tuple[Trivet, Trivet], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors are read separately if there are too many to come with the changes."""
    monkeypatch.setitem(rows.PARAMETERS, "few", 0)
    writer, reader = servers
    for mode in (Mode.VECTOR, Mode.HYBRID):
        await writer.add("n", [MemoryInput(id=mode, text=BEFORE)])
        with before_first(vectors, "read", partial(writer.patch, "n", mode, MemoryPatch(text=AFTER))):
            answer = await reader.search("n", SearchRequest(query=QUERY, mode=mode))
        assert Leg.VECTOR in legs(answer)[mode]


async def test_a_memory_updated_again_while_its_update_is_followed_is_shown(servers: tuple[Trivet, Trivet]) -> None:
    """The version that the check knows of is gone before it is read."""
    writer, reader = servers
    for metadata in ({}, {"of": "ida"}):
        await writer.patch("n", "m", MemoryPatch(text=AFTER))
        request = SearchRequest(query=QUERY, mode=Mode.BM25, filters=Filters(metadata=metadata))
        with before_first(FollowedIndex, "_follow", partial(writer.patch, "n", "m", MemoryPatch(text=BEFORE))):
            assert texts(await reader.search("n", request))["m"] == BEFORE


async def test_what_is_known_of_a_removed_memory_goes_with_the_last_search_that_may_see_it(
    servers: tuple[Trivet, Trivet], held: Callable[..., Any]
) -> None:
    writer, reader = servers
    index = (await reader._indexes.current("n", lambda _: ())).index
    [doc] = np.flatnonzero(np.array(index.memories.ids.get(np.arange(12))) == "m")

    async def is_known() -> bool:
        await reader._indexes.current("n", lambda _: ())
        return bool(index.vectors.knows(np.array([doc]))[0])

    async def update() -> None:
        for text in (AFTER, BEFORE):
            await writer.patch("n", "m", MemoryPatch(text=text))
            assert await is_known()

    assert await is_known()
    await held(SearchRequest(query=QUERY), update)
    await writer.add("n", [MemoryInput(id="another", text="Another.")])
    assert not await is_known()


async def test_the_vector_leg_finds_what_the_bm25_leg_found_first(
    servers: tuple[Trivet, Trivet], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if none of its vectors was read yet, as the query's own is late."""
    writer, reader = servers
    monkeypatch.setitem(rows.PARAMETERS, "few", 0)
    await writer.add("n", [MemoryInput(id="new", text=AFTER)])
    embedder, done, search = reader.embedders.default._inner, asyncio.Event(), Bm25Retriever.search
    embed = embedder.embed_query

    async def late(text: str) -> Any:
        await done.wait()
        return await embed(text)

    async def noted(*args: Any) -> Any:
        ranking = await search(*args)
        done.set()
        return ranking

    monkeypatch.setattr(embedder, "embed_query", late)
    monkeypatch.setattr(Bm25Retriever, "search", noted)
    answer = await reader.search("n", SearchRequest(query=QUERY, mode=Mode.HYBRID))
    assert Leg.VECTOR in legs(answer)["new"]


async def readers_of_new_vectors(
    servers: tuple[Trivet, Trivet], monkeypatch: pytest.MonkeyPatch, count: int
) -> list[QueryVectors]:
    """The vectors of some queries to an index of twelve memories and five newer ones, whose vectors it lacks."""
    writer, reader = servers
    monkeypatch.setitem(rows.PARAMETERS, "few", 0)  # checks do not read them
    await writer.add("n", [MemoryInput(id=f"new{at}", text=f"Boat {at} is new.") for at in range(5)])
    index = (await reader._indexes.current("n", lambda _: ())).index
    return [QueryVectors(reader._pool, index) for _ in range(count)]


def assert_same(ours: QueryVectors, expected: QueryVectors, docs: Sequence[int]) -> None:
    for kind in ("context_vectors", "text_vectors"):
        got, wanted = (getattr(each, kind)[each.rows_of(docs)] for each in (ours, expected))
        np.testing.assert_array_equal(got, wanted)


async def test_legs_that_read_the_same_vectors_at_once_both_have_them(
    servers: tuple[Trivet, Trivet], monkeypatch: pytest.MonkeyPatch
) -> None:
    known, alone = await readers_of_new_vectors(servers, monkeypatch, 2)
    new = list(range(12, 17))
    assert known.take(new)
    assert known.unread(new) == new  # that the index lacks them does not say that there are none
    await asyncio.gather(known.read(new[:3]), known.read(new), known.read(new[2:]))
    await known.read(list(range(12)))
    await alone.read(list(range(17)))
    assert_same(known, alone, range(17))


async def test_a_memory_that_expires_while_a_search_waits_is_not_shown(
    servers: tuple[Trivet, Trivet], held: Callable[..., Any]
) -> None:
    """By the database's clock; a search of the past shows it."""
    writer, reader = servers
    expires_at = datetime.now(UTC) + timedelta(seconds=2)
    await writer.patch("n", "m", MemoryPatch(expires_at=expires_at))

    async def expire() -> None:
        async with reader._pool.connection() as conn:
            await conn.execute("select pg_sleep_until(%s)", (expires_at,))

    answer = await held(SearchRequest(query=QUERY, top_k=5), expire)
    assert "m" not in texts(answer)
    assert len(answer.results) == 5  # others take its place
    past = SearchRequest(query=QUERY, as_of=expires_at - timedelta(milliseconds=1))
    assert "m" in texts(await reader.search("n", past))


async def test_vectors_that_another_leg_takes_meanwhile_keep_their_rows(
    servers: tuple[Trivet, Trivet], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another search has put them into the index while the first leg waits for the database."""
    mine, other, alone = await readers_of_new_vectors(servers, monkeypatch, 3)
    old, new, read = range(12), range(12, 17), vectors.read

    async def slow(*args: Any, **options: Any) -> Any:
        monkeypatch.undo()
        found = await read(*args, **options)
        await other.read(new[:2])
        await mine.read(new[:2])
        return found

    monkeypatch.setattr(vectors, "read", slow)
    for some in (new, old):
        await mine.read(some)
    await alone.read([*old, *new])
    assert_same(mine, alone, [*old, *new])
