"""Eight writers of two processes in one namespace, deletes and patches beside them: no deadlock, nothing lost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import psycopg
import pytest

from graph.names import entity_id, normalize
from retrieval.errors import Conflict, NotFound
from retrieval.ingest.service import Ingest
from retrieval.store.pool import open_pool
from retrieval.types.memory import EntityInput, MemoryInput, MemoryPatch, RelationInput
from retrieval.types.search import Filters
from tests.turns import check_turns, hashed

PEOPLE = ["Ann Lee", "Bob Ray", "Caroline Brown", "Dan Weiss", "Eve Stone"]
SHARED = [f"shared{at}" for at in range(12)]
ROUNDS = 5


@pytest.fixture
async def processes(database_url: str) -> AsyncIterator[list[Ingest]]:
    """Two independent ingests, as in two server processes."""
    async with AsyncExitStack() as stack:
        pools = [await stack.enter_async_context(open_pool(database_url, 6)) for _ in range(2)]
        yield [Ingest(pool, hashed()) for pool in pools]


def memory(memory_id: str, rng: random.Random, **fields: Any) -> MemoryInput:
    """A turn with frequent and unique names, in one of two sessions; the text is new each time."""
    people = rng.sample(PEOPLE, 3)
    return MemoryInput(
        id=memory_id,
        text=f"{people[0]} met {people[1]} in Town{rng.randrange(9)} about Project{rng.randrange(10**6)}.",
        speaker=people[2],
        session_id=rng.choice("st"),
        entities=[EntityInput(name=people[1], type="person", aliases=[people[1].split()[0]])],
        relations=[RelationInput(source=people[0], type="knows", target=people[1])],
        **fields,
    )


async def retried(call: Callable[..., Awaitable[Any]], *args: Any) -> None:
    """Retry, as callers do after a conflict with others."""
    for _ in range(40):
        try:
            await call(*args)
        except Conflict:
            continue
        return
    raise AssertionError("others were in the way forty times")


async def test_nobody_waits_in_a_circle_and_nothing_is_lost(processes: list[Ingest], database_url: str) -> None:
    """Shared ids, entities and sessions in different orders; legs and turns are consistent afterwards."""
    names = [*SHARED, *(f"old{at}" for at in range(30))]
    await processes[0].add("n", [memory(name, random.Random(name)) for name in names])
    deadlocks_before = deadlocks(database_url)

    async def write(writer: int) -> None:
        rng, ingest = random.Random(writer), processes[writer % 2]
        for at in range(ROUNDS):
            own = [memory(f"w{writer} {at} {number}", rng, supersedes=rng.choice(SHARED)) for number in range(4)]
            batch = own + [memory(name, rng) for name in rng.sample(SHARED, 5)]
            rng.shuffle(batch)
            await retried(ingest.add, "n", batch)

    async def delete() -> None:
        for at in range(15):
            await retried(processes[at % 2].delete, "n", f"old{at}")
        gone = Filters(speaker=["nobody"], session_id=["s", "t"])
        assert await processes[0].delete_many("n", filters=gone) == 0

    async def patch() -> None:
        rng = random.Random("patch")
        for at in range(15, 30):
            change = MemoryPatch(text=f"{rng.choice(PEOPLE)} wrote to Zoe{at}.", session_id=rng.choice("st"))
            await retried(processes[at % 2].patch, "n", f"old{at}", change)

    async with asyncio.timeout(120):
        await asyncio.gather(*map(write, range(8)), delete(), patch())
    written = [f"w{writer} {at} {number}" for writer in range(8) for at in range(ROUNDS) for number in range(4)]
    texts = check_legs(database_url)
    assert texts.keys() == {*SHARED, *(f"old{at}" for at in range(15, 30)), *written}
    assert deadlocks(database_url) == deadlocks_before


async def test_deleting_all_that_was_written_leaves_nothing(processes: list[Ingest], database_url: str) -> None:
    """Concurrent writers and removers of the same entities, until nothing mentions them any more."""

    async def churn(writer: int) -> None:
        rng, ingest = random.Random(writer), processes[writer % 2]
        for at in range(ROUNDS):
            names = [f"w{writer} {at} {number}" for number in range(4)]
            for _ in range(2):  # the second time with other entities
                await retried(ingest.add, "n", [memory(name, rng) for name in names])
            rng.shuffle(names)
            for name in names:
                await retried(ingest.delete, "n", name)

    deadlocks_before = deadlocks(database_url)
    async with asyncio.timeout(120):
        await asyncio.gather(*map(churn, range(8)))
    assert check_legs(database_url) == {}
    with psycopg.connect(database_url) as db:
        for table in ("entity", "entity_alias", "entity_token", "mention", "relation", "turn", "bm25_tail"):
            assert db.execute(f"select count(*) from {table}").fetchone() == (0,), table
    assert deadlocks(database_url) == deadlocks_before
    with pytest.raises(NotFound):
        await processes[0].delete("n", "w0 0 0")


def deadlocks(database_url: str) -> int:
    """The number of deadlocks in the database so far."""
    with psycopg.connect(database_url, autocommit=True) as db:
        db.execute("select pg_stat_force_next_flush()")
        row = db.execute("select deadlocks from pg_stat_database where datname = current_database()").fetchone()
        assert row is not None
        return int(row[0])


def check_legs(database_url: str) -> dict[str, str]:
    """Compare the legs' data with the stored memories; returns their texts by id."""
    with psycopg.connect(database_url) as db:
        rows = db.execute("select id, doc, text, speaker from memory").fetchall()
        docs = {doc for _, doc, *_ in rows}
        assert {doc for (doc,) in db.execute("select doc from bm25_tail").fetchall()} == docs
        mentions = set(db.execute("select doc, entity from mention").fetchall())
        assert {doc for doc, _ in mentions} == docs
        assert {(doc, entity_id(normalize(speaker))) for _, doc, _, speaker in rows} <= mentions
        entities = {entity for (entity,) in db.execute("select entity from entity").fetchall()}
        assert {entity for _, entity in mentions} == entities, "an entity is one that a memory mentions"
        for table in ("entity_alias", "entity_token"):
            assert {entity for (entity,) in db.execute(f"select entity from {table}").fetchall()} <= entities
        related = db.execute("select doc, source, target from relation").fetchall()
        assert {(doc, end) for doc, *ends in related for end in ends} <= mentions
        told = db.execute("select distinct unnest(docs) from memory_change").fetchall()
        assert docs <= {doc for (doc,) in told}, "every change is told to the indexes"
        unmarked = db.execute("""
            select old.id from memory old join supersession x on x.old = old.id
            join memory new on new.doc = x.doc and new.id <> old.id
            group by old.id, old.superseded_at having old.superseded_at is distinct from min(new.created_at)
        """).fetchall()
        assert unmarked == [], "whoever is superseded knows it"
    texts = {memory_id: (f"{speaker}: {text}") for memory_id, _, text, speaker in rows}
    check_turns(database_url, texts)
    return texts
