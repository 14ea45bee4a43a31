"""Walks over a graph in Postgres: bounded, and limited to what the query may see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

import numpy as np
import pytest
from msgspec.structs import replace
from psycopg import AsyncConnection

from graph.graph_rows import DocGraph, GivenEntity, GivenRelation
from graph.names import entity_id
from graph.neighbourhood import Bounds, GraphView, Neighbourhood
from graph.rules import Rule, symmetric, transitive
from graph.traversal import begin, walk
from tests.linking import link
from tests.plain_walk import by_networkx, restart
from tests.snapshot import add_graphs, graph_of

NS = 7
FAR = Bounds(time_s=10)
NAMES = {entity_id(name): name for name in ["ann", "choir", "rome", "tiber", "fish", "moon", "mars", "oslo"]}


async def add(conn: AsyncConnection[Any], mentions: dict[int, str], relations: Sequence[GivenRelation] = ()) -> None:
    """Memories by number with the entities they mention; the relations are the first one's."""
    first = next(iter(mentions))
    graphs = [
        DocGraph(doc, (), [GivenEntity(name) for name in names.split()], relations if doc == first else ())
        for doc, names in mentions.items()
    ]
    await add_graphs(conn, NS, graphs)


async def walked(
    conn: AsyncConnection[Any],
    query: str,
    *,
    anchors: Mapping[int, float] | None = None,
    rules: Sequence[Rule] = (),
    eligible: LiteralString = "true",
    bounds: Bounds = FAR,
    ns: int = NS,
    **params: Any,
) -> Neighbourhood:
    """A walk from a query's entities, if any, and from anchors."""
    row = await (await conn.execute("select count(*) from memory where ns = %s", (ns,))).fetchone()
    assert row is not None
    graph, seen = await graph_of(conn, ns, eligible, **params)
    seeds = await link(conn, ns, query)
    assert seeds or anchors
    view = GraphView(graph=graph, memories=row[0], eligible=seen)
    near = begin(view, seeds, rules=rules, bounds=bounds)
    walk(view, near, anchors or {}, rules=rules)
    return near


def docs(found: Neighbourhood) -> list[int]:
    ranked: list[int] = found.activations()[0].tolist()
    return ranked


def names(found: Neighbourhood, doc: int) -> list[str]:
    return [NAMES[step.entity] for step in found.path(doc)]


CHAIN = {1: "ann choir", 2: "choir rome", 3: "rome tiber", 4: "tiber fish", 5: "moon mars", 6: "mars moon"}


@pytest.mark.parametrize(
    ("hops", "reached"), [(0, [1]), (1, [1, 2]), (2, [1, 2, 3]), (3, [1, 2, 3, 4]), (4, [1, 2, 3, 4])]
)
async def test_each_hop_reaches_one_memory_further(conn: AsyncConnection[Any], hops: int, reached: list[int]) -> None:
    await add(conn, CHAIN)
    found = await walked(conn, "Ann", bounds=replace(FAR, max_hops=hops))
    assert docs(found) == reached
    assert found.activations()[1][0] == 1.0
    assert names(found, reached[-1]) == ["ann", "choir", "rome", "tiber"][: max(1, len(reached))]


async def test_a_path_tells_through_which_memories_it_goes(conn: AsyncConnection[Any]) -> None:
    """The first entity is the query's; each further one is tied to it by a memory."""
    await add(conn, CHAIN)
    path = (await walked(conn, "Ann")).path(3)
    assert [(NAMES[step.entity], step.through, step.tied) for step in path] == [
        ("ann", None, False),
        ("choir", 1, True),
        ("rome", 2, True),
    ]


async def test_a_memory_that_is_not_eligible_is_neither_returned_nor_walked_through(conn: AsyncConnection[Any]) -> None:
    await add(conn, CHAIN)
    found = await walked(conn, "Ann", eligible="not (m.tags && %(hidden)s::text[])", hidden=["t2"])
    assert docs(found) == [1]
    assert docs(await walked(conn, "Ann", eligible="not (m.tags && %(hidden)s::text[])", hidden=["t1"])) == []


async def test_a_relation_leads_where_no_memory_does(conn: AsyncConnection[Any]) -> None:
    """Its evidence is too far down among the seed's memories for the walk."""
    lives = GivenRelation("ann", "lives in", "oslo")
    await add(conn, {1: "ann", **{doc: "ann" for doc in range(2, 100)}, 100: "oslo fjord"}, [lives])
    bounds = replace(FAR, max_hops=1)
    found = await walked(conn, "Ann", bounds=bounds)
    assert names(found, 100) == ["ann", "oslo"]
    assert 100 in docs(found)
    told = found.path(100)[1].joined_by
    assert told is not None
    assert (told.relation, told.rule, [step.doc for step in told.derivation]) == ("lives in", None, [1])
    hidden = await walked(conn, "Ann", bounds=bounds, eligible="m.doc <> %(evidence)s", evidence=1)
    assert 100 not in docs(hidden)


