"""Chat turns in their context: positions, neighbours and mixed vectors, maintained by every write."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from retrieval.errors import NotFound
from retrieval.ingest.service import Ingest
from retrieval.store import locking, namespaces
from retrieval.store.pool import Pool, open_pool
from retrieval.types.memory import MemoryInput, MemoryPatch
from retrieval.types.search import Filters
from tests.turns import check_turns, hashed, sessions_of, stored_turns


@pytest.fixture
def ingest(pool: Pool) -> Ingest:
    return Ingest(pool, hashed())


def turn(memory_id: str, session_id: str | None = "s", position: int | None = None, **fields: Any) -> MemoryInput:
    fields.setdefault("text", f"text of {memory_id}")
    return MemoryInput(id=memory_id, session_id=session_id, position=position, **fields)


def texts(*ids: str) -> dict[str, str]:
    return {memory_id: f"text of {memory_id}" for memory_id in ids}


def order(database_url: str, session_id: str = "s") -> list[tuple[str, int]]:
    """Ids and places of a session."""
    return [(t.id, t.place) for t in sessions_of(stored_turns(database_url).values())[session_id]]


async def test_turns_without_positions_stand_in_the_order_of_arrival(ingest: Ingest, database_url: str) -> None:
    """Of the batch, not of their ids; other memories are no turns."""
    await ingest.add("n", [turn("z"), turn("b", None), turn("a")])
    await ingest.add("n", [turn("m"), turn("x", "other")])
    assert order(database_url) == [("z", 0), ("a", 1), ("m", 2)]
    check_turns(database_url, texts("z", "a", "m", "x"))


async def test_a_turn_goes_where_its_position_says(ingest: Ingest, database_url: str) -> None:
    """Equal positions by id, bytewise; one without a position after the greatest, however great."""
    await ingest.add("n", [turn("b", position=2_147_483_647), turn("é", position=3), turn("Z", position=3)])
    await ingest.add("n", [turn("a", position=3), turn("after")])
    assert order(database_url) == [("Z", 3), ("a", 3), ("é", 3), ("b", 2_147_483_647), ("after", 2_147_483_648)]
    check_turns(database_url, texts("a", "b", "é", "Z", "after"))


async def test_a_replaced_turn_keeps_its_place(ingest: Ingest, database_url: str) -> None:
    """Without a position it keeps its place, and the next ones go after the last."""
    await ingest.add("n", [turn("a", position=4), turn("b"), turn("c")])
    await ingest.add("n", [turn("d"), turn("c", text="new"), turn("a", text="newer")])
    assert order(database_url) == [("a", 4), ("b", 5), ("c", 6), ("d", 7)]
    check_turns(database_url, texts("b", "d") | {"a": "newer", "c": "new"})


async def test_patches_move_turns(ingest: Ingest, database_url: str) -> None:
    """To another place, another session, out of all; both sides close up."""
    ids = "abcdef"
    await ingest.add("n", [turn(letter, position=at) for at, letter in enumerate(ids)])
    await ingest.patch("n", "b", MemoryPatch(position=4))
    check_turns(database_url, texts(*ids))
    assert order(database_url) == [("a", 0), ("c", 2), ("d", 3), ("b", 4), ("e", 4), ("f", 5)]
    await ingest.patch("n", "b", MemoryPatch(position=None))
    assert order(database_url)[3] == ("b", 4), "without a position it stays"
    await ingest.patch("n", "c", MemoryPatch(session_id="t"))
    await ingest.patch("n", "d", MemoryPatch(session_id="t", position=None))
    check_turns(database_url, texts(*ids))
    assert order(database_url, "t") == [("c", 2), ("d", 3)]
    await ingest.patch("n", "a", MemoryPatch(session_id=None))
    await ingest.patch("n", "e", MemoryPatch(text="other words"))
    check_turns(database_url, texts(*"bcdf") | {"e": "other words"})


async def test_deleting_closes_the_gap(ingest: Ingest, database_url: str) -> None:
    """By id and by filter, at the ends and between."""
    ids = [f"m{at:02}" for at in range(20)]
    await ingest.add("n", [turn(i, position=at, tags=["xyx"[at % 3]]) for at, i in enumerate(ids)])
    for gone in ("m00", "m10", "m19"):
        await ingest.delete("n", gone)
        ids.remove(gone)
        check_turns(database_url, texts(*ids))
    left = [memory_id for memory_id in ids if int(memory_id[1:]) % 3 == 1]
    assert await ingest.delete_many("n", filters=Filters(tags_any=["x"])) == len(ids) - len(left)
    check_turns(database_url, texts(*left))
    assert await ingest.delete_many("n", filters=Filters(session_id=["s"])) == len(left)
    assert stored_turns(database_url) == {}


async def test_a_namespace_takes_its_turns_along(ingest: Ingest, pool: Pool, database_url: str) -> None:
    """And says how many; the same session and ids in another namespace stay as they are."""
    await ingest.add("n", [turn("a"), turn("b"), turn("c", None)])
    await ingest.add("other", [turn("b", position=0), turn("c", position=1)])
    async with pool.connection() as conn:
        assert (await namespaces.delete(conn, "n")).deleted["turns"] == 2
    check_turns(database_url, texts("b", "c"))


async def versions(pool: Pool) -> dict[str, str]:
    """The row versions of all memories."""
    async with pool.connection() as conn:
        return dict(await (await conn.execute("select id, ctid::text from memory")).fetchall())


async def test_what_is_stored_of_earlier_turns_stays(ingest: Ingest, pool: Pool) -> None:
    """A turn at the end rewrites no memory; an earlier one only the two after it."""
    await ingest.add("n", [turn(f"m{at}", position=10 * at) for at in range(6)])
    before = await versions(pool)
    await ingest.add("n", [turn("end", position=90), turn("later")])
    assert before.items() <= (await versions(pool)).items()
    await ingest.add("n", [turn("between", position=15)])
    changed = {memory_id for memory_id, version in (await versions(pool)).items() if before.get(memory_id) != version}
    assert changed == {"m2", "m3", "end", "later", "between"}


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that connections execute, as they come."""
    statements: list[str] = []
    execute = AsyncConnection.execute

    async def noting(self: Any, query: str, *args: Any, **kwargs: Any) -> Any:
        if "datestyle" not in query:  # of a connection that only checks whether a busy database answers
            statements.append(query)
        return await execute(self, query, *args, **kwargs)

    monkeypatch.setattr(AsyncConnection, "execute", noting)
    return statements


