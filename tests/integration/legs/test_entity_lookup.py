"""The entities of queries agree with the tables, and are cached until their namespace changes, never longer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph import adjacency
from graph.names import entity_id
from graph.resolution import Seed
from retrieval.errors import Conflict, NotFound
from retrieval.index import namespace_index
from retrieval.legs.base import SearchView
from retrieval.legs.entity_lookup import EntityLookup
from retrieval.store import changes, entities
from retrieval.types.memory import EntityInput
from retrieval.types.search import SearchRequest
from tests.examples import share_of_examples
from tests.integration.index.test_registry import ACTIONS, NAMES, Process, Statements, act, memory, process, two
from tests.linking import link

__all__ = ["process", "two"]

QUERY = "Did Ida Bo and Zoë paint the boats in Oporto?"
GIVEN = ("Ida", "Bo", "Zoë", "Porto", "boats", "harbour")
SAID = ("Oporto", "Zoë Bo", "paint", "boats")
BY_HAND = st.one_of(
    st.tuples(st.just("merge"), st.tuples(st.sampled_from(GIVEN), st.sampled_from(GIVEN))),
    st.tuples(st.just("separate"), st.just(None)),
    st.tuples(st.just("name"), st.tuples(st.sampled_from(GIVEN), st.sampled_from(SAID))),
    st.tuples(st.just("unname"), st.tuples(st.sampled_from(GIVEN), st.sampled_from(SAID))),
)
COMPLETE = "entity_token"


async def asked(entity_lookup: EntityLookup, process: Process, name: str = "n", query: str = QUERY) -> Sequence[Seed]:
    """The query's entities, as the graph leg requests them."""
    snapshot = await process.snapshot(name)
    return await entity_lookup.seeds(snapshot.index, query, snapshot.namespace.next_doc)


def names_of(seeds: Sequence[Seed]) -> set[str]:
    return {each.name for each in seeds}


async def act_by_hand(process: Process, name: str, action: str, what: Any) -> None:
    """Merge two entities, undo a merge, add or remove an alias, if possible."""
    async with process.pool.connection() as conn, conn.transaction():
        ns = (await process.snapshot(name)).namespace.ns
        match action:
            case "merge":
                key, target = (each.casefold() for each in what)
                with suppress(NotFound, Conflict):
                    await entities.merge(conn, ns, entity_id(key), entity_id(target), f"{key} as {target}")
            case "separate":
                row = await (await conn.execute("select min(merge) from entity_merge where ns = %s", (ns,))).fetchone()
                if row and row[0]:
                    await entities.separate(conn, ns, row[0])
            case "name":
                with suppress(NotFound):
                    root = entity_id(what[0].casefold())
                    await entities.change_aliases(conn, ns, root, added=[what[1]], removed=(), check_names=False)
            case "unname":
                removed = "delete from entity_alias where ns = %s and entity = %s and doc = -1 and key = %s"
                await conn.execute(removed, (ns, entity_id(what[0].casefold()), what[1].casefold()))
                await changes.record(conn, ns, [changes.ENTITIES])


@settings(max_examples=share_of_examples(0.6), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.integers(0, 1), ACTIONS | BY_HAND), max_size=10))
async def test_after_any_change_it_is_what_the_database_says(
    two: tuple[Process, Process], steps: list[tuple[int, tuple[str, Any]]]
) -> None:
    """Whichever process makes it."""
    name, lookups = next(NAMES), [EntityLookup(process.pool) for process in two]
    for who, (action, what) in [(0, ("add", [memory("first")])), *steps]:
        by_hand = action in ("merge", "separate", "name", "unname")
        await (act_by_hand if by_hand else act)(two[who], name, action, what)
        for entity_lookup, each in zip(lookups, two, strict=True):
            seeds = [await asked(entity_lookup, each, name) for _ in range(2)]
            snapshot = await each.snapshot(name)
            async with each.pool.connection() as conn:
                fresh = await link(conn, snapshot.namespace.ns, QUERY)
            assert seeds == [fresh] * 2


