"""Memories that are asked for before it is known which an answer shows, and what becomes of the connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import psycopg
import pytest

from graph.prepared import Prepared, send
from retrieval.engine import Trivet
from retrieval.reading import Reading
from retrieval.settings import Settings
from retrieval.store import memories, namespaces
from retrieval.store.pool import Pool
from retrieval.types import MemoryInput, SearchRequest

_SLEEP = Prepared("select pg_sleep(%(seconds)s::float8)")
_NUMBERS = Prepared("select n, 'n' || n from generate_series(1, %(most)s::int) as n order by n")
_DIVIDE = Prepared("select 1 / %(by)s::int")


@pytest.fixture
async def trivet(database_url: str) -> AsyncIterator[Trivet]:
    async with Trivet.open(Settings(database_url=database_url, pool_size=4)) as engine:
        for name in ("n", "other"):
            texts = [f"{name.title()} says that boat {at} is {at + 3} metres long." for at in range(40)]
            batch = [MemoryInput(id=f"{name}{at:02}", text=text, metadata={"at": at}) for at, text in enumerate(texts)]
            await engine.add(name, batch)
        yield engine


@pytest.fixture
async def ns(trivet: Trivet, pool: Pool) -> int:
    async with pool.connection() as conn:
        return (await namespaces.find(conn, "n")).ns


def spied(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """What is asked for from here on, statement by statement."""
    asked: list[list[int]] = []
    hydrate = memories.hydrate

    async def recorded(conn: Any, ns: int, docs: Sequence[int]) -> Any:
        asked.append(sorted(docs))
        return await hydrate(conn, ns, docs)

    monkeypatch.setattr(memories, "hydrate", recorded)
    return asked


async def test_what_was_foreseen_is_not_asked_for_again(ns: int, pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what was not is, alone; either way the rows are those that were wanted, in their order."""
    asked = spied(monkeypatch)
    async with Reading(pool, ns) as reading:
        await reading.begin([3, 1, 2])
        for docs in ([2, 1], [1, 7, 3, 5], [7]):
            rows = await reading.read(docs)
            assert [(row.id, row.metadata) for row in rows if row] == [(f"n{doc:02}", {"at": doc}) for doc in docs]
    assert asked == [[1, 2, 3], [5, 7], [7]]


async def test_without_foresight_all_is_read_when_it_is_wanted(ns: int, pool: Pool) -> None:
    async with Reading(pool, ns) as reading:
        await reading.begin([])
        assert [row and row.id for row in await reading.read([4, 900, 0])] == ["n04", None, "n00"]


async def test_a_memory_deleted_meanwhile_is_absent(trivet: Trivet, ns: int, pool: Pool) -> None:
    await trivet.delete("n", "n02")
    async with Reading(pool, ns) as reading:
        await reading.begin([1, 2])
        assert [row and row.id for row in await reading.read([1, 2])] == ["n01", None]


async def test_a_reading_that_ends_early_leaves_nothing_on_its_way(ns: int, pool: Pool) -> None:
    """More often than the pool has connections, after an error as after a cancellation."""
    for _ in range(2 * pool.max_size):

        async def failing() -> None:
            async with Reading(pool, ns) as reading:
                await reading.begin(range(30))
                raise ZeroDivisionError

        async def held() -> None:
            async with Reading(pool, ns) as reading:
                await reading.begin(range(30))
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
    """Whatever was foreseen: nothing at all, or memories that are not wanted."""
    request = SearchRequest(query="How long is boat 7?", top_k=5)

    async def shown() -> list[tuple[str, float]]:
        return [(each.id, each.score) for each in (await trivet.search("n", request)).results]

    begin, expected = Reading.begin, await shown()
    assert len(expected) == 5

    async def nothing(reading: Reading, docs: Sequence[int]) -> None:
        await begin(reading, [])

    async def the_last(reading: Reading, docs: Sequence[int]) -> None:
        await begin(reading, docs[-1:])

    for other in (nothing, the_last):
        monkeypatch.setattr(Reading, "begin", other)
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
        for by in (1, 0):  # of one that nobody waited for nothing is heard
            await (await send(conn, _DIVIDE, {"by": by})).drop()
            assert (await (await send(conn, _DIVIDE, {"by": 1})).rows())[0] == (1,)


async def test_what_the_server_has_forgotten_is_sent_again(pool: Pool) -> None:
    async with pool.connection() as conn:
        await (await send(conn, _DIVIDE, {"by": 1})).rows()
        await conn.execute("deallocate all")
        assert (await (await send(conn, _DIVIDE, {"by": 1})).rows())[0] == (1,)


async def test_a_cancelled_wait_ends_the_statement(pool: Pool) -> None:
    async with pool.connection() as conn:
        sent = await send(conn, _SLEEP, {"seconds": 30.0})
        task = asyncio.create_task(sent.rows())
        await asyncio.sleep(0.2)
        task.cancel()
        async with asyncio.timeout(5):
            with pytest.raises(asyncio.CancelledError):
                await task
        await sent.drop()
        assert await _DIVIDE.rows(conn, {"by": 1}) == [(1,)]


async def test_a_connection_that_does_not_answer_is_closed(pool: Pool) -> None:
    """One that is dropped waits a second and no longer."""
    async with pool.connection() as conn:
        sent = await send(conn, _SLEEP, {"seconds": 30.0})
        async with asyncio.timeout(5):
            await sent.drop()
        assert conn.closed
    async with pool.connection() as conn:
        assert await _DIVIDE.rows(conn, {"by": 1}) == [(1,)]
