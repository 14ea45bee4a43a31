"""A naive walk over the graph, as an oracle for the real one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from graph.inference import JoinedEdge
from graph.neighbourhood import ANCHORS_SHARE, BRIDGES_SHARE, DAMPING, SEEDS_SHARE, Bounds, GraphView
from graph.resolution import MENTIONS_CAP, Seed
from tests.graph_edges import latest_edges, weightiest_edges


@dataclass
class Entity:
    """A node reached."""

    mentions: int
    strength: float
    hop: int
    bridge: bool


@dataclass
class PlainWalk:
    """The nodes collected: entities by number, memories, raw weights by both, anchors."""

    view: GraphView
    seeds: Sequence[Seed]
    bounds: Bounds
    entities: dict[int, Entity] = field(default_factory=dict)
    docs: list[int] = field(default_factory=list)
    weights: dict[tuple[int, int], float] = field(default_factory=dict)
    anchors: dict[int, float] = field(default_factory=dict)
    latest: dict[int, float] = field(default_factory=dict)
    hops: int = 0

    @property
    def room(self) -> int:
        """Nodes that may still be added."""
        return max(self.bounds.nodes - len(self.entities) - len(self.docs), 0)

    def begin(self) -> None:
        """Hop 0."""
        edges = self._latest([seed.entity for seed in self.seeds], hop_0=True)
        hubs = {seed.entity for seed in self.seeds if seed.mentions > self.bounds.memories_per_seed}
        if hubs and len(self.seeds) > 1:
            met = sorted({doc for _, doc in edges})
            edges |= {way: w for way, w in self._mentioned(met, self.bounds.nodes).items() if way[0] in hubs}
        self._add({seed.entity: Entity(seed.mentions, seed.score, 0, False) for seed in self.seeds}, edges)

    def anchor(self, docs: Mapping[int, float]) -> None:
        """Restart at these too."""
        self.docs += [doc for doc in docs if doc not in self.docs][: self.room]
        self.anchors = {doc: strength for doc, strength in docs.items() if doc in self.docs}

    def best(self, count: int) -> dict[int, float]:
        """Of the last hop."""
        greatest = max(self.latest.values(), default=0.0) or 1.0
        found = [doc for doc, pull in self.latest.items() if pull > 0 and doc in self.docs]
        ranked = sorted(found, key=lambda doc: (-self.latest[doc], doc))[:count]
        return {doc: self.latest[doc] / greatest for doc in ranked}

    def onward(
        self, top: Mapping[int, float], joined: Mapping[int, JoinedEdge], *, entities: int, from_anchors: bool
    ) -> bool:
        """One hop on."""
        touched = self._mentioned(list(top), self.bounds.mentions_per_memory)
        pulls: dict[int, float] = {}
        for (entity, doc), weight in touched.items():
            if entity not in self.entities:
                pulls[entity] = max(pulls.get(entity, 0.0), top[doc] * weight * weight)
        pulls = {entity: pulls[entity] for entity in sorted(pulls, key=lambda e: (-pulls[e], e))[: 3 * entities // 2]}
        for entity, edge in joined.items():
            pulls[entity] = pulls.get(entity, 0.0) + edge.strength
        counts = dict(zip(pulls, self._mentions(list(pulls)), strict=True))
        strengths = {
            entity: pull * log(1 + max(self.view.memories, 1) / max(counts[entity], 1))
            for entity, pull in pulls.items()
            if counts[entity] > 1 or entity in joined
        }
        fan = sorted(strengths, key=lambda entity: (-strengths[entity], entity))[:entities]
        if not fan:
            return False
        strongest = strengths[fan[0]] or 1.0
        met = {
            e: Entity(counts[e], strengths[e] / strongest, self.hops, from_anchors or e in joined) for e in fan
        }  # fmt: skip
        self._add(met, touched | self._latest(fan, hop_0=False))
        return True

    def matrix(self) -> NDArray[np.float64]:
        """Weights times rarity, shape (memories, entities)."""
        memories = max(self.view.memories, 1)
        matrix = np.zeros((len(self.docs), len(self.entities)))
        for (entity, doc), weight in self.weights.items():
            if doc in self.docs:
                rarity = log(1 + memories / max(self.entities[entity].mentions, 1)) / log(1 + memories)
                matrix[self.docs.index(doc), list(self.entities).index(entity)] = weight * rarity
        return matrix

    def restart(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Shares of entities and memories."""
        met = list(self.entities.values())
        bridges = [each.bridge and at >= len(self.seeds) for at, each in enumerate(met)]
        anchors = [self.anchors.get(doc, 0.0) for doc in self.docs]
        return restart([each.strength for each in met], len(self.seeds), bridges, anchors)

    def activations(self) -> dict[int, float]:
        """Relative to the best one's, for those above 0."""
        rank = pagerank(self.matrix(), *self.restart())
        return {doc: share / rank.max() for doc, share in zip(self.docs, rank.tolist(), strict=True) if share > 0}

    def _add(self, met: Mapping[int, Entity], edges: Mapping[tuple[int, int], float]) -> None:
        self.entities |= dict(list(met.items())[: self.room])
        memories = max(self.view.memories, 1)
        self.latest = {}
        for entity, doc in sorted(edges):
            if entity in self.entities:
                each = self.entities[entity]
                rarity = log(1 + memories / max(each.mentions, 1)) / log(1 + memories)
                pull = edges[entity, doc] * rarity * each.strength if each.hop == self.hops else 0.0
                self.latest[doc] = self.latest.get(doc, 0.0) + pull
        ranked = sorted(self.latest, key=lambda doc: (-self.latest[doc], doc))
        self.docs += [doc for doc in ranked if doc not in self.docs][: self.room]
        self.weights |= {
            (entity, doc): weight
            for (entity, doc), weight in edges.items()
            if entity in self.entities and doc in self.docs
        }
        self.hops += 1

    def _latest(self, entities: Sequence[int], *, hop_0: bool) -> dict[tuple[int, int], float]:
        bounds, numbers = self.bounds, np.array(entities, np.int64)
        scanned = bounds.scanned_per_seed if hop_0 else bounds.scanned_per_entity
        most = bounds.memories_per_seed if hop_0 else bounds.memories_per_entity
        found = latest_edges(self.view.graph, numbers, self.view.eligible, scanned=scanned, most=most)
        return _ways(found)

    def _mentioned(self, docs: Sequence[int], most: int) -> dict[tuple[int, int], float]:
        return _ways(weightiest_edges(self.view.graph, np.array(docs, np.int64), most=most))

    def _mentions(self, entities: Sequence[int]) -> list[int]:
        counts: list[int] = self.view.graph.mentions(np.array(entities, np.int64), cap=MENTIONS_CAP).tolist()
        return counts


