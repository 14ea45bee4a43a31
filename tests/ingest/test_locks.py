"""The locks that a writer holds until its transaction ends."""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import AsyncConnection

from graph import store as graph_store
from graph.names import entity_id
from retrieval.errors import Conflict, NotFound
from retrieval.ingest import transaction
from retrieval.ingest.service import Ingest
from retrieval.store import changes, entities, locking, memories, namespaces
from retrieval.store.entities import StoredEntity
from retrieval.store.memories import NewMemory
from retrieval.store.pool import Pool
from retrieval.store.visibility import by_id, matching
from retrieval.types.memory import EntityInput, MemoryInput, SharedPatch
from retrieval.types.namespace import NamespaceSettings
from retrieval.types.search import Filters
from tests.lock_waits import has_to_wait
from tests.turns import hashed

FREE: LiteralString = "select id from memory for update skip locked"


@pytest.fixture
async def ingest(pool: Pool) -> Ingest:
    """On a namespace `n` with the memories a, b and c; c has a tag."""
    ingest = Ingest(pool, hashed())
    texts = [MemoryInput(id=each, text=f"text {each}", tags=["tagged"] if each == "c" else []) for each in "abc"]
    await ingest.add("n", texts)
    return ingest


async def test_rows_that_are_locked_by_id_or_by_filter_are_nobody_else_s(ingest: Ingest, pool: Pool) -> None:
    async with pool.connection() as conn, pool.connection() as other:
        ns = (await namespaces.find(conn, "n")).ns
        async with conn.transaction():
            await locking.lock(conn, ns, by_id(["a"]))
            assert await (await other.execute(FREE)).fetchall() == [("b",), ("c",)]
            await locking.lock(conn, ns, matching(Filters(tags_any=["tagged"])))
            assert await (await other.execute(FREE)).fetchall() == [("b",)]


async def test_settings_that_are_put_while_the_namespace_is_deleted_are_of_a_new_one(
    ingest: Ingest, pool: Pool, database_url: str
) -> None:
    settings = NamespaceSettings(language="german")  # which the old one, with memories, would refuse
    async with pool.connection() as conn, pool.connection() as other:
        async with conn.transaction():
            await namespaces.delete(conn, "n")
            putting = asyncio.create_task(namespaces.put(other, "n", settings))
            await has_to_wait(putting, database_url)
        assert ((await putting).settings, (await putting).memories) == (settings, 0)


async def test_who_means_an_entity_that_is_being_taken_away_is_written_nevertheless(
    ingest: Ingest, pool: Pool, database_url: str
) -> None:
    """The entity of its alias is gone when the writer has waited for it, so it starts again."""
    await ingest.add("n", [MemoryInput(id="d", text="x", entities=[EntityInput(name="Ann Bo", aliases=["Caro"])])])
    async with pool.connection() as conn:
        ns = (await namespaces.find(conn, "n")).ns
        [(doc,)] = await (await conn.execute("select doc from memory where id = 'd'")).fetchall()
        async with conn.transaction():
            await graph_store.write(conn, ns, (), removed=[doc])
            writing = asyncio.create_task(ingest.add("n", [MemoryInput(id="e", text="We met Caro.")]))
            await has_to_wait(writing, database_url)
        assert [result.status for result in await writing] == ["created"]


