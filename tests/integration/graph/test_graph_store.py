"""The graph in Postgres: written, read by links and walks, removed without a trace."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random
from typing import Any, LiteralString

import pytest
from psycopg import AsyncConnection
from psycopg.errors import TransactionRollback, UniqueViolation

from graph import store
from graph.extraction import extract
from graph.graph_rows import DocGraph, GivenEntity, GivenRelation
from retrieval.tasks import retried
from tests.linking import link

TABLES: tuple[LiteralString, ...] = ("entity", "entity_alias", "entity_token", "mention", "relation")
NS = 7


async def rows(conn: AsyncConnection[Any], sql: LiteralString) -> list[tuple[Any, ...]]:
    return list(await (await conn.execute(sql)).fetchall())


async def sizes(conn: AsyncConnection[Any]) -> list[int]:
    return [(await rows(conn, "select count(*) from " + table))[0][0] for table in TABLES]


def text(doc: int, content: str, **given: Any) -> DocGraph:
    return DocGraph(doc, extract(content), **given)


async def names(conn: AsyncConnection[Any], query: str) -> list[tuple[str, str]]:
    return [(seed.name, seed.how) for seed in await link(conn, NS, query)]


async def test_what_is_written_is_counted_and_removed_whole(conn: AsyncConnection[Any]) -> None:
    docs = [
        text(1, "I met Caroline Brown in Rome.", entities=[GivenEntity("Caroline Brown", "person", ["Caro"])]),
        text(2, "Rome is old.", relations=[GivenRelation("Caroline Brown", "visits", "Rome")]),
    ]
    await store.write(conn, NS, docs)
    entities, _, _, mentions, relations = await sizes(conn)
    assert relations == 1
    assert mentions >= entities >= 2
    await store.write(conn, NS, (), removed=[1])
    assert (await sizes(conn))[-1] == 1
    assert await rows(conn, "select * from entity_alias") == []
    await store.write(conn, NS, (), removed=[2])
    assert await sizes(conn) == [0, 0, 0, 0, 0]


async def test_many_names_are_read_in_a_thread(conn: AsyncConnection[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """So that other requests run meanwhile."""
    threads: set[int] = set()

    def spy(name: str) -> None:
        work = getattr(store, name)

        def noting(*args: Any) -> Any:
            threads.add(threading.get_ident())
            return work(*args)

        monkeypatch.setattr(store, name, noting)

    spy("GraphRows")
    spy("_links")
    entities = [GivenEntity(f"e{number}", "thing", [f"a{number} {at}" for at in range(32)]) for number in range(32)]
    await store.write(conn, NS, [DocGraph(1, entities=entities)])
    assert (await sizes(conn))[:2] == [32, 32 * 32]
    assert threads
    assert threading.get_ident() not in threads


async def test_a_batch_makes_what_single_writes_make(conn: AsyncConnection[Any], subtests: pytest.Subtests) -> None:
    """Similar names, typed and untyped, speakers, related, and aliases of each other, in any order."""
    known = ["Ana", "Bo", "Bobby", "Team Kestrel"]

    def entity() -> GivenEntity:
        return GivenEntity(
            chance.choice(known), chance.choice(["thing", "thing", "person"]), chance.choices(known, k=1)
        )

    def memory(doc: int) -> DocGraph:
        mentions = extract(f"We met {chance.choice(known)} there.", speaker=chance.choice([None, *known]))
        relations = [GivenRelation(chance.choice(known), "knows", chance.choice(known))] * chance.randrange(2)
        return DocGraph(doc, mentions, [entity() for _ in range(chance.randrange(2))], relations)

    statements: tuple[LiteralString, ...] = (
        "select key, type from entity where ns = %s order by entity",
        "select key, entity, doc, name from entity_alias where ns = %s order by key, entity, doc",
        "select entity, doc, weight from mention where ns = %s order by entity, doc",
        "select source, target, type, doc from relation where ns = %s order by source, target, type, doc",
    )
    for seed in range(30):
        chance = Random(seed)
        docs = [memory(doc) for doc in range(6)]
        with subtests.test(seed=seed):
            async with conn.transaction(force_rollback=True):
                await store.write(conn, NS, docs)
                for doc in docs:
                    await store.write(conn, NS + 1, [doc])
                for statement in statements:
                    batch, single = [await (await conn.execute(statement, [ns])).fetchall() for ns in (NS, NS + 1)]
                    assert batch == single


async def test_shared_entities_outlive_one_of_their_memories(conn: AsyncConnection[Any]) -> None:
    await store.write(conn, NS, [text(1, "I like Rome."), text(2, "We saw Rome.")])
    await store.write(conn, NS, (), removed=[1])
    assert ("Rome", "exact") in await names(conn, "Rome?")


async def test_a_memory_that_is_there_is_refused(conn: AsyncConnection[Any]) -> None:
    """Its ordinal is never used twice; a rewrite removes it first."""
    doc = text(1, "Ann likes Bob Dylan.", relations=[GivenRelation("Ann", "likes", "Bob Dylan")])
    await store.write(conn, NS, [doc])
    before = await sizes(conn)
    with pytest.raises(UniqueViolation):
        async with conn.transaction():
            await store.write(conn, NS, [doc])
    await store.write(conn, NS, (), removed=[1])
    await store.write(conn, NS, [doc])
    assert await sizes(conn) == before


async def test_given_types_and_names_win_over_found_ones(conn: AsyncConnection[Any]) -> None:
    await store.write(conn, NS, [text(1, "more kickboxing today")])
    await store.write(conn, NS, [DocGraph(2, entities=[GivenEntity("Kickboxing", "sport")])])
    await store.write(conn, NS, [text(3, "kickboxing again")])
    assert await rows(conn, "select name, type from entity where key = 'kickboxing'") == [("Kickboxing", "sport")]


async def test_a_given_type_stays_whoever_speaks_later(conn: AsyncConnection[Any]) -> None:
    await store.write(conn, NS, [DocGraph(1, entities=[GivenEntity("Caroline", "person")])])
    await store.write(conn, NS, [DocGraph(2, mentions=extract("It was good.", speaker="Caroline"))])
    assert await rows(conn, "select type from entity where key = 'caroline'") == [("person",)]
    await store.write(conn, NS, [DocGraph(3, entities=[GivenEntity("Caroline", "dog")])])
    assert await rows(conn, "select type from entity where key = 'caroline'") == [("dog",)]


async def test_what_is_given_without_a_type_takes_none_away(conn: AsyncConnection[Any]) -> None:
    """Otherwise the last writer would decide the type, and each change of it would be a change for all indexes."""
    await store.write(conn, NS, [DocGraph(1, mentions=extract("It was good.", speaker="Caroline"))])
    assert await store.write(conn, NS, [DocGraph(2, entities=[GivenEntity("Caroline")])]) == set()
    assert await rows(conn, "select type from entity where key = 'caroline'") == [("speaker",)]


async def test_a_mention_of_a_known_alias_counts_for_its_entity(conn: AsyncConnection[Any]) -> None:
    given = [GivenEntity("Caroline", "person", ["Caro"])]
    await store.write(conn, NS, [DocGraph(1, entities=given), text(2, "I met Caro there.")])
    await store.write(conn, NS, [text(3, "I saw Caro again.")])
    mentions = "select m.doc from mention m join entity e using (ns, entity) where e.key = 'caroline' order by doc"
    assert await rows(conn, mentions) == [(1,), (2,), (3,)]
    assert ("Caroline", "alias") in await names(conn, "Where is Caro?")


async def test_what_is_written_at_once_is_as_if_one_after_another(conn: AsyncConnection[Any]) -> None:
    docs = [text(1, "Kestrel runs it."), DocGraph(2, entities=[GivenEntity("Team Kestrel", "team", ["Kestrel"])])]
    docs += [text(3, "Kestrel again."), DocGraph(4, entities=[GivenEntity("Team kestrel", "crew")])]
    mentions: LiteralString = "select e.*, m.doc from mention m join entity e using (ns, entity) order by key, doc"
    await store.write(conn, NS, docs)
    at_once = await rows(conn, mentions)
    await store.write(conn, NS, (), removed=[1, 2, 3, 4])
    for doc in docs:
        await store.write(conn, NS, [doc])
    assert await rows(conn, mentions) == at_once
    mentioned = {(key, doc) for _, _, key, _, _, doc in at_once}
    assert {("kestrel", 1), ("team kestrel", 2), ("team kestrel", 3)} <= mentioned


async def test_a_relation_by_a_known_alias_is_that_of_its_entity(conn: AsyncConnection[Any]) -> None:
    given = [GivenEntity("Caroline", "person", ["Caro"])]
    await store.write(conn, NS, [DocGraph(1, entities=given)])
    stated = [GivenRelation("Caro", "works_for", "Acme"), GivenRelation("Caro", "known_as", "Caroline")]
    await store.write(conn, NS, [text(2, "Caro works for Acme.", relations=stated)])
    ends = "join entity s on s.entity = r.source join entity t on t.entity = r.target"
    found = await rows(conn, f"select s.key, r.type, t.key from relation r {ends}")
    assert found == [("caroline", "works_for", "acme")]
    assert not await rows(conn, "select from entity where key = 'caro'")


async def test_an_alias_of_two_entities_redirects_nothing(conn: AsyncConnection[Any]) -> None:
    given = [GivenEntity("Samuel", aliases=["Sam"]), GivenEntity("Samantha", aliases=["Sam"])]
    await store.write(conn, NS, [DocGraph(1, entities=given)])
    await store.write(conn, NS, [text(2, "I met Sam there.")])
    assert await rows(conn, "select doc from mention join entity using (ns, entity) where key = 'sam'") == [(2,)]


async def test_plural_and_singular_of_a_given_name_meet(conn: AsyncConnection[Any]) -> None:
    await store.write(conn, NS, [DocGraph(1, entities=[GivenEntity("support groups")]), text(2, "my support group")])
    assert (await names(conn, "which support group?"))[0] == ("support groups", "alias")
    found = "select doc from mention join entity using (ns, entity) where key = 'support groups' order by doc"
    assert await rows(conn, found) == [(1,), (2,)]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("Who is Tottenham Hotspur?", ("Tottenham Hotspur F.C.", "similar")),
        ("What did Melanie say?", ("Melanie Brown", "similar")),
        ("What did Mel say?", ("Melanie Brown", "similar")),
        ("what does melanie brown do", ("Melanie Brown", "exact")),
        ("Melanie Brown's house", ("Melanie Brown", "exact")),
    ],
)
async def test_names_are_linked_by_their_parts(conn: AsyncConnection[Any], query: str, first: tuple[str, str]) -> None:
    given = [GivenEntity("Melanie Brown"), GivenEntity("Tottenham Hotspur F.C."), GivenEntity("Oliver Stone")]
    await store.write(conn, NS, [DocGraph(1, entities=given)])
    assert (await names(conn, query))[0] == first


@pytest.mark.parametrize("query", ["", "the of and", "\U0001f389", "what is it?", "Zorro", "x" * 8_000, "a " * 4_000])
async def test_a_query_without_known_entities_links_nothing(conn: AsyncConnection[Any], query: str) -> None:
    await store.write(conn, NS, [text(1, "We saw Rome.")])
    assert await names(conn, query) == []


async def test_no_more_than_eight_seeds_the_best_with_one(conn: AsyncConnection[Any]) -> None:
    places = ["Rome", "Paris", "Oslo", "Lima", "Cairo", "Quito", "Delhi", "Tokyo", "Bern", "Riga"]
    await store.write(conn, NS, [DocGraph(1, entities=[GivenEntity(name) for name in places])])
    seeds = await link(conn, NS, " and ".join(places))
    assert len(seeds) == 8
    assert seeds[0].score == 1.0


async def _add(conn: AsyncConnection[Any], doc: int, said: str) -> None:
    """Write a memory, retrying if others removed its entities meanwhile, as `store.write` requires."""
    while True:
        try:
            await store.write(conn, NS, [text(doc, said)])
        except TransactionRollback:
            await conn.rollback()
        else:
            return await conn.commit()


async def _churn(url: str, worker: int, rounds: int) -> None:
    async with await AsyncConnection.connect(url) as conn:
        for number in range(rounds):
            doc = worker * 1_000 + number
            await _add(conn, doc, f"Rome, Paris and Oslo met Worker{number % 3} in Lima.")
            await store.write(conn, NS, (), removed=[doc])
            await conn.commit()


async def test_concurrent_writers_and_removers_leave_nothing_and_do_not_deadlock(database_url: str) -> None:
    await asyncio.gather(*(_churn(database_url, worker, 25) for worker in range(4)))
    async with await AsyncConnection.connect(database_url) as conn:
        assert await sizes(conn) == [0, 0, 0, 0, 0]


@asynccontextmanager
async def connections(url: str, count: int) -> AsyncIterator[list[AsyncConnection[Any]]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(await AsyncConnection.connect(url)) for _ in range(count)]


async def _wait_for_lock(conn: AsyncConnection[Any]) -> None:
    sql: LiteralString = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
    while (await rows(conn, sql))[0][0] == 0:
        await conn.rollback()
        await asyncio.sleep(0.01)


async def test_an_entity_removed_while_it_is_written_comes_back(database_url: str) -> None:
    """The writer waits for the remover's transaction, finds the row gone and inserts it again."""
    async with connections(database_url, 3) as (remover, writer, watcher):
        await store.write(remover, NS, [text(1, "We saw Rome.")])
        await remover.commit()
        await store.write(remover, NS, (), removed=[1])
        writing = asyncio.create_task(store.write(writer, NS, [text(2, "We saw Rome.")]))
        async with asyncio.timeout(60):
            await _wait_for_lock(watcher)
            await remover.commit()
            await writing
        await writer.commit()
        orphans = "select count(*) from mention m left join entity e using (ns, entity) where e.key is null"
        assert await rows(watcher, orphans) == [(0,)]
        assert await names(watcher, "Rome") == [("Rome", "exact")]