async def test_statements_do_not_grow_with_the_batch(ingest: Ingest, executed: list[str]) -> None:
    """For turns at the end, between others, and replaced ones."""

    async def count(memories: list[MemoryInput]) -> int:
        executed.clear()
        await ingest.add("n", memories)
        return len(executed)

    await ingest.add("n", [turn("a0", position=0)])
    few, many = range(10, 40, 10), range(1_000, 4_000, 10)
    assert await count([turn(f"a{at}", position=at) for at in few]) == (
        await count([turn(f"a{at}", position=at) for at in many])
    )
    assert await count([turn(f"b{at}", position=at - 5) for at in few]) == (
        await count([turn(f"b{at}", position=at - 5) for at in many])
    )
    assert await count([turn(f"a{at}", position=at + 7, text="new") for at in few]) == (
        await count([turn(f"a{at}", position=at + 7, text="new") for at in many])
    )


class Meter:
    """A writer with one connection, whose reads of the tables can be counted."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.ingest = Ingest(pool, hashed())

    async def rows_read(self, *batch: MemoryInput) -> tuple[int, ...]:
        """How many rows of `memory` and of `turn` the database reads to write a batch."""
        before = await self._read_so_far()
        await self.ingest.add("n", batch)
        return tuple(after - read for after, read in zip(await self._read_so_far(), before, strict=True))

    async def _read_so_far(self) -> list[int]:
        async with self._pool.connection() as conn:
            await conn.execute("select pg_stat_force_next_flush()")
            rows = await conn.execute("""
                select seq_tup_read + idx_tup_fetch from pg_stat_user_tables
                where relname in ('turn', 'memory') order by relname
            """)
            return [read for (read,) in await rows.fetchall()]


@pytest.fixture
async def meter(database_url: str) -> AsyncIterator[Meter]:
    async with open_pool(database_url, 1) as pool:
        yield Meter(pool)


async def test_appending_costs_the_same_in_a_long_session(meter: Meter) -> None:
    """Of 50 turns and of 5,000."""
    for start in range(0, 5_000, 1_000):
        await meter.ingest.add("n", [turn(f"long{at}", "long", text="x") for at in range(start, start + 1_000)])
    await meter.ingest.add("n", [turn(f"short{at}", "short", text="x") for at in range(50)])
    await meter.ingest.add("n", [turn("warm", "warm")])
    short = await meter.rows_read(turn("new in short", "short"))
    assert await meter.rows_read(turn("new in long", "long")) == short
    assert max(short) <= 8


async def test_plans_made_while_the_tables_were_empty_serve_full_ones(meter: Meter) -> None:
    """Nothing that a write executes reads the whole namespace, in the middle of a session either."""
    for at in range(6):
        await meter.ingest.add("n", [turn(f"first{at}", position=at)])
        await meter.ingest.add("n", [turn(f"between{at}", position=0)])
    await meter.ingest.add("n", [turn(f"m{at}", f"s{at // 20}", at) for at in range(600)])
    assert max(await meter.rows_read(turn("end", "s7"))) <= 8
    assert max(await meter.rows_read(turn("first of all", "s9", 0))) <= 16
    assert max(await meter.rows_read(turn("m300", "s15", 300, text="new"))) <= 16


@pytest.fixture
async def writers(database_url: str) -> AsyncIterator[Ingest]:
    """An ingest with as many connections as there are writers."""
    async with open_pool(database_url, 8) as pool:
        yield Ingest(pool, hashed())


async def test_eight_writers_of_one_session(writers: Ingest, database_url: str) -> None:
    """One chain, whichever came first; each writer's turns in its own order."""

    async def write(writer: int) -> None:
        for at in range(10):
            await writers.add("n", [turn(f"w{writer} {at}"), turn(f"w{writer} {at} more")])

    await asyncio.gather(*map(write, range(8)))
    ids = [f"w{writer} {at}{more}" for writer in range(8) for at in range(10) for more in ("", " more")]
    check_turns(database_url, texts(*ids))
    places = dict(order(database_url))
    assert sorted(places.values()) == list(range(160))
    for writer in range(8):
        own = [places[memory_id] for memory_id in ids if memory_id.startswith(f"w{writer} ")]
        assert own == sorted(own)


