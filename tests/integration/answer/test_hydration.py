"""Memories prefetched before it is known which ones an answer shows, and the fate of the connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from postgres.prepared import PreparedStatement, send
from retrieval.answer.hydration import TextReader
from retrieval.engine import Trivet
from retrieval.index.registry import IndexRegistry
from retrieval.store import memories
from retrieval.store.pool import Pool
from retrieval.types.memory import MemoryInput, MemoryPatch
from retrieval.types.search import Filters, SearchRequest
from tests.serving import settings_for

_SLEEP = PreparedStatement("select pg_sleep(%(seconds)s::float8)")
_NUMBERS = PreparedStatement("select n, 'n' || n from generate_series(1, %(most)s::int) as n order by n")
_DIVIDE = PreparedStatement("select 1 / %(by)s::int")


@pytest.fixture
async def trivet(database_url: str) -> AsyncIterator[Trivet]:
    async with Trivet.open(settings_for(database_url)) as engine:
        for name in ("n", "other"):
            texts = [f"{name.title()} says that boat {at} is {at + 3} metres long." for at in range(40)]
            batch = [MemoryInput(id=f"{name}{at:02}", text=text, metadata={"at": at}) for at, text in enumerate(texts)]
            await engine.add(name, batch)
        yield engine


@pytest.fixture
async def reader(trivet: Trivet, pool: Pool) -> Callable[..., TextReader]:
    """Begins to read from the namespace `n` for a search with some fields."""
    snapshot = await IndexRegistry(pool, most_bytes=2**20).current("n", lambda _: ())
    return lambda **fields: TextReader(pool, snapshot, SearchRequest(query="boat", **fields))


def ids_of(docs: Sequence[int]) -> list[str]:
    return [f"n{doc:02}" for doc in docs]


def spied(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The statements from here on."""
    asked: list[list[int]] = []
    hydrate = memories.hydrate

    async def recorded(conn: Any, ns: int, docs: Sequence[int]) -> Any:
        asked.append(sorted(docs))
        return await hydrate(conn, ns, docs)

    monkeypatch.setattr(memories, "hydrate", recorded)
    return asked