async def test_who_adds_an_id_that_another_adds_at_that_moment_replaces_it(
    ingest: Ingest, pool: Pool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """And statements pipelined with it are not reported as ignored errors."""
    insert, others = memories.insert, [MemoryInput(id="d", text="Before.")]

    async def after_another(conn: AsyncConnection[Any], ns: int, rows: Mapping[int, NewMemory]) -> None:
        if others:
            await Ingest(pool, hashed()).add("n", [others.pop()])
            await insert(conn, ns, rows)
            select.select([conn.fileno()], [], [])  # until the database has refused it
        else:
            await insert(conn, ns, rows)

    monkeypatch.setattr(memories, "insert", after_another)
    [result] = await ingest.add("n", [MemoryInput(id="d", text="After.", supersedes="a")])
    assert (result.status, caplog.messages) == ("updated", [])


@pytest.mark.parametrize("by_hand", ["merge", "alias", "forgotten alias"])
async def test_of_two_who_take_the_last_uses_of_an_entity_away_one_removes_it(
    ingest: Ingest, pool: Pool, database_url: str, by_hand: str
) -> None:
    """A memory's mention, and an alias or merge by hand; neither sees the other's removal."""
    given = [EntityInput(name="Ann Bo"), EntityInput(name="Cid Do")]
    await ingest.add("n", [MemoryInput(id="d", text="x", entities=given)])
    ann, cid = entity_id("ann bo"), entity_id("cid do")
    async with pool.connection() as conn, pool.connection() as other:
        ns = (await namespaces.find(conn, "n")).ns
        [(doc,)] = await (await conn.execute("select doc from memory where id = 'd'")).fetchall()
        if by_hand == "merge":
            await entities.merge(conn, ns, ann, cid, "merge")
        else:
            await entities.change_aliases(conn, ns, ann, added=["Annie"], removed=())

        async def take_back() -> None:
            async with other.transaction():
                if by_hand == "merge":
                    await entities.separate(other, ns, "merge")
                elif by_hand == "alias":
                    await entities.change_aliases(other, ns, ann, added=(), removed=["Annie"])
                else:
                    await entities.forget_by_hand(other, ns, [ann])

        async with conn.transaction():
            await graph_store.write(conn, ns, (), removed=[doc])
            taking = asyncio.create_task(take_back())
            await has_to_wait(taking, database_url)
        await taking
        assert await (await conn.execute("select name from entity")).fetchall() == [("text",)]


@pytest.mark.parametrize("refused", ["merge", "alias"])
async def test_an_entity_goes_with_its_last_memory_while_a_change_of_it_is_refused(
    ingest: Ingest, pool: Pool, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    for memory_id, name in ("d", "Ann Bo"), ("e", "Cid Do"):
        await ingest.add("n", [MemoryInput(id=memory_id, text="x", entities=[EntityInput(name=name)])])
    ann, describe = entity_id("ann bo"), entities.describe

    async def meanwhile(conn: AsyncConnection[Any], ns: int, asked: Iterable[int]) -> dict[int, StoredEntity]:
        found = await describe(conn, ns, asked)
        await ingest.delete("n", "d")
        return found

    monkeypatch.setattr(entities, "describe", meanwhile)
    async with pool.connection() as conn:
        ns = (await namespaces.find(conn, "n")).ns
        changes_of: Mapping[str, Callable[[], Coroutine[Any, Any, object]]] = {
            "merge": lambda: entities.merge(conn, ns, ann, ann, "merge"),
            "alias": lambda: entities.change_aliases(conn, ns, ann, added=["Cid Do"], removed=()),
        }
        async with conn.transaction():
            with pytest.raises(Conflict):
                await changes_of[refused]()
        names = await (await conn.execute("select name from entity order by name")).fetchall()
    assert names == [("Cid Do",), ("text",)]


@pytest.mark.parametrize("write", ["add", "delete", "delete matching"])
async def test_a_namespace_is_not_deleted_while_it_is_written_to(
    ingest: Ingest, pool: Pool, database_url: str, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    """The deletion waits for the write, and deletes what it wrote."""
    reached, go_on = asyncio.Event(), asyncio.Event()
    record = changes.record

    async def holding_on(conn: AsyncConnection[Any], ns: int, docs: Collection[int], **described: Any) -> None:
        await record(conn, ns, docs, **described)
        reached.set()
        await go_on.wait()

    monkeypatch.setattr(changes, "record", holding_on)
    writes: Mapping[str, Callable[[], Coroutine[Any, Any, object]]] = {
        "add": lambda: ingest.add("n", [MemoryInput(id="d", text="text d")]),
        "delete": lambda: ingest.delete("n", "a"),
        "delete matching": lambda: ingest.delete_many("n", filters=Filters(tags_any=["tagged"])),
    }
    writing = asyncio.create_task(writes[write]())
    await reached.wait()
    async with pool.connection() as conn:
        deleting = asyncio.create_task(namespaces.delete(conn, "n"))
        await has_to_wait(deleting, database_url)
        go_on.set()
        await writing
        await deleting
    with psycopg.connect(database_url) as db:
        assert db.execute("select count(*) from memory").fetchone() == (0,)
        assert db.execute("select count(*) from memory_change").fetchone() == (0,)


async def test_a_namespace_that_is_gone_is_not_written_to(ingest: Ingest, pool: Pool) -> None:
    async with pool.connection() as conn:
        ns = (await namespaces.find(conn, "n")).ns
        await namespaces.lock(conn, ns)
        await namespaces.delete(conn, "n")
        with pytest.raises(NotFound):
            await namespaces.lock(conn, ns)
    with pytest.raises(NotFound):
        await ingest.delete("n", "a")


async def test_a_change_of_thousands_has_the_time_that_it_takes(
    ingest: Ingest, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rewriting ten thousand long ones, a statement of the graph alone takes half a minute."""
    with psycopg.connect(database_url) as db:
        db.execute("""
            create function is_patient() returns trigger language plpgsql as $$ begin
                assert current_setting('statement_timeout')::interval > '5 min';
                return null;
            end $$
        """)
        db.execute("create trigger is_patient after insert on mention execute function is_patient()")
    monkeypatch.setattr(transaction, "MAX_BATCH", 2)
    receipt = await ingest.update("n", SharedPatch(tags=["new"]), ids=["a", "b", "c"])
    assert receipt.updated == 3