@pytest.mark.parametrize(
    ("relations", "rule"),
    [
        ([("oslo", "twinned with", "ann")], symmetric("twinned with")),
        ([("ann", "part of", "norway"), ("norway", "part of", "oslo")], transitive("part of")),
    ],
)
async def test_a_rule_leads_on(conn: AsyncConnection[Any], relations: list[tuple[str, str, str]], rule: Rule) -> None:
    """To a memory that stated relations alone reach later or never; the path names the rule."""
    filler = {doc: "ann" for doc in range(2, 100)}
    await add(conn, {1: "ann", **filler, 200: "oslo fjord"}, [GivenRelation(*relation) for relation in relations])
    bounds = replace(FAR, max_hops=1)
    found = await walked(conn, "Ann", rules=[rule], bounds=bounds)
    assert names(found, 200) == ["ann", "oslo"]
    assert 200 in docs(found)
    if rule.name == "transitive":
        told = found.path(200)[1].joined_by
        assert told is not None
        assert (told.rule, len(told.derivation)) == ("transitive", 2)
        assert 200 not in docs(await walked(conn, "Ann", bounds=bounds))


async def test_a_relation_of_what_an_anchor_names_leads_on(conn: AsyncConnection[Any]) -> None:
    """In the hop after the one from the anchor to it."""
    lives = GivenRelation("choir", "in", "oslo")
    filler = {doc: f"choir filler{doc}" for doc in range(2, 100)}
    await add(conn, {1: "choir", **filler, 100: "choir", 200: "oslo fjord"}, [lives])
    for anchors in ({100: 1.0}, {99: 1.0, 100: 1.0}):
        found = await walked(conn, "What?", anchors=anchors)
        assert names(found, 200) == ["choir", "oslo"]
        assert 200 in docs(found)


async def test_an_inference_from_a_hidden_memory_leads_nowhere(conn: AsyncConnection[Any]) -> None:
    part = [GivenRelation("ann", "part of", "norway"), GivenRelation("norway", "part of", "oslo")]
    await add(conn, {1: "ann", 2: "ann", **{doc: "ann" for doc in range(3, 100)}, 200: "oslo fjord"}, part)
    seen = await walked(conn, "Ann", rules=[transitive("part of")], eligible="m.doc <> 1")
    assert 200 not in docs(seen)


async def test_a_hub_brings_its_latest_memories_and_no_more(conn: AsyncConnection[Any]) -> None:
    await add(conn, {doc: "ann" for doc in range(300)})
    found = await walked(conn, "Ann")
    assert sorted(docs(found)) == list(range(300 - Bounds().memories_per_seed, 300))


async def test_filters_hold_before_the_cut(conn: AsyncConnection[Any]) -> None:
    await add(conn, {doc: "ann" for doc in range(300)})
    assert docs(await walked(conn, "Ann", eligible="m.doc < %(top)s", top=3)) == [0, 1, 2]


async def test_a_memory_of_a_hub_and_a_rare_entity_beats_both_alone(conn: AsyncConnection[Any]) -> None:
    await add(conn, {0: "ann pottery", 1: "pottery", **{doc: "ann" for doc in range(2, 300)}})
    assert docs(await walked(conn, "Ann's pottery"))[0] == 0


async def test_the_walk_keeps_its_bounds(conn: AsyncConnection[Any]) -> None:
    """With anchors and without."""
    await add(conn, {doc: f"ann e{doc % 40} f{doc % 7}" for doc in range(400)})
    for anchors in ({}, {3: 1.0, 5: 0.5}, dict.fromkeys(range(200), 1.0)):
        found = await walked(conn, "Ann", anchors=anchors, bounds=replace(FAR, max_hops=4, nodes=60, enough=1_000))
        assert len(found.docs) + len(found.entities) <= 60
    narrow = replace(FAR, max_hops=1, entities_per_hop=3, memories_per_entity=5, memories_per_seed=5)
    for anchors in ({}, {3: 1.0, 5: 0.5}):
        few = await walked(conn, "Ann", anchors=anchors, bounds=narrow)
        assert len(few.entities) <= 1 + 3
        assert len(docs(few)) <= 5 * 4 + len(anchors)
    assert (await walked(conn, "Ann", bounds=Bounds(max_hops=4, time_s=0))).hops == 0


async def test_no_further_hop_once_there_are_enough(conn: AsyncConnection[Any]) -> None:
    """The first one is always walked."""
    await add(conn, CHAIN)
    assert docs(await walked(conn, "Ann", bounds=replace(FAR, max_hops=4, enough=1))) == [1, 2]
    assert docs(await walked(conn, "Ann", bounds=replace(FAR, max_hops=4, enough=3))) == [1, 2, 3]


