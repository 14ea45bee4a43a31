"""How a walk reached a memory: the entities on the path, and the links between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graph.inference import JoinedEdge


@dataclass(frozen=True, slots=True)
class Link:
    """One link of a path: an entity, and the memory it was reached `through` or the relation it is `joined_by`.

    Both are None for an entity of the query. `tied` is True if an earlier entity of the path led to the memory, False
    if another leg did.
    """

    entity: int
    through: int | None = None
    tied: bool = False
    joined_by: JoinedEdge | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """The origin of a hop: memories with their activation, and relations by the entity they lead to."""

    through: Mapping[int, float]
    joined: Mapping[int, JoinedEdge]


@dataclass(frozen=True, slots=True)
class CollectedNodes:
    """What a walk collected.

    Attributes:
        entities, strengths, hops: the entities reached, seeds first, with their strength and the hop that reached them.
        docs: the memories.
        matrix: edge weights, shape (memories, entities).
    """

    entities: NDArray[np.int64]
    strengths: NDArray[np.float64]
    hops: NDArray[np.int64]
    docs: NDArray[np.int64]
    matrix: NDArray[np.float64]

    def path(self, doc: int, steps: Sequence[Step], seeds: int) -> tuple[Link, ...]:
        """The entities from one of the first `seeds` to the one with the strongest tie to a memory.

        Empty for an anchor to which no other memory and no entity of the query leads.
        """
        column = self._tie(self._row(doc), len(steps))
        links: list[Link] = []
        while column is not None:
            link, column = self._origin(column, steps[int(self.hops[column])], seeds)
            links.append(link)
        return () if links and links[-1].through == doc else tuple(reversed(links))

    def _row(self, doc: int) -> int:
        return int(np.flatnonzero(self.docs == doc)[0])

    def _tie(self, row: int, before_hop: int) -> int | None:
        """The column with the strongest tie to a memory, among the earliest hop that has one."""
        weights = self.matrix[row]
        tied = [column for column in np.flatnonzero(weights).tolist() if self.hops[column] < before_hop]
        return min(tied, key=lambda c: (self.hops[c], -weights[c] * self.strengths[c]), default=None)

    def _origin(self, column: int, step: Step, seeds: int) -> tuple[Link, int | None]:
        """The link by which a hop reached an entity, and the column it came from; None at the start of a path."""
        entity, hop = int(self.entities[column]), int(self.hops[column])
        if hop == 0 and column < seeds:
            return Link(entity), None
        if (joined_by := step.joined.get(entity)) is not None:
            return Link(entity, joined_by=joined_by), int(np.flatnonzero(self.entities == joined_by.joined_to)[0])
        weights = {doc: self.matrix[self._row(doc), column] for doc in step.through if doc in self.docs}
        doc = max(weights, key=lambda d: step.through[d] * weights[d], default=None)
        before = None if doc is None else self._tie(self._row(doc), hop)
        return Link(entity, doc, before is not None), before
