"""A walk's view of the graph, its limits, the nodes collected, and the activation of its memories."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from graph.adjacency import Adjacency
from graph.inference import JoinedEdge
from graph.paths import CollectedNodes, Link, Step
from graph.resolution import MENTIONS_CAP, Seed
from native import address, function


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a walk: a hub of a million mentions costs as much as one of a hundred.

    Attributes:
        max_hops: hops beyond the memories that mention the seeds.
        enough: with this many memories, no hop after the first is made.
        memories_per_seed: most memories taken per seed, the latest first.
        memories_per_entity: most memories taken per other entity.
        entities_per_hop: most entities expanded in the first hop; halved with each further hop.
        memories_per_hop: best memories whose entities the first hop examines; halved with each further hop.
        mentions_per_memory: most entities examined per such memory, by falling weight.
        nodes: most memories and entities in total.
        scanned_per_seed, scanned_per_entity: most mentions read to find eligible memories, not counting removed ones.
        time_s: no hop starts after this many seconds.
    """

    max_hops: int = 2
    enough: int = 40
    memories_per_seed: int = 32
    memories_per_entity: int = 16
    entities_per_hop: int = 16
    memories_per_hop: int = 6
    mentions_per_memory: int = 10
    nodes: int = 320
    scanned_per_seed: int = 2_048
    scanned_per_entity: int = 256
    time_s: float = 0.1


class GraphView(msgspec.Struct, frozen=True):
    """The part of a namespace that a walk may see: the memories that meet the query's filters.

    Attributes:
        graph: the namespace's.
        memories: number of memories in the namespace, or an upper bound.
        eligible: mask by slot; an ineligible memory is neither returned nor walked through, and its relations are not
            followed.
    """

    graph: Adjacency
    memories: int
    eligible: NDArray[np.bool_]


DAMPING = 0.5
"""The share of the activation that follows edges; Gutierrez et al., HippoRAG, NeurIPS 2024."""

SEEDS_SHARE = 0.5
BRIDGES_SHARE = 0.25
ANCHORS_SHARE = 0.1
"""Restart probabilities: the query's entities, the entities that anchors and relations lead to, the anchors."""

_new = function("trivet_walk_new", "qq", "P")
_free = function("trivet_walk_free", "P")
_rows = function("trivet_walk_rows", "P", "q")
_columns = function("trivet_walk_columns", "P", "q")
_begin = function("trivet_walk_begin", "PPPqPPPqqq", "q")
_anchor = function("trivet_walk_anchor", "PPPq", "q")
_best = function("trivet_walk_best", "PqPP", "q")
_onward = function("trivet_walk_onward", "PPPqPPqPPqqqqqqq", "q")
_ranked = function("trivet_walk_ranked", "PddddPP", "q")
_export = function("trivet_walk_export", "PPPPPP")


