"""A small namespace read in one statement: the same index as in steps, and which queries may skip its check."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import AsyncConnection

from retrieval.errors import NotFound, StoreUnavailable
from retrieval.index import namespace_index as indexes
from retrieval.index import small_namespaces
from retrieval.index.namespace_index import NamespaceIndex
from retrieval.index.query_vectors import QueryVectors
from retrieval.index.snapshot import NamespaceSnapshot
from retrieval.store import namespaces
from retrieval.store.pool import Pool
from retrieval.text.analysis import analyze, term_id
from retrieval.types.memory import EntityInput, RelationInput
from retrieval.types.namespace import NamespaceSettings
from tests.examples import share_of_examples
from tests.integration.index.test_registry import (
    ACTIONS,
    NAMES,
    TERMS,
    Process,
    Statements,
    act,
    columns_of,
    graph_of,
    memory,
    postings_of,
    process,
    two,
)

__all__ = ["process", "two"]

SETTINGS = NamespaceSettings()


async def entities_of(conn: AsyncConnection[Any], ns: int) -> list[int]:
    rows = await conn.execute("select entity from entity where ns = %s order by entity", (ns,))
    return [entity for (entity,) in await rows.fetchall()]


def parts_of(index: NamespaceIndex, entities: Sequence[int]) -> dict[str, object]:
    """All data of an index except vectors and postings."""
    arrays = [column.values.tolist() for column in index.memories._arrays if index.memories.count]
    return {
        "ns": index.ns,
        "memories": columns_of(index.memories),
        "columns": arrays,
        "speakers": index.memories.speakers_named("Bo and Zoë met."),
        "graph": graph_of(index.graph, index.memories, entities),
    }


async def assert_as_in_steps(pool: Pool, name: str) -> None:
    """Each part of the one index is that of the other."""
    async with pool.connection() as conn:
        found = await namespaces.find(conn, name)
        entities = await entities_of(conn, found.ns)
        loaded = await small_namespaces.read(conn, name, TERMS)
        in_steps = await indexes.read(conn, found)
    assert loaded is not None
    assert in_steps is not None
    _, read = loaded
    assert read.namespace == found
    made = read.index
    assert parts_of(made, entities) == parts_of(in_steps, entities)
    docs = np.flatnonzero(made.memories.alive.values)
    assert made.vectors.count == len(docs)
    assert made.vectors.eligible_rows(made.memories.alive.values).missing.size == 0
    mine, theirs = QueryVectors(pool, made), QueryVectors(pool, in_steps)
    for vectors in (mine, theirs):
        await vectors.read(docs.tolist())
    np.testing.assert_array_equal(mine.context_vectors, theirs.context_vectors)
    np.testing.assert_array_equal(mine.text_vectors, theirs.text_vectors)
    expected = (await Process(pool).snapshot(name, [*TERMS, 1])).postings
    assert made.terms.missing(TERMS) == []
    assert postings_of(made.terms.postings(TERMS), made.memories.slots) == postings_of(expected, made.memories.slots)


@settings(max_examples=share_of_examples(0.4), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(ACTIONS, max_size=8))
async def test_it_is_the_mirror_that_is_made_in_steps(process: Process, steps: list[tuple[str, Any]]) -> None:
    """With turns, relations, aliases and deleted memories among them, packed and not, in any script."""
    name = next(NAMES)
    await process.ingest.add(name, [memory("ä", "北京?", speaker="Zoë", session_id="s"), memory("b", speaker="Bo")])
    for action, what in steps:
        await act(process, name, action, what)
    await assert_as_in_steps(process.pool, name)


async def test_a_namespace_without_memories_is_read_too(process: Process) -> None:
    """One that never had any, and one whose were all deleted."""
    async with process.pool.connection() as conn:
        await namespaces.put(conn, "never", SETTINGS)
    await process.ingest.add("n", [memory("a", session_id="s"), memory("b", session_id="s")])
    for id_ in ("a", "b"):
        await process.ingest.delete("n", id_)
    for name in ("never", "n"):
        await assert_as_in_steps(process.pool, name)
        assert (await process.snapshot(name)).index.memories.count == 0


async def test_a_large_one_is_none(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the ordinals it has assigned; nor is one that does not exist."""
    await process.ingest.add("n", [memory("a"), memory("b")])
    monkeypatch.setattr(small_namespaces, "MOST_ORDINALS", 1)
    async with process.pool.connection() as conn:
        assert await small_namespaces.read(conn, "n", TERMS) is None
        assert await small_namespaces.read(conn, "absent", TERMS) is None
    assert await process.ids("boats") == {"a", "b"}
    with pytest.raises(NotFound):
        await process.snapshot("absent")


# --- the first query


