"""Paths, communities, centrality and GraphML against networkx and by example."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.analytics import Weighted, centrality, communities, graphml, shortest_paths

NODES = list(range(-3, 5))
PAIRS = st.tuples(st.sampled_from(NODES), st.sampled_from(NODES)).filter(lambda pair: pair[0] < pair[1])
EDGES = st.dictionaries(PAIRS, st.sampled_from([0.5, 1.0, 3.0]), max_size=16).map(
    lambda weights: [(one, other, weight) for (one, other), weight in weights.items()]
)


def plain(edges: list[Weighted]) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(NODES)
    graph.add_weighted_edges_from(edges)
    return graph


@given(EDGES)
def test_centrality_is_pagerank(edges: list[Weighted]) -> None:
    ranks = centrality(NODES, edges)
    expected = nx.pagerank(plain(edges), alpha=0.85, tol=1e-9, max_iter=1_000)
    assert ranks == pytest.approx(expected, abs=1e-3)
    assert sum(ranks.values()) == pytest.approx(1)


def test_centrality_of_little() -> None:
    assert centrality([], []) == {}
    assert centrality([7], []) == {7: pytest.approx(1)}
    assert centrality([7], [(7, 7, 1.0)]) == {7: pytest.approx(1)}


@given(EDGES, st.randoms(use_true_random=False))
def test_communities_are_a_partition_that_does_not_depend_on_the_order(edges: list[Weighted], random: object) -> None:
    found = communities(NODES, edges)
    assert found.keys() == set(NODES)
    sizes = [list(found.values()).count(number) for number in range(len(set(found.values())))]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) == len(NODES)
    shuffled = list(edges)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert communities(NODES[::-1], shuffled) == found


@given(EDGES, st.integers(1, 4))
def test_paths_are_simple_short_and_sorted(edges: list[Weighted], max_hops: int) -> None:
    graph = plain(edges)
    source, target = NODES[0], NODES[-1]
    found = shortest_paths(edges, source, target, max_hops=max_hops, most=5)
    every = list(nx.all_simple_paths(graph, source, target, cutoff=max_hops))
    assert len(found) == min(5, len(every))
    ranked = sorted(
        (len(path), -min(graph.edges[pair]["weight"] for pair in nx.utils.pairwise(path)), path) for path in every
    )
    assert found == [path for _, _, path in ranked[:5]]


def test_the_strongest_of_many_paths_comes_first() -> None:
    edges = [edge for node in range(2, 400) for edge in ((0, node, float(node)), (1, node, float(node)))]
    assert shortest_paths(edges, 0, 1, max_hops=3, most=2) == [[0, 399, 1], [0, 398, 1]]


def test_a_node_that_no_edge_has_is_not_reached() -> None:
    assert shortest_paths([], 1, 2, max_hops=4, most=3) == []
    assert shortest_paths([(1, 3, 1.0)], 1, 2, max_hops=4, most=3) == []


@given(st.lists(st.text(), min_size=1, max_size=6))
def test_graphml_can_be_read_whatever_the_names_are(names: list[str]) -> None:
    nodes = [(f"{number:04x}", {"name": name, "mentions": number}) for number, name in enumerate(names)]
    edges = [("0000", node, {"type": name}) for (node, _), name in zip(nodes, names, strict=True)] * 2
    encodable = [name for name in names if name.encode("utf-8", "ignore").decode() == name]
    read = nx.parse_graphml(graphml(nodes, edges), force_multigraph=True)
    assert set(read.nodes) == {node for node, _ in nodes}
    assert sorted(edge for *_, edge in read.edges(keys=True)) == [*range(len(edges))]  # Gephi drops an id's second edge
    for node, attributes in nodes:
        assert read.nodes[node]["mentions"] == attributes["mentions"]
        name = str(attributes["name"])
        if name in encodable and name.isprintable():
            assert read.nodes[node]["name"] == name
