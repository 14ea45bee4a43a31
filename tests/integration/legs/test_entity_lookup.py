"""What queries are about is remembered until their namespace changes, and never longer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph.resolution import Seed
from retrieval.legs.entity_lookup import EntityLookup, PendingLookup
from retrieval.types.memory import EntityInput
from tests.integration.index.test_registry import ACTIONS, NAMES, Process, Statements, act, memory, process, two
from tests.linking import link

__all__ = ["process", "two"]

QUERY = "Did Ida Bo and Zoë paint the boats?"
LOOK_UP = "'rival'"


async def asked(entity_lookup: EntityLookup, process: Process, name: str = "n", query: str = QUERY) -> Sequence[Seed]:
    """What the query is about, as the pipeline asks for it."""
    with PendingLookup(entity_lookup, query, ahead=process.indexes.last(name)) as pending_lookup:
        snapshot = await process.snapshot(name)
        return await pending_lookup(snapshot.index, snapshot.namespace.next_doc)


def names_of(seeds: Sequence[Seed]) -> set[str]:
    return {each.name for each in seeds}


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.integers(0, 1), ACTIONS), max_size=8))
async def test_after_any_change_it_is_what_the_database_says(
    two: tuple[Process, Process], steps: list[tuple[int, tuple[str, Any]]]
) -> None:
    """Whichever process makes it."""
    name, linkers = next(NAMES), [EntityLookup(process.pool) for process in two]
    for who, (action, what) in [(0, ("add", [memory("first")])), *steps]:
        await act(two[who], name, action, what)
        for entity_lookup, each in zip(linkers, two, strict=True):
            seeds = [await asked(entity_lookup, each, name) for _ in range(2)]
            snapshot = await each.snapshot(name)
            async with each.pool.connection() as conn:
                fresh = await link(conn, snapshot.namespace.ns, QUERY)
            assert seeds == [fresh] * 2


async def test_a_query_that_comes_again_asks_only_what_has_changed(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    await process.ingest.add("n", [memory("one", entities=[EntityInput(name="Ida")])])
    entity_lookup, statements = EntityLookup(process.pool), Statements(monkeypatch)
    first = await asked(entity_lookup, process)
    assert await asked(entity_lookup, process) == first
    assert statements.count(LOOK_UP) == 1
    await process.ingest.add("n", [memory("two", "Zoë paints.", entities=[EntityInput(name="Zoë")])])
    assert names_of(await asked(entity_lookup, process)) >= {"Ida", "Zoë"}
    assert statements.count(LOOK_UP) == 1


async def test_namespaces_do_not_share_what_queries_name(process: Process) -> None:
    await process.ingest.add("n", [memory("one", entities=[EntityInput(name="Ida")])])
    await process.ingest.add("other", [memory("one", "Bo sails.", entities=[EntityInput(name="Bo")])])
    entity_lookup = EntityLookup(process.pool)
    names = [names_of(await asked(entity_lookup, process, name)) & {"Ida", "Bo"} for name in ("n", "other")]
    assert names == [{"Ida"}, {"Bo"}]


async def test_what_was_looked_up_before_a_change_is_not_remembered_after_it(process: Process) -> None:
    await process.ingest.add("n", [memory("one", entities=[EntityInput(name="Ida")])])
    entity_lookup, index = EntityLookup(process.pool), (await process.snapshot()).index
    looked_up = await entity_lookup.look_up(index, QUERY)
    await process.ingest.add("n", [memory("two", "Zoë paints.", entities=[EntityInput(name="Zoë")])])
    snapshot = await process.snapshot()
    entity_lookup.resolve(snapshot.index, looked_up, snapshot.namespace.next_doc)
    assert entity_lookup.remembered(snapshot.index, QUERY) is None
    assert names_of(await asked(entity_lookup, process)) >= {"Ida", "Zoë"}


async def test_no_more_is_kept_than_a_little(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrieval.legs.entity_lookup._MOST_KEPT", 2)
    await process.ingest.add("n", [memory("one", entities=[EntityInput(name="Ida")])])
    entity_lookup, index = EntityLookup(process.pool), (await process.snapshot()).index
    for query in ("Ida", "Bo", "Zoë"):
        await asked(entity_lookup, process, query=query)
    assert [entity_lookup.remembered(index, query) is None for query in ("Ida", "Bo", "Zoë")] == [True, False, False]
