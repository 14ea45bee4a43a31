"""The part of the graph that a walk has collected, and what it says of each memory."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.hops import Bounds, View
from graph.inference import JoinedEdge
from graph.paths import Collected, Link, Met, Step
from graph.resolution import MENTIONS_CAP, Seed
from native import Array, at, function

__all__ = ["DAMPING", "Link", "Met", "Neighbourhood"]

DAMPING = 0.5
"""Share of the activation that walks on; Gutierrez et al., HippoRAG, NeurIPS 2024."""

SEEDS_SHARE = 0.5
BRIDGES_SHARE = 0.25
ANCHORS_SHARE = 0.1
"""Where the walk restarts: at the query's entities, at those that anchors and relations lead to, at the anchors."""

_INT, _FLOAT = ctypes.c_int64, ctypes.c_double
_EDGES = (Array, Array, _INT)  # a chart and who is eligible
_new = function("trivet_walk_new", _INT, _INT, result=Array)
_free = function("trivet_walk_free", Array)
_rows = function("trivet_walk_rows", Array, result=_INT)
_columns = function("trivet_walk_columns", Array, result=_INT)
_begin = function("trivet_walk_begin", Array, *_EDGES, Array, Array, Array, _INT, _INT, _INT, result=_INT)
_anchor = function("trivet_walk_anchor", Array, Array, Array, _INT)
_best = function("trivet_walk_best", Array, _INT, Array, Array, result=_INT)
_onward = function("trivet_walk_onward", Array, *_EDGES, Array, Array, _INT, Array, Array, _INT, _FLOAT,
                   _INT, _INT, _INT, _INT, _INT, _INT, result=_INT)  # fmt: skip
_ranked = function("trivet_walk_ranked", Array, _FLOAT, _FLOAT, _FLOAT, _FLOAT, Array, Array, result=_INT)
_export = function("trivet_walk_export", Array, Array, Array, Array, Array, Array, Array)


