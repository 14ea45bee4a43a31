"""PageRank and paths on neighbourhoods small enough to check."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from graph.linking import Seed
from graph.neighbourhood import Edges, Met, Neighbourhood, Step
from graph.pagerank import DAMPING, bipartite_pagerank


def seed(entity: int, name: str, score: float = 1.0, mentions: int = 2) -> Seed:
    return Seed(entity, name, name.lower(), score, "exact", mentions)


def edges(*triples: tuple[int, int, float]) -> Edges:
    entities, docs, weights = zip(*triples, strict=True)
    return np.array(entities), np.array(docs), np.array(weights, dtype=float)


@pytest.mark.parametrize("seed_number", range(8))
def test_pagerank_agrees_with_networkx(seed_number: int) -> None:
    random = np.random.default_rng(seed_number)
    weights = random.random((30, 12)) * (random.random((30, 12)) < 0.2)
    restart = random.random(12) * (random.random(12) < 0.5)
    restart[0] = 0.5
    restart /= restart.sum()
    graph = nx.Graph()
    graph.add_nodes_from([("d", d) for d in range(30)] + [("e", e) for e in range(12)])
    graph.add_weighted_edges_from(
        (("d", d), ("e", e), weights[d, e]) for d in range(30) for e in range(12) if weights[d, e] > 0
    )
    start = {("e", e): restart[e] for e in range(12)}
    oracle = nx.pagerank(graph, alpha=DAMPING, personalization=start, tol=1e-12, max_iter=500)
    got = bipartite_pagerank(weights, restart)
    assert got == pytest.approx([oracle["d", d] for d in range(30)], abs=1e-6)


def test_a_memory_of_both_seeds_comes_first() -> None:
    near = Neighbourhood([seed(1, "Ann"), seed(2, "Bob")], 10, max_nodes=50)
    near.add(Step(near.frontier, edges((1, 100, 1.0), (1, 101, 1.0), (2, 101, 1.0), (2, 102, 1.0))))
    ranked = near.activations()
    assert ranked[0] == (101, 1.0)
    assert [doc for doc, _ in ranked[1:]] == [100, 102]


def test_paths_go_from_the_seed_over_the_memories_walked_through() -> None:
    near = Neighbourhood([seed(1, "Ann")], 10, max_nodes=50)
    near.add(Step(near.frontier, edges((1, 100, 1.0))))
    near.add(Step([Met(2, "choir", 3, 1.0)], edges((2, 100, 1.0), (2, 101, 1.0)), dict(near.best(4))))
    near.add(Step([Met(3, "Rome", 3, 1.0, joined_to=2)], edges((3, 102, 1.0)), dict(near.best(4))))
    assert near.path(100) == ("Ann",)
    assert near.path(101) == ("Ann", "choir")
    assert near.path(102) == ("Ann", "choir", "Rome")


def test_no_more_nodes_than_allowed_and_the_best_stay() -> None:
    near = Neighbourhood([seed(1, "Ann")], 10, max_nodes=3)
    near.add(Step(near.frontier, edges((1, 100, 0.1), (1, 101, 0.9), (1, 102, 0.5))))
    assert near.docs == [101, 102]
    assert near.room == 0