async def test_an_entity_mentioned_while_it_is_removed_stays(database_url: str) -> None:
    """The remover sees that it is held, does not wait, and leaves it."""
    async with connections(database_url, 2) as (remover, writer):
        await store.write(remover, NS, [text(1, "We saw Rome.")])
        await remover.commit()
        await store.write(writer, NS, [text(2, "We saw Rome.")])
        await store.write(remover, NS, (), removed=[1])
        await remover.commit()
        await writer.commit()
        assert await names(remover, "Rome") == [("Rome", "exact")]
        assert await rows(remover, "select doc from mention") == [(2,)]


async def test_who_describes_an_entity_anew_and_who_removes_it_do_not_wait_in_a_circle(database_url: str) -> None:
    """The remover has it first; the writer, which also holds it, waits for the remover before naming it."""
    async with connections(database_url, 3) as (remover, writer, watcher):
        await store.write(remover, NS, [text(1, "we saw rome")])
        await remover.commit()
        await remover.execute("select from entity for no key update")
        writing = asyncio.create_task(store.write(writer, NS, [DocGraph(2, entities=[GivenEntity("Rome", "city")])]))
        async with asyncio.timeout(60):
            await _wait_for_lock(watcher)
            await store.write(remover, NS, (), removed=[1])
            await remover.commit()
            await writing
        await writer.commit()
        assert await rows(watcher, "select name, type from entity") == [("Rome", "city")]
        assert await rows(watcher, "select doc from mention") == [(2,)]