async def test_writers_in_opposite_orders_with_deletes_between(writers: Ingest, database_url: str) -> None:
    """Two sessions written in opposite orders, turns moved and deleted meanwhile: no deadlock, no broken chain."""
    await writers.add("n", [turn(f"old{at}", "st"[at % 2], at) for at in range(40)])
    rng = random.Random(7)

    async def write(writer: int) -> None:
        sessions = "st" if writer % 2 else "ts"
        for at in range(8):
            batch = [turn(f"w{writer} {at}{session}", session, rng.randrange(60)) for session in sessions]
            await writers.add("n", batch)

    async def delete() -> None:
        for at in range(0, 30, 3):
            await writers.delete("n", f"old{at}")
        await writers.delete_many("n", filters=Filters(speaker=["nobody"], session_id=["s", "t"]))

    async def move() -> None:
        for at in range(1, 30, 3):
            await writers.patch("n", f"old{at}", MemoryPatch(session_id="ts"[at % 2]))

    await asyncio.gather(*map(write, range(6)), delete(), move())
    left = [f"old{at}" for at in range(40) if at >= 30 or at % 3]
    written = [f"w{writer} {at}{session}" for writer in range(6) for at in range(8) for session in "st"]
    turns = check_turns(database_url, texts(*left, *written))
    assert all(turns[f"old{at}"].session_id == "ts"[at % 2] for at in range(1, 30, 3))


async def test_a_batch_of_very_many_sessions(writers: Ingest, database_url: str) -> None:
    """It locks the namespace instead of each session, next to writers that lock one."""
    sessions = [f"s{at}" for at in range(locking.MOST_LOCKS + 10)]
    many = [[turn(f"{writer} {session}", session) for session in sessions] for writer in range(3)]
    single = [[turn(f"single {session}", session)] for session in sessions[::10]]
    await asyncio.gather(*(writers.add("n", batch) for batch in many + single))
    check_turns(database_url, texts(*(memory.id or "" for batch in many + single for memory in batch)))


def moving_meanwhile(ingest: Ingest, monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """Let another process move turn `b` to session `t` just after its session was read; returns the sessions read."""
    beside = Ingest(ingest._pool, hashed())
    read = locking.versions
    seen: list[str | None] = []

    async def reading(conn: AsyncConnection[Any], ns: int, condition: Any) -> Any:
        known = await read(conn, ns, condition)
        if "b" in known:
            seen.append(known["b"].session_id)
            if len(seen) == 1:
                await beside.patch("n", "b", MemoryPatch(session_id="t"))
        return known

    monkeypatch.setattr(locking, "versions", reading)
    return seen


async def test_a_turn_that_moves_before_it_is_replaced(
    ingest: Ingest, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer starts again with its current session."""
    await ingest.add("n", [turn(letter, position=at) for at, letter in enumerate("abc")])
    await ingest.add("n", [turn("x", "t", 0), turn("y", "t", 9)])
    seen = moving_meanwhile(ingest, monkeypatch)
    await ingest.add("n", [turn("b", "u")])
    assert seen == ["s", "t"], "the writer, and again after it was moved"
    assert order(database_url, "u") == [("b", 0)]
    check_turns(database_url, texts(*"abcxy"))


async def test_a_turn_that_moves_before_it_is_deleted(
    ingest: Ingest, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is deleted where it is."""
    await ingest.add("n", [turn(letter, position=at) for at, letter in enumerate("abc")])
    await ingest.add("n", [turn("x", "t", 0), turn("y", "t", 9)])
    seen = moving_meanwhile(ingest, monkeypatch)
    await ingest.delete("n", "b")
    assert (seen[0], seen[-1]) == ("s", "t"), "the writer, and again after it was moved"
    check_turns(database_url, texts(*"acxy"))


async def test_deletes_beside_the_namespace_going(writers: Ingest, database_url: str) -> None:
    """A turn's delete is done or finds nothing."""
    await writers.add("n", [turn(f"m{at}") for at in range(30)])

    async def drop() -> None:
        async with writers._pool.connection() as conn:
            await namespaces.delete(conn, "n")

    results = await asyncio.gather(*(writers.delete("n", f"m{at}") for at in range(12)), drop(), return_exceptions=True)
    assert all(result is None or isinstance(result, NotFound) for result in results)
    with psycopg.connect(database_url) as db:
        assert db.execute("select (select count(*) from turn), (select count(*) from memory)").fetchone() == (0, 0)