async def test_the_database_is_asked_only_about_beginnings_and_acronyms(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, until something changes."""
    given = [EntityInput(name=name) for name in ("Ida", "Gabriela", "United Nations")]
    await process.ingest.add("n", [memory("one", entities=given)])
    entity_lookup, statements = EntityLookup(process.pool), Statements(monkeypatch)
    assert names_of(await asked(entity_lookup, process, query="What did Ida say of the united nations?")) == {
        "Ida",
        "United Nations",
    }
    assert statements.count(COMPLETE) == 0
    for query, meant in (("What did Gabri say?", "Gabriela"), ("Who leads the UN?", "United Nations")):
        before = statements.count(COMPLETE)
        for _ in range(2):
            assert names_of(await asked(entity_lookup, process, query=query)) == {meant}
        assert statements.count(COMPLETE) == before + 1


async def test_namespaces_do_not_share_what_queries_name(process: Process) -> None:
    await process.ingest.add("n", [memory("one", entities=[EntityInput(name="Ida")])])
    await process.ingest.add("other", [memory("one", "Bo sails.", entities=[EntityInput(name="Bo")])])
    entity_lookup = EntityLookup(process.pool)
    names = [names_of(await asked(entity_lookup, process, name)) & {"Ida", "Bo"} for name in ("n", "other")]
    assert names == [{"Ida"}, {"Bo"}]


async def test_what_was_looked_up_while_something_changed_is_not_remembered(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change comes while the database is asked about an acronym."""
    await process.ingest.add("n", [memory("one", entities=[EntityInput(name="Ida")])])
    entity_lookup, query = EntityLookup(process.pool), "Did Ida meet Zoë at the UN?"

    async def change(*_: Any) -> list[Any]:
        monkeypatch.undo()
        await process.ingest.add("n", [memory("two", "Zoë paints.", entities=[EntityInput(name="Zoë")])])
        await process.snapshot()
        return []

    monkeypatch.setattr("retrieval.legs.entity_lookup.complete", change)
    assert names_of(await asked(entity_lookup, process, query=query)) == {"Ida"}
    assert names_of(await asked(entity_lookup, process, query=query)) == {"Ida", "Zoë"}


async def test_an_entity_is_gone_with_its_only_memory_although_a_search_still_runs(process: Process) -> None:
    """The search keeps the index's data of the memory that it may see."""
    given = {"one": "New York Times", "two": "New York", "three": "Ida"}
    await process.ingest.add("n", [memory(id_, entities=[EntityInput(name=given[id_])]) for id_ in given])
    entity_lookup, query = EntityLookup(process.pool), "Did Ida read the New York Times?"
    assert "New York Times" in names_of(await asked(entity_lookup, process, query=query))
    running = SearchView.from_request(await process.snapshot(), SearchRequest(query=query))
    await process.ingest.delete("n", "one")
    snapshot = await process.snapshot()
    async with process.pool.connection() as conn:
        expected = await link(conn, snapshot.namespace.ns, query)
    assert await asked(entity_lookup, process, query=query) == expected
    del running
    assert await asked(EntityLookup(process.pool), process, query=query) == expected


async def test_a_search_sees_a_merge_wholly_or_not_at_all(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one's check applies it, and reads edges meanwhile."""
    given = {"one": "Bob Smith", "two": "Robert"}
    await process.ingest.add("n", [memory(id_, entities=[EntityInput(name=given[id_])]) for id_ in given])
    snapshot, query, seeds = await process.snapshot(), "What did Smith say?", list[Sequence[Seed]]()
    size, read_edges = snapshot.namespace.next_doc, adjacency.read_edges
    before = await EntityLookup(process.pool).seeds(snapshot.index, query, size)
    async with process.pool.connection() as conn, conn.transaction():
        await entities.merge(conn, snapshot.index.ns, entity_id("bob smith"), entity_id("robert"), "m")

    async def asked_meanwhile(*args: Any, **options: Any) -> Any:
        seeds.append(await EntityLookup(process.pool).seeds(snapshot.index, query, size))
        return await read_edges(*args, **options)

    monkeypatch.setattr(namespace_index, "read_edges", asked_meanwhile)
    now = await asked(EntityLookup(process.pool), process, query=query)
    assert seeds == [before]
    assert now != before


async def test_no_more_is_kept_than_a_little(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrieval.legs.entity_lookup._CACHE_SIZE", 2)
    await process.ingest.add("n", [memory("one", entities=[EntityInput(name="Ida")])])
    entity_lookup, found = EntityLookup(process.pool), []
    for query in ("Ida", "Bo", "Zoë"):
        found.append(await asked(entity_lookup, process, query=query))
    again = [await asked(entity_lookup, process, query=query) for query in ("Zoë", "Bo", "Ida")]
    assert [one is other for one, other in zip(again, reversed(found), strict=True)] == [True, True, False]
