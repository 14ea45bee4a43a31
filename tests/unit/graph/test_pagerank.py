"""Walks over graphs small enough to check by hand, and the spread to the turns beside."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.adjacency import Adjacency
from graph.forward_chaining import StatedRelation
from graph.inference import JoinedEdge
from graph.neighbourhood import Bounds, GraphView, Neighbourhood
from graph.paths import Link
from graph.resolution import Seed
from retrieval.legs.graph import spread_to_neighbours
from tests.plain_walk import by_networkx, pagerank

ANN, BOB, CHOIR, ROME = 1, 2, 3, 4
NAMES = {ANN: "Ann", BOB: "Bob", CHOIR: "choir", ROME: "Rome"}
FAR = Bounds(time_s=10)


def seed(entity: int, score: float = 1.0, mentions: int = 2) -> Seed:
    return Seed(entity, NAMES[entity], NAMES[entity].lower(), score, "exact", mentions)


def view(*mentions: tuple[int, int, float], memories: int = 10) -> GraphView:
    """A graph of entity, memory and weight in which everything may be seen."""
    entities, docs, weights = zip(*mentions, strict=True) if mentions else ((), (), ())
    edges = np.array(entities, np.int64), np.array(docs, np.int64), np.array(weights, np.float32)
    return GraphView(Adjacency(edges, []), memories, np.ones(max(docs, default=0) + 1, np.bool_))


def begun(seen: GraphView, *seeds: Seed, bounds: Bounds = FAR) -> Neighbourhood:
    near = Neighbourhood(seeds, seen.memories, bounds)
    near.begin(seen)
    return near


def activations(near: Neighbourhood) -> dict[int, float]:
    docs, found = near.activations()
    return dict(zip(docs.tolist(), found.tolist(), strict=True))


def names(path: tuple[Link, ...]) -> list[str]:
    return [NAMES[link.entity] for link in path]


@pytest.mark.parametrize("memories_too", [False, True])
@pytest.mark.parametrize("seed_number", range(8))
def test_walkers_step_by_step_agree_with_networkx(seed_number: int, memories_too: bool) -> None:
    """With the same personalization on entities alone, where some are mentioned by nobody, and on both sides."""
    random = np.random.default_rng(seed_number)
    weights = random.random((30, 12)) * (random.random((30, 12)) < 0.2)
    restart = random.random(12) * (random.random(12) < 0.5)
    restart[0] = 0.5
    memory_restart = np.zeros(30)
    if memories_too:
        weights[:, weights.sum(axis=0) == 0] = 0.5  # networkx sends a walker who is stuck anywhere back to both sides
        memory_restart = random.random(30) * (random.random(30) < 0.3) * (weights.sum(axis=1) > 0)
    total = restart.sum() + memory_restart.sum()
    restart, memory_restart = restart / total, memory_restart / total
    expected = by_networkx(weights, restart, memory_restart)
    assert pagerank(weights, restart, memory_restart) == pytest.approx(expected, abs=1e-6)


def test_a_walk_by_hand() -> None:
    """Two memories of one entity, five sixths of the restart at it and one at the first memory.

    e = (1 - d) 5/6 + d (m1 + m2), m1 = (1 - d) / 6 + d e / 2, m2 = d e / 2 with d = 1/2 give
    e = (5/12 + 1/24) / (3/4) = 11/18, m2 = 11/72 and m1 = 17/72.
    """
    near = begun(view((ANN, 5, 1.0), (ANN, 6, 1.0)), seed(ANN))
    near.anchor({5: 7.0})
    assert activations(near) == pytest.approx({5: 1.0, 6: 11 / 17})


def test_a_memory_of_both_seeds_comes_first() -> None:
    seen = view((ANN, 100, 1.0), (ANN, 101, 1.0), (BOB, 101, 1.0), (BOB, 102, 1.0))
    ranked = list(activations(begun(seen, seed(ANN), seed(BOB))).items())
    assert ranked[0] == (101, 1.0)
    assert [doc for doc, _ in ranked[1:]] == [100, 102]


def test_paths_go_from_the_seed_over_the_memories_walked_through() -> None:
    lives = JoinedEdge(ROME, CHOIR, "in", True, 1.0, (StatedRelation(CHOIR, "in", ROME, 101),), None)
    seen = view((ANN, 100, 1.0), (CHOIR, 100, 1.0), (CHOIR, 101, 1.0), (ROME, 102, 1.0))
    near = begun(seen, seed(ANN))
    assert near.onward(seen, near.best(4), {}, entities=4, from_anchors=False)
    assert near.onward(seen, near.best(4), {ROME: lives}, entities=4, from_anchors=False)
    assert names(near.path(100)) == ["Ann"]
    assert names(near.path(101)) == ["Ann", "choir"]
    ann, choir, rome = near.path(102)
    assert (ann.through, choir.through, choir.tied, rome.through) == (None, 100, True, None)
    assert rome.joined_by == lives


def test_a_path_from_an_anchor_begins_at_what_it_names() -> None:
    seen = view((ANN, 100, 1.0), (CHOIR, 200, 1.0), (CHOIR, 201, 1.0), (ROME, 201, 1.0), (ROME, 202, 1.0))
    near = begun(seen, seed(ANN))
    near.anchor({200: 0.5, 100: 1.0})
    assert near.onward(seen, {200: 0.5, 100: 1.0}, {}, entities=4, from_anchors=True)
    assert [(NAMES[link.entity], link.through, link.tied) for link in near.path(201)] == [("choir", 200, False)]
    assert near.path(200) == ()  # the anchor itself
    assert near.onward(seen, {201: 1.0}, {}, entities=4, from_anchors=False)
    assert [(NAMES[link.entity], link.through, link.tied) for link in near.path(202)] == [
        ("choir", 200, False),
        ("Rome", 201, True),
    ]


def test_the_restart_is_shared_by_strength() -> None:
    """Between two seeds that nothing joins; d plays no part, as the walkers of each stay where they are."""
    near = begun(view((ANN, 100, 1.0), (BOB, 101, 1.0)), seed(ANN, 1.0), seed(BOB, 0.25))
    assert activations(near) == pytest.approx({100: 1.0, 101: 0.25})


def test_seeds_bridges_and_anchors_have_their_shares() -> None:
    """Half of it, a quarter and a tenth, before they are scaled to sum to 1.

    Each entity has one memory of its own but for the anchor's: m = d e for Ann's with e = (1 - d) .5 + d m, so that
    m = 1/3 of .5; and m = d e + (1 - d) .1 for the anchor with e = (1 - d) .25 + d m, so that m = (.25 + .2) / 3.
    """
    seen = view((ANN, 100, 1.0), (CHOIR, 300, 1.0), (CHOIR, 7, 1.0))
    near = begun(GraphView(seen.graph, 10, np.arange(301) != 7), seed(ANN))
    near.anchor({300: 3.0})
    assert near.onward(GraphView(seen.graph, 10, np.arange(301) != 7), {300: 3.0}, {}, entities=4, from_anchors=True)
    assert activations(near) == pytest.approx({100: 1.0, 300: (0.25 + 0.2) / 0.5})


def test_anchors_alone_carry_the_whole_restart() -> None:
    seen = view(memories=10)
    near = Neighbourhood([], 10, FAR)
    near.anchor({100: 1.0, 101: 3.0})
    assert activations(near) == {101: 1.0, 100: pytest.approx(1 / 3)}
    assert not near.onward(seen, {100: 1.0, 101: 3.0}, {}, entities=4, from_anchors=True)
    assert list(activations(near)) == [101, 100]
    assert near.path(100) == ()


def test_a_neighbourhood_of_nothing() -> None:
    near = Neighbourhood([], 0, FAR)
    assert (near.docs, near.entities, near.best(3), activations(near)) == ([], [], {}, {})
    assert not near.onward(view(memories=0), {}, {}, entities=4, from_anchors=False)


def test_no_more_nodes_than_allowed_and_the_best_stay() -> None:
    seen = view((ANN, 100, 0.1), (ANN, 101, 0.9), (ANN, 102, 0.5))
    near = begun(seen, seed(ANN), bounds=Bounds(nodes=3))
    assert near.docs == [101, 102]
    assert near.room == 0
    near.anchor({300: 1.0, 101: 0.5})
    assert near.docs == [101, 102]


@given(
    st.dictionaries(st.integers(0, 20), st.floats(0.01, 1), min_size=1, max_size=12),
    st.lists(st.integers(-1, 20), min_size=42, max_size=42),
    st.lists(st.booleans(), min_size=21, max_size=21),
    st.integers(0, 5),
    st.sampled_from([0.1, 0.25, 1.0]),
)
def test_a_share_goes_to_those_beside(
    near: dict[int, float], links: list[int], seen: list[bool], passing: int, share: float
) -> None:
    """Of the first few, to the one before and the one after, whether or not these are near themselves."""
    expected = dict(near)
    for side in (links[:21], links[21:]):
        for doc in list(near)[:passing]:
            if side[doc] >= 0:
                expected[side[doc]] = expected.get(side[doc], 0.0) + share * near[doc]
    docs, activations = spread_to_neighbours(
        np.array(list(near), np.int64), np.array(list(near.values())), share=share, passing=passing,
        links=(np.array(links[:21], np.int32), np.array(links[21:], np.int32)), eligible=np.array(seen),
    )  # fmt: skip
    assert list(zip(docs.tolist(), activations.tolist(), strict=True)) == [
        (doc, pytest.approx(activation / (1 + 2 * share))) for doc, activation in expected.items() if seen[doc]
    ]