def pagerank(
    edges: NDArray[np.float64], restart: NDArray[np.float64], memory_restart: NDArray[np.float64]
) -> NDArray[np.float64]:
    """PageRank of a bipartite graph's memories, with walkers on both sides at once, step by step."""
    out_of_memory, out_of_entity = edges.sum(axis=1), edges.sum(axis=0)
    to_memory = edges / np.where(out_of_entity == 0, 1.0, out_of_entity)
    to_entity = (edges / np.where(out_of_memory == 0, 1.0, out_of_memory)[:, np.newaxis]).T
    back = restart / (restart.sum() or 1.0)
    entities, memories = restart, memory_restart
    for _ in range(100):
        stuck = entities[out_of_entity == 0].sum()
        entities, memories = (
            (1 - DAMPING) * restart + DAMPING * (to_entity @ memories + stuck * back),
            (1 - DAMPING) * memory_restart + DAMPING * (to_memory @ entities),
        )
    return memories


def by_networkx(
    weights: NDArray[np.float64], restart: NDArray[np.float64], memory_restart: NDArray[np.float64]
) -> list[float]:
    """The same, but that networkx sends a walker who is stuck anywhere back to both sides."""
    docs, entities = weights.shape
    graph = nx.Graph()
    graph.add_nodes_from([("d", d) for d in range(docs)] + [("e", e) for e in range(entities)])
    graph.add_weighted_edges_from(
        (("d", d), ("e", e), weights[d, e]) for d in range(docs) for e in range(entities) if weights[d, e] > 0
    )
    start = {("e", e): restart[e] for e in range(entities)} | {("d", d): memory_restart[d] for d in range(docs)}
    rank = nx.pagerank(graph, alpha=DAMPING, personalization=start, tol=1e-12, max_iter=500)
    return [rank["d", d] for d in range(docs)]


def restart(
    strengths: Sequence[float], seeds: int, bridges: Sequence[bool], anchors: Sequence[float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Where the walk restarts: shares of entities and of memories.

    Args:
        strengths: of the entities.
        seeds: how many of them, from the first on, are seeds.
        bridges: which of the others the walk also restarts at.
        anchors: strength of each memory as an anchor.
    """
    first = [strength if at < seeds else 0.0 for at, strength in enumerate(strengths)]
    others = [strength if bridge else 0.0 for strength, bridge in zip(strengths, bridges, strict=True)]
    entities = _shares(first, SEEDS_SHARE) + _shares(others, BRIDGES_SHARE)
    memories = _shares(anchors, ANCHORS_SHARE)
    total = (entities.sum() + memories.sum()) or 1.0
    return entities / total, memories / total


def _shares(values: Sequence[float], total: float) -> NDArray[np.float64]:
    array = np.array(values, np.float64)
    return array * (total / (array.sum() or 1.0))


def _ways(edges: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]) -> dict[tuple[int, int], float]:
    return {(entity, doc): weight for entity, doc, weight in zip(*(each.tolist() for each in edges), strict=True)}