async def test_two_who_exchange_what_they_mention_do_not_wait_in_a_circle(database_url: str) -> None:
    """Each removes the last mention of an entity that the other is about to mention."""
    async with connections(database_url, 2) as (one, other):
        await store.write(one, NS, [text(1, "We saw Rome."), text(2, "We saw Oslo.")])
        await one.commit()

        async def exchange(conn: AsyncConnection[Any], removed: int, doc: int, city: str) -> None:
            async def attempt() -> None:
                async with conn.transaction():
                    await store.write(conn, NS, [text(doc, f"We saw {city}.")], removed=[removed])

            await retried(attempt, (TransactionRollback,))

        for at in range(1, 41, 2):
            async with asyncio.timeout(60):
                await asyncio.gather(
                    exchange(one, at, at + 2, "Oslo" if at % 4 == 1 else "Rome"),
                    exchange(other, at + 1, at + 3, "Rome" if at % 4 == 1 else "Oslo"),
                )
        assert sorted(await rows(one, "select name from entity")) == [("Oslo",), ("Rome",)]


async def test_who_removes_an_entity_that_another_holds_after_all_starts_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL may grant both locks, so that the remover deletes an entity that the writer is about to mention."""
    monkeypatch.setattr(store, "_LOCK_UNUSED", store._LOCK_UNUSED.replace("for update", "for no key update"))
    async with connections(database_url, 3) as (remover, writer, watcher):
        await store.write(remover, NS, [text(1, "We saw Rome.")])
        await remover.commit()
        await store.write(writer, NS, [text(2, "We saw Rome.")])
        removing = asyncio.create_task(store.write(remover, NS, (), removed=[1]))
        async with asyncio.timeout(60):
            await _wait_for_lock(watcher)
            await writer.commit()
            with pytest.raises(TransactionRollback):
                await removing
        await remover.rollback()
        await store.write(remover, NS, (), removed=[1])
        await remover.commit()
        assert await names(watcher, "Rome") == [("Rome", "exact")]


async def test_who_meant_an_entity_by_an_alias_that_is_taken_away_starts_again(database_url: str) -> None:
    async with connections(database_url, 3) as (remover, writer, watcher):
        known = DocGraph(1, entities=[GivenEntity("Caroline Brown", aliases=["Caro"])])
        await store.write(remover, NS, [known])
        await remover.commit()
        await store.write(remover, NS, (), removed=[1])
        writing = asyncio.create_task(store.write(writer, NS, [text(2, "We met Caro.")]))
        async with asyncio.timeout(60):
            await _wait_for_lock(watcher)
            await remover.commit()
            with pytest.raises(TransactionRollback):
                await writing
        await writer.rollback()
        await store.write(writer, NS, [text(2, "We met Caro.")])
        await writer.commit()
        assert await names(watcher, "Caro") == [("Caro", "exact")]
