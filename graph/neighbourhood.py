"""The part of the graph that a walk has collected, and what it says of each memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log

import numpy as np
from numpy.typing import NDArray

from graph.linking import Seed
from graph.pagerank import bipartite_pagerank

Edges = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""Entities, memories and weights, one of each per edge."""


@dataclass(frozen=True, slots=True)
class Met:
    """An entity that a hop came to.

    `strength` steers the next hop, `mentions` is capped, `joined_to` is the entity whose
    relation led here, if one did.
    """

    entity: int
    name: str
    mentions: int
    strength: float
    joined_to: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """What one hop brought; `through` are the memories it went out from, with their activation."""

    met: Sequence[Met]
    edges: Edges
    through: Mapping[int, float] = field(default_factory=dict)


class Neighbourhood:
    """Memories and entities as two sides of a bipartite graph with weights w * idf.

    idf(e) = ln(1 + memories / mentions(e)) / ln(1 + memories), mentions counted up to a cap.
    """

    def __init__(self, seeds: Sequence[Seed], memories: int, *, max_nodes: int) -> None:
        """Start with the seeds; `memories` is the size of the namespace."""
        self._memories = max(memories, 1)
        self._max_nodes = max_nodes
        self._column: dict[int, int] = {}
        self._row: dict[int, int] = {}
        self._met: list[Met] = []
        self._hop: list[int] = []
        self._steps: list[Step] = []
        self._matrix: NDArray[np.float64] = np.zeros((0, 0))
        self._latest: list[tuple[int, float]] = []
        self._restart = [seed.score for seed in seeds]
        self.frontier = [Met(seed.entity, seed.name, seed.mentions, seed.score) for seed in seeds]
        """Entities that the last hop came to."""

    @property
    def entities(self) -> list[int]:
        """All entities met, seeds first: the columns of `matrix`."""
        return list(self._column)

    @property
    def docs(self) -> list[int]:
        """All memories collected: the rows of `matrix`."""
        return list(self._row)

    @property
    def matrix(self) -> NDArray[np.float64]:
        """Weights of the edges, shape (memories, entities)."""
        return self._matrix

    @property
    def restart(self) -> NDArray[np.float64]:
        """Where the walk restarts: shape (entities,), summing to 1, 0 but for seeds."""
        restart = np.zeros(len(self._column))
        restart[: len(self._restart)] = self._restart
        return restart / (restart.sum() or 1.0)

    @property
    def room(self) -> int:
        """How many more nodes may be added."""
        return self._max_nodes - len(self._column) - len(self._row)

    def best(self, count: int) -> list[tuple[int, float]]:
        """The memories that the last hop activated most, with activation in (0, 1], best first."""
        return self._latest[:count]

    def add(self, step: Step) -> None:
        """Take in a hop: its entities, and as many of its memories as there is room for."""
        self._steps.append(step)
        for met in step.met[: max(self.room, 0)]:
            if met.entity not in self._column:
                self._column[met.entity] = len(self._met)
                self._met.append(met)
                self._hop.append(len(self._steps) - 1)
        self.frontier = [met for met in step.met if met.entity in self._column]
        columns, docs, weights = self._known(step.edges)
        strength = np.array([met.strength for met in self._met])
        fresh = np.array(self._hop) == len(self._steps) - 1
        places, inverse = np.unique(docs, return_inverse=True)
        activation = np.bincount(inverse, weights=weights * (strength * fresh)[columns], minlength=len(places))
        order = np.lexsort((places, -activation))
        ranked = list(zip(places[order].tolist(), activation[order].tolist(), strict=True))
        new = [doc for doc, _ in ranked if doc not in self._row][: max(self.room, 0)]
        self._row.update(zip(new, range(len(self._row), len(self._row) + len(new)), strict=True))
        rows = np.array([self._row.get(doc, -1) for doc in places.tolist()], dtype=np.int64)[inverse]
        grown = np.zeros((len(self._row), len(self._column)))
        grown[: self._matrix.shape[0], : self._matrix.shape[1]] = self._matrix
        grown[rows[rows >= 0], columns[rows >= 0]] = weights[rows >= 0]
        self._matrix = grown
        self._latest = [(doc, pull / ranked[0][1]) for doc, pull in ranked if pull > 0 and doc in self._row]

    def activations(self) -> list[tuple[int, float]]:
        """Every memory collected with its personalised PageRank over the best one's, best first."""
        if not self._row:
            return []
        rank = bipartite_pagerank(self._matrix, self.restart)
        docs = np.array(self.docs)
        order = np.lexsort((docs, -rank))
        order = order[rank[order] > 0]
        return list(zip(docs[order].tolist(), (rank[order] / rank.max()).tolist(), strict=True))

    def path(self, doc: int) -> tuple[str, ...]:
        """Names of the entities from a seed to the one that ties the memory in most strongly."""
        column = self._tie(doc, len(self._steps))
        names = []
        while column is not None:
            met = self._met[column]
            names.append(met.name)
            column = self._origin(column, met)
        return tuple(reversed(names))

    def _known(self, edges: Edges) -> Edges:
        """The edges of entities that have been met, with columns for entities and weights times idf."""
        entities, docs, weights = edges
        each, inverse = np.unique(entities, return_inverse=True)
        columns = np.array([self._column.get(entity, -1) for entity in each.tolist()], dtype=np.int64)[inverse]
        known = columns >= 0
        idf = np.array([log(1 + self._memories / max(m.mentions, 1)) for m in self._met]) / log(1 + self._memories)
        return columns[known], docs[known], weights[known] * idf[columns[known]]

    def _tie(self, doc: int, before_hop: int) -> int | None:
        """The column that ties a memory in: of the earliest hop, there the strongest."""
        weights = self._matrix[self._row[doc]]
        tied = [int(column) for column in np.flatnonzero(weights) if self._hop[column] < before_hop]
        return min(tied, key=lambda c: (self._hop[c], -weights[c] * self._met[c].strength), default=None)

    def _origin(self, column: int, met: Met) -> int | None:
        """The column from which a hop came to an entity; None for a seed."""
        hop = self._hop[column]
        if hop == 0:
            return None
        if met.joined_to is not None:
            return self._column[met.joined_to]
        through = {doc: share for doc, share in self._steps[hop].through.items() if doc in self._row}
        doc = max(through, key=lambda d: through[d] * self._matrix[self._row[d], column], default=None)
        return None if doc is None else self._tie(doc, hop)
