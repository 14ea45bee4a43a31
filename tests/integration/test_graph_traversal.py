"""Walks over a graph in Postgres: bounded, and blind to what the query may not see."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, LiteralString

import networkx as nx
import pytest
from psycopg import AsyncConnection

from graph import store
from graph.linking import link
from graph.pagerank import DAMPING
from graph.store import DocGraph, GivenEntity, GivenRelation
from graph.traversal import Bounds, Walk, walk

NS = 7
_MEMORY: LiteralString = """
    insert into memory (ns, doc, id, kind, text, created_at, tags, metadata, entities, relations, fingerprint,
                        length, embedding)
    select %(ns)s, d, 'm' || d, 'memory', 'text', '2024-01-01Z', array['t' || d], '{}', '[]', '[]', '', 1,
           array_fill(0, array[384])::real[]::halfvec
    from unnest(%(docs)s::integer[]) as d
"""


@pytest.fixture
async def conn(database_url: str) -> AsyncIterator[AsyncConnection[Any]]:
    async with await AsyncConnection.connect(database_url) as connection:
        yield connection


async def add(conn: AsyncConnection[Any], mentions: dict[int, str], relations: Sequence[GivenRelation] = ()) -> None:
    """Memories by number with the entities they mention; the relations are the first one's."""
    await conn.execute(_MEMORY, {"ns": NS, "docs": list(mentions)})
    first = next(iter(mentions))
    docs = [
        DocGraph(doc, (), [GivenEntity(name) for name in names.split()], relations if doc == first else ())
        for doc, names in mentions.items()
    ]
    await store.write(conn, NS, docs)


async def walked(
    conn: AsyncConnection[Any],
    query: str,
    *,
    eligible: LiteralString = "true",
    bounds: Bounds | None = None,
    **params: Any,
) -> Walk:
    seeds = await link(conn, NS, query)
    assert seeds
    return await walk(conn, NS, seeds, eligible=eligible, params=params, bounds=bounds or Bounds(time_s=10))


def docs(found: Walk) -> list[int]:
    return [memory.doc for memory in found.reached]


CHAIN = {1: "ann choir", 2: "choir rome", 3: "rome tiber", 4: "tiber fish", 5: "moon mars", 6: "mars moon"}


@pytest.mark.parametrize(
    ("hops", "reached"), [(0, [1]), (1, [1, 2]), (2, [1, 2, 3]), (3, [1, 2, 3, 4]), (4, [1, 2, 3, 4])]
)
async def test_each_hop_reaches_one_memory_further(conn: AsyncConnection[Any], hops: int, reached: list[int]) -> None:
    await add(conn, CHAIN)
    found = await walked(conn, "Ann", bounds=Bounds(max_hops=hops, time_s=10))
    assert docs(found) == reached
    assert found.reached[0].activation == 1.0
    assert found.path(reached[-1]) == ("ann", "choir", "rome", "tiber")[: max(1, len(reached))]


async def test_a_memory_that_is_not_eligible_is_neither_returned_nor_walked_through(conn: AsyncConnection[Any]) -> None:
    await add(conn, CHAIN)
    found = await walked(conn, "Ann", eligible="not (m.tags && %(hidden)s::text[])", hidden=["t2"])
    assert docs(found) == [1]
    assert await walked_docs(conn, ["t1"]) == []


async def walked_docs(conn: AsyncConnection[Any], hidden: list[str]) -> list[int]:
    return docs(await walked(conn, "Ann", eligible="not (m.tags && %(hidden)s::text[])", hidden=hidden))


async def test_a_relation_leads_where_no_memory_does(conn: AsyncConnection[Any]) -> None:
    """Its evidence is too far down among the seed's memories to be walked through."""
    lives = GivenRelation("ann", "lives in", "oslo")
    await add(conn, {1: "ann", **{doc: "ann" for doc in range(2, 100)}, 100: "oslo fjord"}, [lives])
    bounds = Bounds(max_hops=1, time_s=10)
    assert (await walked(conn, "Ann", bounds=bounds)).path(100) == ("ann", "oslo")
    hidden = await walked(conn, "Ann", bounds=bounds, eligible="m.doc <> %(evidence)s", evidence=1)
    assert 100 not in docs(hidden)


async def test_a_hub_brings_its_latest_memories_and_no_more(conn: AsyncConnection[Any]) -> None:
    await add(conn, {doc: "ann" for doc in range(300)})
    found = await walked(conn, "Ann")
    assert sorted(docs(found)) == list(range(300 - Bounds().memories_per_entity, 300))


async def test_filters_hold_before_the_cut(conn: AsyncConnection[Any]) -> None:
    await add(conn, {doc: "ann" for doc in range(300)})
    assert docs(await walked(conn, "Ann", eligible="m.doc < %(top)s", top=3)) == [0, 1, 2]


async def test_a_memory_of_a_hub_and_a_rare_entity_beats_both_alone(conn: AsyncConnection[Any]) -> None:
    await add(conn, {0: "ann pottery", 1: "pottery", **{doc: "ann" for doc in range(2, 300)}})
    assert docs(await walked(conn, "Ann's pottery"))[0] == 0


async def test_the_walk_keeps_its_bounds(conn: AsyncConnection[Any]) -> None:
    await add(conn, {doc: f"ann e{doc % 40} f{doc % 7}" for doc in range(400)})
    found = await walked(conn, "Ann", bounds=Bounds(max_hops=4, nodes=60, time_s=10))
    assert len(found.neighbourhood.docs) + len(found.neighbourhood.entities) <= 60
    few = await walked(conn, "Ann", bounds=Bounds(max_hops=1, entities_per_hop=3, memories_per_entity=5, time_s=10))
    assert len(few.neighbourhood.entities) <= 1 + 3
    assert len(few.reached) <= 5 * 4
    assert (await walked(conn, "Ann", bounds=Bounds(max_hops=4, time_s=0))).hops == 0


async def test_activation_is_personalised_pagerank_on_what_was_collected(conn: AsyncConnection[Any]) -> None:
    await add(conn, {doc: f"ann e{doc % 5} f{doc % 7} g{doc % 11}" for doc in range(60)} | {60: "bob e1", 61: "bob f2"})
    found = await walked(conn, "Ann and Bob")
    near = found.neighbourhood
    graph = nx.Graph()
    for row, doc in enumerate(near.docs):
        for column, entity in enumerate(near.entities):
            if near.matrix[row, column] > 0:
                graph.add_edge(("d", doc), ("e", entity), weight=near.matrix[row, column])
    start = {("e", entity): share for entity, share in zip(near.entities, near.restart, strict=True)}
    oracle = nx.pagerank(graph, alpha=DAMPING, personalization=start, tol=1e-12, max_iter=500)
    top = max(share for (side, _), share in oracle.items() if side == "d")
    assert found.hops > 0
    assert {m.doc: m.activation for m in found.reached} == pytest.approx(
        {doc: oracle["d", doc] / top for doc in near.docs}, abs=1e-6
    )


async def test_another_namespace_is_out_of_reach(conn: AsyncConnection[Any]) -> None:
    await add(conn, {1: "ann choir"})
    await store.write(conn, NS + 1, [DocGraph(2, (), [GivenEntity("ann"), GivenEntity("choir")])])
    assert docs(await walked(conn, "Ann")) == [1]
