"""Paths, communities and centrality of a bounded part of the entity graph.

Functions import networkx, which takes 13 MB and a tenth of a second: a process that only imports memories, or answers
one search, does without.
"""

from __future__ import annotations

import io
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from math import inf
from typing import Any

import numpy as np

DAMPING = 0.85
ROUNDS = 50
"""Rounds of power iteration: the error is below DAMPING ** ROUNDS = 0.0003."""

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, even escaped."""

Weighted = tuple[int, int, float]
"""An undirected edge between two nodes with its weight > 0."""


def shortest_paths(edges: Iterable[Weighted], source: int, target: int, *, max_hops: int, most: int) -> list[list[int]]:
    """Simple paths of at most `max_hops` edges as lists of nodes: the shortest first, then those of stronger edges.

    The strength of a path is the weight of its weakest edge. Source and target differ. Of each length the paths are
    extended best first, by the strength they may still have.
    """
    ways: dict[int, dict[int, float]] = defaultdict(dict)
    for one, other, weight in edges:
        ways[one][other] = ways[other][one] = weight
    # By the number of edges left, then by node: the strength of the strongest way to the target that avoids the source.
    strongest: list[dict[int, float]] = [{target: inf}]
    for _ in range(max_hops):
        further: dict[int, float] = {}
        for node, strength in strongest[-1].items():
            for other, weight in ways[node].items():
                if other not in (source, target):
                    further[other] = max(further.get(other, 0.0), min(strength, weight))
        strongest.append(further)
    found: list[list[int]] = []
    for hops in range(1, max_hops + 1):
        begun = [(-inf, [source])]
        while begun and len(found) < most:
            less, path = heappop(begun)
            if len(path) > hops:
                found.append(path)
                continue
            left = strongest[hops - len(path)]
            for node, weight in ways[path[-1]].items():
                if node in left and node not in path:
                    heappush(begun, (max(less, -weight, -left[node]), [*path, node]))
    return found


def communities(nodes: Sequence[int], edges: Iterable[Weighted]) -> dict[int, int]:
    """The number of each node's community; the largest community is 0.

    Louvain (Blondel et al., J. Stat. Mech. 2008, arXiv 0803.0476) with a fixed seed.
    """
    import networkx as nx

    graph = nx.Graph()  # in a fixed order, on which the result may depend
    graph.add_nodes_from(sorted(nodes))
    graph.add_weighted_edges_from(sorted(edges))
    found = nx.community.louvain_communities(graph, seed=0)
    ranked = sorted((sorted(members) for members in found), key=lambda members: (-len(members), members))
    return {node: number for number, members in enumerate(ranked) for node in members}


def centrality(nodes: Sequence[int], edges: Iterable[Weighted]) -> dict[int, float]:
    """PageRank of each node over the undirected edges, by power iteration; the sum is 1.

    networkx has it too, but needs scipy, which the server does not depend on.
    """
    place = {node: position for position, node in enumerate(nodes)}
    pairs = [(place[one], place[other], weight) for one, other, weight in edges if one != other]
    ends = np.array([(one, other) for one, other, _ in pairs], np.int64).reshape(-1, 2)
    sources, targets = np.concatenate((ends, ends[:, ::-1])).T
    weights = np.tile(np.array([weight for *_, weight in pairs]), 2)
    outgoing = np.bincount(sources, weights, len(nodes))
    ranks = np.full(len(nodes), 1 / max(len(nodes), 1))
    for _ in range(ROUNDS):
        passed = np.bincount(targets, ranks[sources] * weights / outgoing[sources], len(nodes))
        ranks = (1 - DAMPING + DAMPING * ranks[outgoing == 0].sum()) / max(len(nodes), 1) + DAMPING * passed
    return dict(zip(nodes, ranks.tolist(), strict=True))


def graphml(
    nodes: Iterable[tuple[str, Mapping[str, Any]]], edges: Iterable[tuple[str, str, Mapping[str, Any]]]
) -> bytes:
    """A directed multigraph in GraphML, with texts and numbers as attributes.

    Characters that XML cannot hold become U+FFFD.
    """
    import networkx as nx

    graph = nx.MultiDiGraph()
    for node, attributes in nodes:
        graph.add_node(node, **_storable(attributes))
    for number, (source, target, attributes) in enumerate(edges):
        graph.add_edge(source, target, key=number, **_storable(attributes))  # the key is the edge's id in the file
    written = io.BytesIO()
    nx.write_graphml_xml(graph, written)
    return written.getvalue()


def _storable(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _NOT_XML.sub("\ufffd", value) if isinstance(value, str) else value for name, value in attributes.items()
    }
