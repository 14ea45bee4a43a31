"""PageRank and paths on neighbourhoods small enough to check."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

from graph.adjacency import Edges
from graph.chaining import Stated
from graph.inference import JoinedEdge
from graph.linking import Seed
from graph.neighbourhood import Link, Met, Neighbourhood, Step
from graph.pagerank import DAMPING, bipartite_pagerank


def seed(entity: int, name: str, score: float = 1.0, mentions: int = 2) -> Seed:
    return Seed(entity, name, name.lower(), score, "exact", mentions)


def edges(*triples: tuple[int, int, float]) -> Edges:
    entities, docs, weights = zip(*triples, strict=True)
    return np.array(entities), np.array(docs), np.array(weights, dtype=float)


def none() -> Edges:
    return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)


NAMES = {1: "Ann", 2: "choir", 3: "Rome"}


def names(path: Sequence[Link]) -> list[str]:
    return [NAMES[link.met.entity] for link in path]


@pytest.mark.parametrize("memories_too", [False, True])
@pytest.mark.parametrize("seed_number", range(8))
def test_pagerank_agrees_with_networkx(seed_number: int, memories_too: bool) -> None:
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
    assert bipartite_pagerank(weights, restart, memory_restart) == pytest.approx(
        oracle(weights, restart, memory_restart), abs=1e-6
    )


def oracle(
    weights: NDArray[np.float64], restart: NDArray[np.float64], memory_restart: NDArray[np.float64]
) -> list[float]:
    docs, entities = weights.shape
    graph = nx.Graph()
    graph.add_nodes_from([("d", d) for d in range(docs)] + [("e", e) for e in range(entities)])
    graph.add_weighted_edges_from(
        (("d", d), ("e", e), weights[d, e]) for d in range(docs) for e in range(entities) if weights[d, e] > 0
    )
    start = {("e", e): restart[e] for e in range(entities)} | {("d", d): memory_restart[d] for d in range(docs)}
    rank = nx.pagerank(graph, alpha=DAMPING, personalization=start, tol=1e-12, max_iter=500)
    return [rank["d", d] for d in range(docs)]


def test_a_walk_by_hand() -> None:
    """Two memories of one entity, the restart half at it and half at the first memory.

    e = (1 - d) / 2 + d (m1 + m2), m1 = (1 - d) / 2 + d e / 2, m2 = d e / 2 with d = 1/2 give
    e = (1/4 + 1/8) / (3/4) = 1/2, m1 = 3/8 and m2 = 1/8.
    """
    rank = bipartite_pagerank(np.array([[1.0], [1.0]]), np.array([0.5]), np.array([0.5, 0.0]))
    assert rank == pytest.approx([3 / 8, 1 / 8])


def test_without_entities_memories_have_their_restart() -> None:
    """Walkers end at a memory without edges."""
    rank = bipartite_pagerank(np.zeros((2, 0)), np.zeros(0), np.array([0.75, 0.25]))
    assert rank == pytest.approx([(1 - DAMPING) * 0.75, (1 - DAMPING) * 0.25])


def test_a_memory_of_both_seeds_comes_first() -> None:
    near = Neighbourhood([seed(1, "Ann"), seed(2, "Bob")], 10, max_nodes=50)
    near.add(Step(near.frontier, edges((1, 100, 1.0), (1, 101, 1.0), (2, 101, 1.0), (2, 102, 1.0))))
    ranked = near.activations()
    assert ranked[0] == (101, 1.0)
    assert [doc for doc, _ in ranked[1:]] == [100, 102]


def test_paths_go_from_the_seed_over_the_memories_walked_through() -> None:
    lives = JoinedEdge(3, 2, "in", True, 1.0, (Stated(2, "in", 3, 101),), None)
    near = Neighbourhood([seed(1, "Ann")], 10, max_nodes=50)
    near.add(Step(near.frontier, edges((1, 100, 1.0))))
    near.add(Step([Met(2, 3, 1.0)], edges((2, 100, 1.0), (2, 101, 1.0)), dict(near.best(4))))
    near.add(Step([Met(3, 3, 1.0, lives)], edges((3, 102, 1.0)), dict(near.best(4))))
    assert names(near.path(100)) == ["Ann"]
    assert names(near.path(101)) == ["Ann", "choir"]
    ann, choir, rome = near.path(102)
    assert (ann.through, choir.through, choir.tied, rome.through) == (None, 100, True, None)
    assert rome.met.joined_by == lives


def test_a_path_from_an_anchor_begins_at_what_it_names() -> None:
    near = Neighbourhood([seed(1, "Ann")], 10, max_nodes=50)
    near.add(Step(near.frontier, edges((1, 100, 1.0))))
    near.anchor({200: 0.5, 100: 1.0})
    near.add(Step([Met(2, 3, 1.0)], edges((2, 200, 1.0), (2, 201, 1.0)), {200: 0.5, 100: 1.0}))
    assert [(NAMES[link.met.entity], link.through, link.tied) for link in near.path(201)] == [("choir", 200, False)]
    assert [(NAMES[link.met.entity], link.through, link.tied) for link in near.path(200)] == [("choir", 200, False)]
    near.add(Step([Met(3, 3, 1.0)], edges((3, 201, 1.0), (3, 202, 1.0)), {201: 1.0}))
    assert [(NAMES[link.met.entity], link.through, link.tied) for link in near.path(202)] == [
        ("choir", 200, False),
        ("Rome", 201, True),
    ]


def test_the_restart_lies_at_seeds_bridges_and_anchors() -> None:
    """Half of it, a quarter and a tenth, before they are scaled to sum to 1; within each by strength."""
    near = Neighbourhood([seed(1, "Ann", 1.0), seed(2, "Bob", 0.25)], 10, max_nodes=50)
    near.add(Step(near.frontier, edges((1, 100, 1.0), (2, 101, 1.0))))
    alone = near.restart
    assert alone[0] == pytest.approx([0.8, 0.2])
    assert alone[1] == pytest.approx([0.0, 0.0])
    near.anchor({300: 3.0, 101: 1.0})
    met = [Met(3, 3, 1.0), Met(4, 3, 0.25)]
    edges_of = edges((3, 300, 1.0), (4, 300, 1.0), (4, 301, 1.0))
    near.add(Step(met, edges_of, {300: 3.0, 101: 1.0}, from_anchors=True))
    entities, memories = near.restart
    by_entity = dict(zip(near.entities, entities, strict=True))
    by_doc = dict(zip(near.docs, memories, strict=True))
    assert by_entity == pytest.approx({1: 0.4 / 0.85, 2: 0.1 / 0.85, 3: 0.2 / 0.85, 4: 0.05 / 0.85})
    assert by_doc == pytest.approx({100: 0.0, 101: 0.025 / 0.85, 300: 0.075 / 0.85, 301: 0.0})


def test_anchors_alone_carry_the_whole_restart() -> None:
    near = Neighbourhood([], 10, max_nodes=50)
    near.anchor({100: 1.0, 101: 3.0})
    assert near.activations() == [(101, 1.0), (100, pytest.approx(1 / 3))]
    near.add(Step([], none(), {100: 1.0, 101: 3.0}))
    assert near.activations() == [(101, 1.0), (100, pytest.approx(1 / 3))]
    assert near.path(100) == ()


def test_what_a_later_hop_comes_to_is_no_bridge() -> None:
    """The restart stays where the query and its anchors put it, however far the walk goes."""
    near = Neighbourhood([seed(1, "Ann")], 10, max_nodes=50)
    near.add(Step(near.frontier, edges((1, 100, 1.0))))
    near.anchor({200: 1.0})
    near.add(Step([Met(2, 3, 1.0)], edges((2, 200, 1.0), (2, 201, 1.0)), {200: 1.0}))
    before = dict(zip(near.entities, near.restart[0], strict=True))
    for through in ({201: 1.0}, {200: 1.0}):
        near.add(Step([Met(3, 3, 1.0)], edges((3, 201, 1.0), (3, 202, 1.0)), through))
        assert dict(zip(near.entities, near.restart[0], strict=True)) == pytest.approx(before | {3: 0.0})


def test_no_more_nodes_than_allowed_and_the_best_stay() -> None:
    near = Neighbourhood([seed(1, "Ann")], 10, max_nodes=3)
    near.add(Step(near.frontier, edges((1, 100, 0.1), (1, 101, 0.9), (1, 102, 0.5))))
    assert near.docs == [101, 102]
    assert near.room == 0
    near.anchor({300: 1.0, 101: 0.5})
    assert near.docs == [101, 102]
    assert near.restart[1] == pytest.approx([0.1 / 0.6, 0.0])