class Neighbourhood:
    """A bipartite graph of memories and entities with edge weights w * idf.

    idf(e) = ln(1 + memories / mentions(e)) / ln(1 + memories), with mentions counted up to a cap.
    Anchors are memories known to be close to the query before the walk.
    """

    def __init__(self, seeds: Sequence[Seed], memories: int, bounds: Bounds) -> None:
        """Start empty; `memories` is the size of the namespace."""
        self.bounds = bounds
        self.joined: Mapping[int, JoinedEdge] = {}
        """The strongest relation to a seed, by the entity at its other end."""
        self._seeds = seeds
        self._walk = _new(max(memories, 1), bounds.nodes)
        if not self._walk:
            raise MemoryError("no memory for a walk over the graph")
        self._steps: list[Step] = []
        self._collected: CollectedNodes | None = None

    def __del__(self) -> None:
        """Free the C state."""
        _free(getattr(self, "_walk", None))

    @property
    def memories(self) -> int:
        """The number of memories collected."""
        return int(_rows(self._walk))

    @property
    def docs(self) -> list[int]:
        """The memories collected."""
        docs: list[int] = self.collected.docs.tolist()
        return docs

    @property
    def entities(self) -> list[int]:
        """The entities reached, seeds first."""
        entities: list[int] = self.collected.entities.tolist()
        return entities

    @property
    def hops(self) -> int:
        """The number of hops made beyond the memories of the seeds."""
        return len(self._steps) - bool(self._seeds)

    @property
    def room(self) -> int:
        """The number of nodes that may still be added."""
        return self.bounds.nodes - self.memories - int(_columns(self._walk))

    @property
    def frontier(self) -> dict[int, float]:
        """The entities reached by the last hop, with their strength."""
        if len(self._steps) == 1 and self._seeds:  # the usual case, without copying what was collected
            return {seed.entity: seed.score for seed in self._seeds[: self.bounds.nodes]}
        seen = self.collected
        last = seen.hops == len(self._steps) - 1
        return dict(zip(seen.entities[last].tolist(), seen.strengths[last].tolist(), strict=True))

    @property
    def collected(self) -> CollectedNodes:
        """Everything collected so far."""
        if self._collected is None:
            columns, rows = int(_columns(self._walk)), self.memories
            entities, hops, docs = np.empty(columns, np.int64), np.empty(columns, np.int64), np.empty(rows, np.int64)
            arrays = entities, np.empty(columns), hops, docs, np.zeros((rows, columns))
            _export(self._walk, *map(address, arrays))
            self._collected = CollectedNodes(*arrays)
        return self._collected

    def begin(self, view: GraphView) -> None:
        """Hop 0: add the seeds and their latest memories.

        A hub's latest memories seldom mention the other seeds, so its edges to their memories are added too.
        """
        seeds, bounds = self._seeds, self.bounds
        entities, mentions = array("q", [seed.entity for seed in seeds]), array("q", [seed.mentions for seed in seeds])
        scores = array("d", [seed.score for seed in seeds])
        caps = bounds.scanned_per_seed, bounds.memories_per_seed
        columns = _at(entities), _at(mentions), _at(scores)
        _begin(self._walk, *_seen(view), *columns, len(seeds), *caps)
        self._collected = None
        self._steps.append(Step({}, {}))

    def anchor(self, docs: Mapping[int, float]) -> None:
        """Restart the walk at these memories too, in proportion to their strength."""
        numbers, strengths = _columns_of(docs)
        _anchor(self._walk, _at(numbers), _at(strengths), len(docs))
        self._collected = None

    def best(self, count: int) -> dict[int, float]:
        """The memories most activated by the last hop, with activation in (0, 1], best first."""
        docs, pulls = array("q", bytes(8 * count)), array("d", bytes(8 * count))
        found = _best(self._walk, count, _at(docs), _at(pulls))
        return dict(zip(docs[:found], pulls[:found], strict=True))

    def onward(
        self,
        view: GraphView,
        top: Mapping[int, float],
        joined: Mapping[int, JoinedEdge],
        *,
        entities: int,
        from_anchors: bool,
    ) -> bool:
        """Add the entities that some memories and relations lead to, strongest first, and their latest memories.

        `top` has the activation of the memories, `joined` the strongest relation to each new entity; at most `entities`
        are added. The weight of a mention is squared, so that names count more than words. The strongest entity has
        strength 1. Returns whether any entity was added.
        """
        bounds = self.bounds
        docs, strengths = _columns_of(top)
        others, pulls = _columns_of({entity: edge.strength for entity, edge in joined.items()})
        ways = _at(docs), _at(strengths), len(top), _at(others), _at(pulls), len(joined)
        most = bounds.mentions_per_memory, bounds.scanned_per_entity, bounds.memories_per_entity, MENTIONS_CAP
        came: int = _onward(self._walk, *_seen(view), *ways, entities, *most, from_anchors)
        if came:
            self._collected = None
            self._steps.append(Step(top, joined))
        return came > 0

    def activations(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The memories collected, best first, with their personalised PageRank, divided by the greatest."""
        rows = self.memories
        docs, activations = np.empty(rows, np.int64), np.empty(rows)
        shares = (SEEDS_SHARE, BRIDGES_SHARE, ANCHORS_SHARE)
        found = _ranked(self._walk, *shares, DAMPING, address(docs), address(activations))
        return docs[:found], activations[:found]

    def path(self, doc: int) -> tuple[Link, ...]:
        """The entities from a seed to a memory; empty for an anchor that nothing else leads to."""
        return self.collected.path(doc, self._steps, len(self._seeds))


def _seen(view: GraphView) -> tuple[bytes, int, int]:
    return view.graph.layout, address(view.eligible), len(view.eligible)


def _columns_of(numbers: Mapping[int, float]) -> tuple[array[int], array[float]]:
    return array("q", numbers), array("d", numbers.values())


def _at(column: array[Any]) -> int:
    return column.buffer_info()[0]