async def test_what_was_foreseen_is_not_asked_for_again(
    reader: Callable[..., TextReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the others are read alone; either way the wanted rows come in their order."""
    asked = spied(monkeypatch)
    async with reader() as begun:
        await begun.prefetch([3, 1, 2])
        for docs in ([2, 1], [1, 7, 3, 5], [7]):
            rows = await begun.read(docs, ids_of(docs))
            assert [(row.id, row.metadata) for row in rows if row] == [(f"n{doc:02}", {"at": doc}) for doc in docs]
    assert asked == [[1, 2, 3], [5, 7], [7]]


async def test_without_foresight_all_is_read_when_it_is_wanted(reader: Callable[..., TextReader], pool: Pool) -> None:
    async with reader() as begun:
        await begun.prefetch([])
        assert [row and row.id for row in await begun.read([4, 900, 0], ids_of([4, 900, 0]))] == ["n04", None, "n00"]


async def test_a_memory_deleted_meanwhile_is_absent(trivet: Trivet, reader: Callable[..., TextReader]) -> None:
    await trivet.delete("n", "n02")
    async with reader() as begun:
        await begun.prefetch([1, 2])
        assert [row and row.id for row in await begun.read([1, 2], ids_of([1, 2]))] == ["n01", None]


async def test_a_memory_updated_meanwhile_is_read_as_it_is_now(
    trivet: Trivet, reader: Callable[..., TextReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was not costs no further statement."""
    await trivet.patch("n", "n02", MemoryPatch(text="Boat 2 was sold."))
    by_id, hydrate_by_id = list[list[str]](), memories.hydrate_by_id

    async def counted(conn: Any, ns: int, ids: Sequence[str], condition: Any) -> Any:
        by_id.append(list(ids))
        return await hydrate_by_id(conn, ns, ids, condition)

    monkeypatch.setattr(memories, "hydrate_by_id", counted)
    async with reader() as begun:
        await begun.prefetch([1, 2])
        assert [row and row.text for row in await begun.read([2], ids_of([2]))] == ["Boat 2 was sold."]
        assert [row and row.id for row in await begun.read([1, 3], ids_of([1, 3]))] == ["n01", "n03"]
    assert by_id == [["n02"]]


async def test_a_memory_that_meets_the_filters_no_more_is_absent(
    trivet: Trivet, reader: Callable[..., TextReader]
) -> None:
    """So is one that its update made expired or superseded; one of another namespace never takes its place."""
    now = datetime.now(UTC)
    await trivet.patch("n", "n01", MemoryPatch(metadata={"at": 100}))
    await trivet.patch("n", "n02", MemoryPatch(speaker="Ida"))
    await trivet.patch("n", "n03", MemoryPatch(expires_at=now))
    await trivet.patch("n", "n04", MemoryPatch(text="Boat 4 is old."))
    await trivet.add("n", [MemoryInput(id="new", text="Boat 4 is new.", supersedes="n04")])
    await trivet.add("other", [MemoryInput(id="n05", text="Another's."), MemoryInput(id="n06", text="Another's.")])
    await trivet.delete("n", "n05")
    docs = [1, 2, 3, 4, 5]

    async def read(**fields: Any) -> list[str]:
        async with reader(**fields) as begun:
            return [row.id for row in await begun.read(docs, ids_of(docs)) if row]

    assert await read() == ["n01", "n02"]
    assert await read(include_superseded=True) == ["n01", "n02", "n04"]
    assert await read(filters=Filters(metadata={"at": 100})) == ["n01"]
    assert await read(filters=Filters(speaker=["Ida"])) == ["n02"]
    assert await read(as_of=now - timedelta(days=1)) == []


async def test_an_ordinal_that_was_given_out_again_shows_no_other_memory(reader: Callable[..., TextReader]) -> None:
    async with reader() as begun:
        await begun.prefetch([1])
        rows = await begun.read([1, 2], ["n07", "n99"])
    assert [row and row.id for row in rows] == ["n07", None]


async def test_a_reading_that_ends_early_leaves_nothing_on_its_way(
    reader: Callable[..., TextReader], pool: Pool
) -> None:
    """More often than the pool has connections, after an error as after a cancellation."""
    for _ in range(2 * pool.max_size):

        async def failing() -> None:
            async with reader() as begun:
                await begun.prefetch(range(30))
                raise ZeroDivisionError

        async def held() -> None:
            async with reader() as begun:
                await begun.prefetch(range(30))
                await asyncio.sleep(30)

        with pytest.raises(ZeroDivisionError):
            await failing()
        task = asyncio.create_task(held())
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    async with pool.connection() as conn:
        assert await _DIVIDE.rows(conn, {"by": 1}) == [(1,)]


async def test_an_answer_shows_what_it_would_without_foresight(trivet: Trivet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was prefetched: nothing at all, or unwanted memories."""
    request = SearchRequest(query="How long is boat 7?", top_k=5)

    async def shown() -> list[tuple[str, float]]:
        return [(each.id, each.score) for each in (await trivet.search("n", request)).results]

    begin, expected = TextReader.prefetch, await shown()
    assert len(expected) == 5

    async def nothing(reader: TextReader, docs: Sequence[int]) -> None:
        await begin(reader, [])

    async def the_last(reader: TextReader, docs: Sequence[int]) -> None:
        await begin(reader, docs[-1:])

    for other in (nothing, the_last):
        monkeypatch.setattr(TextReader, "prefetch", other)
        assert await shown() == expected


async def test_rows_are_decoded_as_they_are_wanted(pool: Pool) -> None:
    async with pool.connection() as conn:
        for most in (3, 50_000):
            rows = await (await send(conn, _NUMBERS, {"most": most})).rows()
            assert rows.integers(0) == list(range(1, most + 1))
            assert (rows[2], rows[0]) == ((3, "n3"), (1, "n1"))


async def test_an_error_comes_with_the_answer(pool: Pool) -> None:
    async with pool.connection() as conn:
        for _ in range(2):
            sent = await send(conn, _DIVIDE, {"by": 0})
            with pytest.raises(psycopg.errors.DivisionByZero):
                await sent.rows()
        for by in (1, 0):  # dropping one raises no error
            await (await send(conn, _DIVIDE, {"by": by})).drop()
            assert (await (await send(conn, _DIVIDE, {"by": 1})).rows())[0] == (1,)


async def test_what_the_server_has_forgotten_is_sent_again(pool: Pool) -> None:
    async with pool.connection() as conn:
        await (await send(conn, _DIVIDE, {"by": 1})).rows()
        await conn.execute("deallocate all")
        assert (await (await send(conn, _DIVIDE, {"by": 1})).rows())[0] == (1,)


async def test_a_cancelled_wait_ends_the_statement(pool: Pool) -> None:
    async with pool.connection() as conn:
        sent = await send(conn, _SLEEP, {"seconds": 3_600.0})
        task = asyncio.create_task(sent.rows())
        await asyncio.sleep(0.2)
        task.cancel()
        async with asyncio.timeout(60):
            with pytest.raises(asyncio.CancelledError):
                await task
        await sent.drop()
        assert await _DIVIDE.rows(conn, {"by": 1}) == [(1,)]


async def test_a_connection_that_does_not_answer_is_closed(pool: Pool) -> None:
    """One that is dropped waits a second and no longer."""
    async with pool.connection() as conn:
        sent = await send(conn, _SLEEP, {"seconds": 3_600.0})
        async with asyncio.timeout(60):
            await sent.drop()
        assert conn.closed
    async with pool.connection() as conn:
        assert await _DIVIDE.rows(conn, {"by": 1}) == [(1,)]
