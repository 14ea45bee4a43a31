"""The part of the graph that a walk has collected, and what it says of each memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import log

import numpy as np
from numpy.typing import NDArray

from graph.adjacency import Edges
from graph.inference import JoinedEdge
from graph.linking import Seed
from graph.pagerank import bipartite_pagerank

SEEDS_SHARE = 0.5
BRIDGES_SHARE = 0.25
ANCHORS_SHARE = 0.1
"""Where the walk restarts: at the query's entities, at those that anchors and relations lead to, at the anchors."""


@dataclass(frozen=True, slots=True)
class Met:
    """An entity that a hop came to.

    `strength` steers the next hop, `mentions` is capped, `joined_by` is the relation that led here,
    if one did.
    """

    entity: int
    mentions: int
    strength: float
    joined_by: JoinedEdge | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """What one hop brought; `through` are the memories it went out from, with their activation."""

    met: Sequence[Met]
    edges: Edges
    through: Mapping[int, float] = field(default_factory=dict)
    from_anchors: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """One link of a path: an entity, and the memory or relation that led to it.

    Both are None for an entity of the query. `tied` says whether an entity before it on the path, and
    not the other legs, led to the memory.
    """

    met: Met
    through: int | None = None
    tied: bool = False


class Neighbourhood:
    """Memories and entities as two sides of a bipartite graph with weights w * idf.

    idf(e) = ln(1 + memories / mentions(e)) / ln(1 + memories), mentions counted up to a cap.
    Anchors are memories that the query is known to be close to before any walk.
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
        self._latest: tuple[NDArray[np.int64], NDArray[np.float64]] = (np.empty(0, np.int64), np.empty(0))
        self._seeds = [seed.score for seed in seeds]
        self._anchors: dict[int, float] = {}
        self._bridges: set[int] = set()
        self.frontier = [Met(seed.entity, seed.mentions, seed.score) for seed in seeds]
        """Entities that the last hop came to."""
        self.joined: Mapping[int, JoinedEdge] = {}
        """Entities that relations join to the seeds, with the strongest one each."""

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
    def restart(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Where the walk restarts: shapes (entities,) and (memories,), together summing to 1."""
        entities, memories = np.zeros(len(self._column)), np.zeros(len(self._row))
        seeds = len(self._seeds)
        entities[:seeds] = _shares(self._seeds, SEEDS_SHARE)
        bridges = sorted(self._column[entity] for entity in self._bridges if self._column[entity] >= seeds)
        entities[bridges] = _shares([self._met[column].strength for column in bridges], BRIDGES_SHARE)
        anchors = [self._row[doc] for doc in self._anchors]
        memories[anchors] = _shares(list(self._anchors.values()), ANCHORS_SHARE)
        total = (entities.sum() + memories.sum()) or 1.0
        return entities / total, memories / total

    @property
    def room(self) -> int:
        """How many more nodes may be added."""
        return self._max_nodes - len(self._column) - len(self._row)

    def anchor(self, docs: Mapping[int, float]) -> None:
        """Let the walk restart at these memories too, each with a share of their part, and go on from them."""
        known = {doc for doc in docs if doc in self._row}
        fresh = [doc for doc in docs if doc not in known][: max(self.room, 0)]
        self._row.update(zip(fresh, range(len(self._row), len(self._row) + len(fresh)), strict=True))
        grown = np.zeros((len(self._row), self._matrix.shape[1]))
        grown[: self._matrix.shape[0]] = self._matrix
        self._matrix = grown
        self._anchors = {doc: share for doc, share in docs.items() if doc in self._row}

    def best(self, count: int) -> list[tuple[int, float]]:
        """The memories that the last hop activated most, with activation in (0, 1], best first."""
        docs, activation = self._latest
        latest = zip(docs.tolist(), (activation / (activation.max(initial=0) or 1.0)).tolist(), strict=True)
        return list(islice(((doc, pull) for doc, pull in latest if pull > 0 and doc in self._row), count))

    def add(self, step: Step) -> None:
        """Take in a hop: its entities, and as many of its memories as there is room for."""
        self._steps.append(step)
        for met in step.met[: max(self.room, 0)]:
            if met.entity not in self._column:
                self._column[met.entity] = len(self._met)
                self._met.append(met)
                self._hop.append(len(self._steps) - 1)
        self.frontier = [met for met in step.met if met.entity in self._column]
        self._bridges |= {met.entity for met in self.frontier if step.from_anchors or met.joined_by is not None}
        columns, docs, weights = self._known(step.edges)
        strength = np.array([met.strength for met in self._met])
        fresh = np.array(self._hop) == len(self._steps) - 1
        places, inverse = np.unique(docs, return_inverse=True)
        activation = np.bincount(inverse, weights=weights * (strength * fresh)[columns], minlength=len(places))
        order = np.lexsort((places, -activation))
        self._latest = places[order], activation[order].astype(np.float64)
        new = [doc for doc in self._latest[0].tolist() if doc not in self._row][: max(self.room, 0)]
        self._row.update(zip(new, range(len(self._row), len(self._row) + len(new)), strict=True))
        rows = np.array([self._row.get(doc, -1) for doc in places.tolist()], dtype=np.int64)[inverse]
        grown = np.zeros((len(self._row), len(self._column)))
        grown[: self._matrix.shape[0], : self._matrix.shape[1]] = self._matrix
        grown[rows[rows >= 0], columns[rows >= 0]] = weights[rows >= 0]
        self._matrix = grown

    def activations(self) -> list[tuple[int, float]]:
        """Every memory collected with its personalised PageRank over the best one's, best first."""
        if not self._row:
            return []
        rank = bipartite_pagerank(self._matrix, *self.restart)
        docs = np.array(self.docs)
        order = np.lexsort((docs, -rank))
        order = order[rank[order] > 0]
        return list(zip(docs[order].tolist(), (rank[order] / rank.max()).tolist(), strict=True))

    def path(self, doc: int) -> tuple[Link, ...]:
        """The entities from the first to the one that ties the memory in most strongly.

        Empty for a memory that no entity ties in: an anchor that names nothing.
        """
        column = self._tie(doc, len(self._steps))
        links: list[Link] = []
        while column is not None:
            link, column = self._origin(column)
            links.append(link)
        return tuple(reversed(links))

    def _known(self, edges: Edges) -> Edges:
        """The edges of entities that have been met, with columns for entities and weights times idf."""
        entities, docs, weights = edges
        numbers = np.array(list(self._column), np.int64)
        if not numbers.size:
            return entities[:0], docs[:0], weights[:0]
        order = np.argsort(numbers)
        columns = order[np.minimum(np.searchsorted(numbers, entities, sorter=order), len(numbers) - 1)]
        known = numbers[columns] == entities
        idf = np.array([log(1 + self._memories / max(m.mentions, 1)) for m in self._met]) / log(1 + self._memories)
        return columns[known], docs[known], weights[known] * idf[columns[known]]

    def _tie(self, doc: int, before_hop: int) -> int | None:
        """The column that ties a memory in: of the earliest hop, there the strongest."""
        weights = self._matrix[self._row[doc]]
        tied = [int(column) for column in np.flatnonzero(weights) if self._hop[column] < before_hop]
        return min(tied, key=lambda c: (self._hop[c], -weights[c] * self._met[c].strength), default=None)

    def _origin(self, column: int) -> tuple[Link, int | None]:
        """How a hop came to an entity, and the column from which it did; None at the start of a path."""
        met, hop = self._met[column], self._hop[column]
        if hop == 0 and column < len(self._seeds):
            return Link(met), None
        if met.joined_by is not None:
            return Link(met), self._column[met.joined_by.joined_to]
        through = {doc: share for doc, share in self._steps[hop].through.items() if doc in self._row}
        doc = max(through, key=lambda d: through[d] * self._matrix[self._row[d], column], default=None)
        before = None if doc is None else self._tie(doc, hop)
        return Link(met, doc, before is not None), before


def _shares(values: Sequence[float], total: float) -> NDArray[np.float64]:
    """Values scaled to a sum; zeros where they are all 0."""
    array = np.array(values, dtype=np.float64)
    return array * (total / (array.sum() or 1.0))