class Neighbourhood:
    """Memories and entities as two sides of a bipartite graph with weights w * idf.

    idf(e) = ln(1 + memories / mentions(e)) / ln(1 + memories), mentions counted up to a cap.
    Anchors are memories that the query is known to be close to before any walk.
    """

    def __init__(self, seeds: Sequence[Seed], memories: int, bounds: Bounds) -> None:
        """Start with nothing; `memories` is the size of the namespace."""
        self.bounds = bounds
        self.joined: Mapping[int, JoinedEdge] = {}
        """Entities that relations join to the seeds, with the strongest one each."""
        self._seeds = seeds
        self._walk = _new(max(memories, 1), bounds.nodes) or _fail()
        self._steps: list[Step] = []
        self._collected: Collected | None = None

    def __del__(self) -> None:
        """Give its memory back."""
        _free(getattr(self, "_walk", None))

    @property
    def memories(self) -> int:
        """How many memories it has."""
        return int(_rows(self._walk))

    @property
    def docs(self) -> list[int]:
        """All memories collected."""
        docs: list[int] = self.collected.docs.tolist()
        return docs

    @property
    def entities(self) -> list[int]:
        """All entities met, seeds first."""
        entities: list[int] = self.collected.entities.tolist()
        return entities

    @property
    def room(self) -> int:
        """How many more nodes may be added."""
        return self.bounds.nodes - self.memories - int(_columns(self._walk))

    @property
    def frontier(self) -> dict[int, float]:
        """Entities that the last hop came to, with their strength."""
        if len(self._steps) == 1 and self._seeds:
            return {seed.entity: seed.score for seed in self._seeds[: self.bounds.nodes]}
        seen = self.collected
        last = seen.hops == len(self._steps) - 1
        return dict(zip(seen.entities[last].tolist(), seen.strengths[last].tolist(), strict=True))

    @property
    def collected(self) -> Collected:
        """What it has."""
        if self._collected is None:
            columns, rows = int(_columns(self._walk)), self.memories
            numbers = np.empty((3, columns), np.int64)
            strengths, docs, matrix = np.empty(columns), np.empty(rows, np.int64), np.zeros((rows, columns))
            _export(self._walk, at(numbers[0]), at(numbers[1]), at(strengths), at(numbers[2]), at(docs), at(matrix))
            self._collected = Collected(numbers[0], numbers[1], strengths, numbers[2], docs, matrix)
        return self._collected

    def begin(self, view: View) -> None:
        """Hop 0: take the seeds and their latest memories.

        A hub's latest are few of its own, so its edges to the memories of the other seeds are taken too.
        """
        seeds, bounds = self._seeds, self.bounds
        entities, mentions = array("q", [seed.entity for seed in seeds]), array("q", [seed.mentions for seed in seeds])
        scores = array("d", [seed.score for seed in seeds])
        caps = bounds.scanned_per_seed, bounds.memories_per_seed
        columns = _at(entities), _at(mentions), _at(scores)
        self._grown(_begin(self._walk, *_seen(view), *columns, len(seeds), *caps))
        self._steps.append(Step({}, {}))

    def anchor(self, docs: Mapping[int, float]) -> None:
        """Let the walk restart at these memories too, each with a share of their part, and go on from them."""
        numbers, strengths = _columns_of(docs)
        _anchor(self._walk, _at(numbers), _at(strengths), len(docs))
        self._collected = None

    def best(self, count: int) -> dict[int, float]:
        """The memories that the last hop activated most, with activation in (0, 1], best first."""
        docs, pulls = array("q", bytes(8 * count)), array("d", bytes(8 * count))
        found = self._grown(_best(self._walk, count, _at(docs), _at(pulls)))
        return dict(zip(docs[:found], pulls[:found], strict=True))

    def onward(
        self,
        view: View,
        top: Mapping[int, float],
        joined: Mapping[int, JoinedEdge],
        *,
        entities: int,
        from_anchors: bool,
    ) -> bool:
        """Take the entities to which some memories and relations lead, most telling first, and their latest memories.

        A mention's weight counts squared: a name leads further than a word. The strongest entity has strength 1.

        Args:
            view: what may be seen.
            top: memories with the strength in which they activate what they mention.
            joined: entities not met yet that relations lead to, with the strongest one.
            entities: most of them.
            from_anchors: whether the memories are the anchors.

        Returns:
            Whether there were any.
        """
        bounds = self.bounds
        docs, strengths = _columns_of(top)
        others, pulls = _columns_of({entity: edge.strength for entity, edge in joined.items()})
        ways = _at(docs), _at(strengths), len(top), _at(others), _at(pulls), len(joined)
        scan = bounds.mentions_per_memory, bounds.scanned_per_entity, bounds.memories_per_entity
        caps = view.memories, entities, *scan, MENTIONS_CAP
        came = self._grown(_onward(self._walk, *_seen(view), *ways, *caps, from_anchors))
        if came:
            self._steps.append(Step(top, joined))
        return came > 0

    def activations(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Every memory collected with its personalised PageRank over the best one's, best first."""
        rows = self.memories
        docs, activations = np.empty(rows, np.int64), np.empty(rows)
        shares = (SEEDS_SHARE, BRIDGES_SHARE, ANCHORS_SHARE)
        found = self._grown(_ranked(self._walk, *shares, DAMPING, at(docs), at(activations)))
        return docs[:found], activations[:found]

    def path(self, doc: int) -> tuple[Link, ...]:
        """The entities from the first to the one that ties the memory in most strongly.

        Empty for a memory that no entity ties in: an anchor that names nothing.
        """
        return self.collected.path(doc, self._steps, len(self._seeds))

    def _grown(self, done: int) -> int:
        """What a call gave, when it did what it should."""
        self._collected = None
        return done if done >= 0 else _fail()


def _seen(view: View) -> tuple[int, int, int]:
    return view.graph.chart, at(view.eligible), len(view.eligible)


def _columns_of(numbers: Mapping[int, float]) -> tuple[array[int], array[float]]:
    return array("q", numbers), array("d", numbers.values())


def _at(column: array[Any]) -> int:
    return column.buffer_info()[0]


def _fail() -> int:
    raise MemoryError("no memory for a walk over the graph")
