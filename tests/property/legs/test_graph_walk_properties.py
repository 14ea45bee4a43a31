"""The walk in C against a naive one, on any graph after any history, and within its bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.adjacency import Adjacency
from graph.forward_chaining import StatedRelation
from graph.inference import JoinedEdge
from graph.neighbourhood import Bounds, GraphView, Neighbourhood
from graph.resolution import Seed
from graph.traversal import begin, walk
from tests.graph_edges import edges_of
from tests.plain_walk import PlainWalk

MEMORIES = 24
ENTITIES = (-(2**62), -9, -1, 0, 2, 5, 7, 2**40, 2**62)
WEIGHTS = st.sampled_from([0.25, 0.5, 0.75, 1.0])
MENTIONS = st.dictionaries(
    st.integers(0, MEMORIES - 1), st.dictionaries(st.sampled_from(ENTITIES), WEIGHTS, max_size=5), max_size=MEMORIES
)


@dataclass(frozen=True)
class Case:
    """A graph, the visible memories, and a walk's start."""

    view: GraphView
    seeds: list[Seed]
    anchors: dict[int, float]
    joined: dict[int, JoinedEdge]
    bounds: Bounds


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Loaded at once and extended later, with memories replaced and removed."""
    first = draw(MENTIONS)
    graph = Adjacency(edges_of(first), [])
    for later in draw(st.lists(MENTIONS, max_size=3)):
        graph.add(edges_of(later), [], list(later))
    graph.remove(draw(st.lists(st.integers(0, MEMORIES + 3), max_size=4)))
    eligible = np.array(draw(st.lists(st.booleans() | st.just(True), min_size=MEMORIES, max_size=MEMORIES)))
    some = draw(st.lists(st.sampled_from(ENTITIES), unique=True, max_size=4))
    counts = graph.mentions(np.array(some, np.int64), cap=256).tolist()
    scores = draw(st.lists(st.sampled_from([0.2, 0.3, 0.7, 1.0]), min_size=len(some), max_size=len(some)))
    seeds = [Seed(e, "", "", score, "exact", count) for e, score, count in zip(some, scores, counts, strict=True)]
    anchors = draw(st.dictionaries(st.integers(0, MEMORIES - 1), st.floats(0.01, 2), max_size=4))
    others = draw(st.lists(st.sampled_from([e for e in ENTITIES if e not in some]), unique=True, max_size=2))
    told = (StatedRelation(0, "in", 1, 0),)
    joined = {e: JoinedEdge(e, some[0], "in", True, draw(st.floats(0.1, 1)), told, None) for e in others if some}
    few = st.integers(1, 4)
    bounds = Bounds(
        memories_per_seed=draw(few), memories_per_entity=draw(few), entities_per_hop=draw(few),
        memories_per_hop=draw(few), mentions_per_memory=draw(few), nodes=draw(st.integers(4, 40)),
        scanned_per_seed=draw(few) * 4, scanned_per_entity=draw(few) * 3, time_s=60,
    )  # fmt: skip
    return Case(GraphView(graph, draw(st.integers(0, 99)), eligible), seeds, anchors, joined, bounds)


def side_by_side(case: Case) -> tuple[Neighbourhood, PlainWalk]:
    """The same hops made twice: from the seeds, from the anchors, from the best so far."""
    near = Neighbourhood(case.seeds, case.view.memories, case.bounds)
    plain = PlainWalk(GraphView(case.view.graph, case.view.memories, case.view.eligible), case.seeds, case.bounds)
    if case.seeds:
        near.begin(case.view)
        plain.begin()
    if case.anchors:
        near.anchor(case.anchors)
        plain.anchor(case.anchors)
    for hop in range(3):
        assert near.room == case.bounds.nodes - len(plain.docs) - len(plain.entities)
        if near.room <= 0:
            break
        best, expected = near.best(case.bounds.memories_per_hop), plain.best(case.bounds.memories_per_hop)
        assert list(best) == list(expected)
        assert best == pytest.approx(expected)
        top, joined = (case.anchors or best, case.joined) if not hop else (best, {})
        entities, from_anchors = case.bounds.entities_per_hop, not hop and bool(case.anchors)
        went = near.onward(case.view, top, joined, entities=entities, from_anchors=from_anchors)
        assert went == plain.onward(top, joined, entities=entities, from_anchors=from_anchors)
    return near, plain


@given(cases())
def test_it_collects_what_a_plain_walk_collects(case: Case) -> None:
    near, plain = side_by_side(case)
    seen = near.collected
    assert seen.entities.tolist() == list(plain.entities)
    assert seen.hops.tolist() == [each.hop for each in plain.entities.values()]
    assert seen.strengths.tolist() == pytest.approx([each.strength for each in plain.entities.values()])
    assert sorted(near.docs) == sorted(plain.docs)
    rows = [plain.docs.index(doc) for doc in near.docs]
    assert seen.matrix == pytest.approx(plain.matrix()[rows])


@given(cases())
def test_activation_is_that_of_walkers_step_by_step(case: Case) -> None:
    """The best first, equals by ordinal."""
    near, plain = side_by_side(case)
    docs, activations = near.activations()
    assert dict(zip(docs.tolist(), activations.tolist(), strict=True)) == pytest.approx(plain.activations())
    ranked = list(zip((-activations).tolist(), docs.tolist(), strict=True))
    assert ranked == sorted(ranked)
    assert not ranked or ranked[0][0] == -1.0


@given(cases(), st.integers(0, 3))
def test_a_walk_keeps_its_bounds_and_every_memory_has_a_path(case: Case, hops: int) -> None:
    """Except an anchor without entities; hidden memories only appear as anchors."""
    rules = ()
    bounds = Bounds(nodes=case.bounds.nodes, max_hops=hops, enough=1_000, time_s=60)
    near = begin(case.view, case.seeds, rules=rules, bounds=bounds)
    walk(case.view, near, case.anchors, rules=rules)
    docs, activations = (column.tolist() for column in near.activations())
    assert len(near.docs) + len(near.entities) <= bounds.nodes
    assert near.memories == len(near.docs) == len(set(near.docs))
    assert all(0 < each <= 1 for each in activations)
    for doc in docs:
        path = near.path(doc)
        assert path or doc in case.anchors
        assert case.view.eligible[doc] or doc in case.anchors
        assert not path or path[0].through is None or path[0].through in case.anchors
        assert [link.tied for link in path[:1]] in ([], [False])
        assert len({link.entity for link in path}) == len(path)
    again = begin(case.view, case.seeds, rules=rules, bounds=bounds)
    walk(case.view, again, case.anchors, rules=rules)
    assert [column.tolist() for column in again.activations()] == [docs, activations]
    assert [again.path(doc) for doc in docs] == [near.path(doc) for doc in docs]