async def test_the_first_query_asks_once(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its terms come with the index, and the vectors; the second one asks whether something changed."""
    await process.ingest.add("n", [memory("a", entities=[EntityInput(name="Ida")], session_id="s"), memory("b")])
    statements = Statements(monkeypatch)
    snapshot = await process.snapshot()
    assert len(statements.sent) == 1
    assert await process.vectors(snapshot)
    assert len(statements.sent) == 1
    expected = state_of(snapshot)
    assert state_of(await process.snapshot()) == expected
    assert len(statements.sent) == 2


def state_of(snapshot: NamespaceSnapshot) -> Mapping[str, object]:
    return {
        "namespace": snapshot.namespace,
        "memories": columns_of(snapshot.index.memories),
        "postings": postings_of(snapshot.postings, snapshot.index.memories.slots),
    }


async def test_a_namespace_of_another_language_has_its_own_terms(process: Process) -> None:
    """Terms of the default language, which came with the index, are not used instead."""
    async with process.pool.connection() as conn:
        await namespaces.put(conn, "n", NamespaceSettings(language="german"))
    await process.ingest.add("n", [memory("a", "Die Häuser am Hafen.")])

    def terms(language: str) -> list[int]:
        return [term_id(term) for term in analyze("Haus Häuser Hafens", language)]

    snapshot = await process.indexes.current("n", terms)
    assert snapshot.namespace.settings.language == "german"
    assert set(snapshot.postings.terms) == {term_id(term) for term in analyze("Häuser Hafen", "german")}


async def test_who_comes_while_it_is_made_sees_what_was_written_meanwhile(
    two: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The load began before the write: the query that started it need not see the write, later ones must."""
    process, other = two
    await process.ingest.add("n", [memory("a")])
    is_read, may_end = asyncio.Event(), asyncio.Event()
    real = small_namespaces.read

    async def held(*args: Any) -> Any:
        read = await real(*args)
        is_read.set()
        await may_end.wait()
        return read

    monkeypatch.setattr(small_namespaces, "read", held)
    first = asyncio.create_task(process.ids("boats"))
    await is_read.wait()
    await other.ingest.add("n", [memory("b")])
    await other.ingest.delete("n", "a")
    late = asyncio.create_task(process.ids("boats"))
    await asyncio.sleep(0.05)
    may_end.set()
    assert await first == {"a"}
    assert await late == {"b"}
    assert await process.ids("boats") == {"b"}


async def test_a_transaction_under_way_while_it_was_read_is_seen_once_it_has_ended(
    two: tuple[Process, Process],
) -> None:
    """Whatever has been written since by others."""
    process, other = two
    relation = RelationInput(source="Ida", type="in", target="Porto")
    await process.ingest.add("n", [memory("a"), memory("b", relations=[relation])])
    async with other.pool.connection() as conn, conn.transaction():
        await conn.execute("select from memory_change for update")
        await conn.execute("delete from memory where id = 'a'")
        await conn.execute("insert into memory_change (ns, docs) select ns, '{0}' from namespace where name = 'n'")
        assert await process.ids("boats") == {"a", "b"}
        await process.ingest.add("n", [memory("c")])
        assert await process.ids("boats") == {"a", "b", "c"}
    assert await process.ids("boats") == {"b", "c"}


# --- what may go wrong


async def blocked(pool: Pool, conn: AsyncConnection[Any]) -> int:
    """The process of the server that waits for a lock, once there is one."""
    while True:
        waiting = "select pid from pg_locks where not granted limit 1"
        if row := await (await conn.execute(waiting)).fetchone():
            return int(row[0])
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("how", ["cancelled", "terminated", "closed"])
async def test_a_reading_that_ends_early_leaves_everything_usable(two: tuple[Process, Process], how: str) -> None:
    """A cancelled query cancels no other; an error reaches all that waited, and the next query loads again."""
    process, other = two
    await process.ingest.add("n", [memory("a")])
    async with other.pool.connection() as conn:
        async with conn.transaction():
            await conn.execute("lock table mention in access exclusive mode")
            first, beside = (asyncio.create_task(process.ids("boats")) for _ in range(2))
            async with other.pool.connection() as third:
                pid = await blocked(other.pool, third)
                if how == "cancelled":
                    first.cancel()
                elif how == "terminated":
                    await third.execute("select pg_terminate_backend(%s)", (pid,))
                else:
                    await process.indexes.aclose()
                await asyncio.wait([first])
        outcomes = await asyncio.gather(first, beside, return_exceptions=True)
    expected = {
        "cancelled": (asyncio.CancelledError, set),
        "terminated": (StoreUnavailable, StoreUnavailable),
        "closed": (asyncio.CancelledError, asyncio.CancelledError),
    }[how]
    assert tuple(map(type, outcomes)) == expected
    for _ in range(3):
        assert await process.ids("boats") == {"a"}
    await process.ingest.add("n", [memory("b")])
    assert await process.ids("boats") == {"a", "b"}
