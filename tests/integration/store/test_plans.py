"""Statements read only the rows they need, even if one namespace is large and most are small.

PostgreSQL plans a prepared statement for a namespace of the average size; in a large one such a plan may read all rows.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from retrieval.engine import Trivet
from retrieval.store import memories
from retrieval.store.visibility import by_id
from retrieval.types.memory import MemoryInput, MemoryPatch
from retrieval.types.search import ContextRequest
from tests.processes import until
from tests.serving import settings_for

TURNS = 1_200
SMALL = 300
LOADED = ("memory", "turn")
"""Tables that a process also reads in its first query, in one of two ways."""

READ = ("mention", "entity", "entity_token", "bm25_tail")
MOST_READ = 300
DAY = datetime(2024, 3, 1, 12, tzinfo=UTC)


def turn(number: int) -> MemoryInput:
    """A turn whose words nobody else says."""
    return MemoryInput(
        id=f"m{number}",
        text=f"Bob{number}a Smith{number}b went to Porto{number}c by boat.",
        kind="message",
        session_id=f"s{number // 20}",
        speaker="Ann",
        created_at=DAY + timedelta(minutes=number),
    )


@pytest.fixture
async def crowded(database_url: str) -> str:
    async with Trivet.open(settings_for(database_url)) as engine:
        await engine.add("large", [turn(number) for number in range(TURNS)])
        for number in range(SMALL):
            await engine.add(f"small{number}", [turn(0)])
    with psycopg.connect(database_url, autocommit=True) as db:
        db.execute("vacuum analyze")
        db.execute("do $$ begin execute format('alter database %I set plan_cache_mode = force_generic_plan', "
                   "current_database()); end $$")  # fmt: skip
    return database_url


async def wait_for_others(db: psycopg.Connection[Any]) -> None:
    """Wait until all other connections to the database have ended, and so reported their reads.

    In a thread: the event loop may hold an attempt to connect that was cancelled, until it goes on. The connection
    must not be in a transaction, which sees the same activity until its end.
    """
    assert db.autocommit
    others = "select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    await asyncio.to_thread(until, lambda: not db.execute(others).fetchall())


async def rows_read(url: str, first: int, times: int) -> dict[str, int]:
    """Index reads by table of a process that searches, changes and deletes some of the turns from a number on."""
    with psycopg.connect(url, autocommit=True) as db:
        await wait_for_others(db)
        db.execute("select pg_stat_reset()")
        async with Trivet.open(settings_for(url)) as engine:
            for number in range(first, first + times):
                await engine.context("large", ContextRequest(query="Who went by boat?"))
                await engine.patch("large", f"m{number}", MemoryPatch(text="I went by train."))
                await engine.delete("large", f"m{number + times}")
        await wait_for_others(db)
        found = db.execute("select relname, sum(idx_tup_read)::bigint from pg_stat_user_indexes group by 1")
        return dict(found.fetchall())


async def test_a_large_namespace_among_small_ones_is_not_read_for_a_few_of_its_rows(crowded: str) -> None:
    few, more = await rows_read(crowded, 100, 1), await rows_read(crowded, 200, 31)
    # Often enough that the varying reads of loading hardly matter.
    per_time = {table: (more[table] - few[table]) / 30 for table in (*LOADED, *READ)}
    assert all(more[table] > 0 for table in LOADED), more
    assert all(per_time[table] > 0 for table in READ), per_time
    assert all(read < MOST_READ for read in per_time.values()), per_time


async def test_memories_are_looked_up_though_there_were_none_when_that_was_planned(database_url: str) -> None:
    """A connection keeps the plan that it made for an empty table until the table is analysed."""
    async with Trivet.open(settings_for(database_url)) as engine, engine._pool.connection() as conn:
        await memories.read(conn, 1, by_id(["nobody"]))
        await engine.add("large", [turn(number) for number in range(SMALL)])
        assert len(await memories.read(conn, 1, by_id([f"m{number}" for number in range(SMALL)]))) == SMALL
    with psycopg.connect(database_url, autocommit=True) as db:
        await wait_for_others(db)
        statistics = "select seq_tup_read + idx_tup_fetch from pg_stat_user_tables where relname = 'memory'"
        [(read,)] = db.execute(statistics).fetchall()
    assert SMALL <= read < 20 * SMALL


def test_every_table_that_grows_with_namespaces_says_how_many_rows_to_expect_of_one(database_url: str) -> None:
    with psycopg.connect(database_url) as db:
        found = db.execute("""
            select relname from pg_class c join pg_attribute a on a.attrelid = c.oid
            where relnamespace = 'public'::regnamespace and relkind = 'r' and attname = 'ns'
                and attoptions is distinct from array['n_distinct=-0.001']
        """)
        assert {name for (name,) in found} == {"namespace", "journal", "job", "index_file"}
