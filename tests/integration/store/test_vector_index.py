"""Contents of the HNSW index: nothing from small namespaces, all but the latest memories of others."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from retrieval.store import namespaces, vector_index
from retrieval.store.pool import Pool, open_pool
from retrieval.types.memory import MemoryInput, MemoryPatch
from tests.integration.index.test_registry import Process


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_index, "MOST_OUTSIDE", 10)
    monkeypatch.setattr(vector_index, "AT_ONCE", 2)
    monkeypatch.setattr(vector_index, "_LEAST_PER_PASS", 4)
    monkeypatch.setattr(vector_index, "_MOST_PER_PASS", 8)
    monkeypatch.setattr(vector_index, "_PART_PER_PASS", 2)


@pytest.fixture
async def process(database_url: str) -> AsyncIterator[Process]:
    async with open_pool(database_url, 4) as pool:
        yield Process(pool)


async def write(process: Process, name: str, count: int, *, first: int = 0) -> None:
    numbers = range(first, first + count)
    await process.ingest.add(name, [MemoryInput(id=f"m{n}", text=f"Boat {n}.") for n in numbers])


async def outside(pool: Pool, name: str) -> list[str]:
    """The ids of the memories whose vectors are outside of the index."""
    async with pool.connection() as conn:
        ns = (await namespaces.find(conn, name)).ns
        rows = await conn.execute("select id from memory where ns = %s and not indexed order by doc", [ns])
        return [id_ for (id_,) in await rows.fetchall()]


async def enter_some(pool: Pool) -> None:
    async with pool.connection() as conn:
        await vector_index.enter_some(conn)


async def test_new_vectors_enter_the_index_bit_by_bit_where_there_are_many(process: Process) -> None:
    await write(process, "small", 10)
    await write(process, "large", 40)
    for _ in range(20):
        await enter_some(process.pool)
        await write(process, "large", 1, first=0)  # unchanged
    assert len(await outside(process.pool, "small")) == 10
    assert await outside(process.pool, "large") == [f"m{n}" for n in range(30, 40)]


async def test_a_pass_is_short(process: Process) -> None:
    await write(process, "n", 40)
    left = []
    for _ in range(6):
        await enter_some(process.pool)
        left.append(len(await outside(process.pool, "n")))
    assert left == [32, 24, 16, 12, 10, 10]


async def test_what_is_changed_is_outside_again(process: Process) -> None:
    """Also a turn whose context has changed."""
    turns = [MemoryInput(id=f"m{n}", text=f"Boat {n}.", session_id="s", position=n) for n in range(0, 60, 2)]
    await process.ingest.add("n", turns)
    for _ in range(20):
        await enter_some(process.pool)
    before = await outside(process.pool, "n")
    await process.ingest.patch("n", "m0", MemoryPatch(text="Another boat."))
    await process.ingest.add("n", [MemoryInput(id="m11", text="A sail.", session_id="s", position=11)])
    assert set(await outside(process.pool, "n")) == {*before, "m0", "m2", "m4", "m11", "m12", "m14"}