async def test_anchors_lead_to_what_no_seed_reaches(conn: AsyncConnection[Any]) -> None:
    """And to the entities they mention; the path says so."""
    await add(conn, CHAIN)
    found = await walked(conn, "Ann", anchors={5: 1.0})
    assert {5, 6} < set(docs(found))
    assert 1 in docs(found)
    [step, *more] = found.path(6)
    assert (step.through, step.tied, more) == (5, False, [])
    assert NAMES[step.entity] in ("moon", "mars")


async def test_anchors_lead_without_seeds(conn: AsyncConnection[Any]) -> None:
    await add(conn, CHAIN)
    found = await walked(conn, "What?", anchors={2: 1.0})
    assert set(docs(found)) == {1, 2, 3, 4}
    assert found.entities[0] in {entity_id("choir"), entity_id("rome")}
    assert names(found, 4) == ["rome", "tiber"]
    assert set(docs(await walked(conn, "What?", anchors={2: 1.0}, bounds=replace(FAR, max_hops=1)))) == {1, 2, 3}


async def test_anchors_that_mention_nothing_are_returned_and_lead_nowhere(conn: AsyncConnection[Any]) -> None:
    await add(conn, {**CHAIN, 50: ""})
    found = await walked(conn, "What?", anchors={50: 1.0})
    assert (docs(found), found.activations()[1].tolist()) == ([50], [1.0])
    assert found.path(50) == ()
    beside = await walked(conn, "Ann", anchors={50: 1.0})
    assert {1, 50} <= set(docs(beside))
    assert docs(beside)[0] == 1


async def test_anchors_that_mention_nothing_do_not_end_the_walk(conn: AsyncConnection[Any]) -> None:
    """The query's entities lead on as they do without anchors."""
    await add(conn, {**CHAIN, 50: ""})
    assert {1, 2, 3} <= set(docs(await walked(conn, "Ann", anchors={50: 1.0})))


async def test_an_anchor_that_a_seed_names_is_tied_to_it(conn: AsyncConnection[Any]) -> None:
    await add(conn, CHAIN)
    found = await walked(conn, "Ann", anchors={1: 1.0})
    assert docs(found)[:2] == [1, 2]
    assert [(NAMES[step.entity], step.through, step.tied) for step in found.path(2)] == [
        ("ann", None, False),
        ("choir", 1, True),
    ]


async def test_a_stronger_anchor_pulls_more(conn: AsyncConnection[Any]) -> None:
    await add(conn, {1: "ann", 10: "moon mars", 11: "moon mars", 20: "fish fork", 21: "fish fork"})
    for strong, weak in ((10, 20), (20, 10)):
        ranked = docs(await walked(conn, "Ann", anchors={strong: 0.9, weak: 0.1}))
        assert ranked.index(strong + 1) < ranked.index(weak + 1)


async def test_a_hidden_memory_is_not_walked_through_from_an_anchor(conn: AsyncConnection[Any]) -> None:
    await add(conn, CHAIN)
    found = await walked(conn, "What?", anchors={1: 1.0}, eligible="m.doc <> %(hidden)s", hidden=2)
    assert docs(found) == [1]


@pytest.mark.parametrize("anchors", [{}, {3: 1.0}, {3: 0.7, 17: 0.2, 60: 0.1}, {62: 1.0}])
async def test_activation_is_personalised_pagerank_on_what_was_collected(
    conn: AsyncConnection[Any], anchors: dict[int, float]
) -> None:
    """The walk restarts at entities and memories, as the neighbourhood says."""
    mentions = {doc: f"ann e{doc % 5} f{doc % 7} g{doc % 11}" for doc in range(60)} | {60: "bob e1", 61: "bob f2"}
    await add(conn, mentions | {62: "lone"})
    near = await walked(conn, "Ann and Bob", anchors=anchors)
    seen = near.collected
    led = bool(anchors.keys() - {62})  # which names nothing that another memory names
    bridges = [led and hop == 1 for hop in seen.hops.tolist()]
    entities, memories = restart(seen.strengths.tolist(), 2, bridges, [anchors.get(doc, 0.0) for doc in near.docs])
    assert entities.sum() + memories.sum() == pytest.approx(1.0)
    assert {doc for doc, share in zip(near.docs, memories, strict=True) if share} == set(anchors)
    tied = seen.matrix.any(axis=1)  # walkers end at the others; networkx sends them back
    assert {*seen.docs[~tied].tolist()} <= {62}
    assert seen.matrix.any(axis=0).all()
    expected = np.array(by_networkx(seen.matrix[tied], entities, memories[tied]))
    assert near.hops > 0
    shares = dict(zip(*(column.tolist() for column in near.activations()), strict=True))
    assert shares.keys() == set(near.docs)
    found = np.array([shares[doc] for doc in seen.docs[tied].tolist()])
    assert found / found.sum() == pytest.approx(expected / expected.sum())
