"""A bounded walk from a query's entities to the memories around them.

Hop 0 takes the memories that mention the seeds. The first hop goes out from anchors: memories known to
be close to the query, such as the best of the other legs; without any, from the best so far. It goes to
the entities that they mention and to those joined to the seeds by a relation, and takes their memories.
Further hops go on from the best of the last one. Personalised PageRank on what was collected says how
near each memory is (HippoRAG, NeurIPS 2024; the anchors are LinearRAG's passage nodes, arXiv 2510.10114).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from time import monotonic
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph.hops import Bounds, View
from graph.inference import JoinedEdge, joined
from graph.neighbourhood import Link, Neighbourhood
from graph.resolution import Seed
from graph.rules import Rule

__all__ = ["Bounds", "Reached", "View", "Walk", "begin", "walk"]


class Reached(NamedTuple):
    """A memory that the walk came to: activation in (0, 1], the best has 1."""

    doc: int
    activation: float


@dataclass(frozen=True)
class Walk:
    """What a walk found and how it got there.

    Attributes:
        docs, activations: of the memories, best first.
        hops: that were made beyond the memories of the seeds.
    """

    docs: NDArray[np.int64]
    activations: NDArray[np.float64]
    hops: int
    neighbourhood: Neighbourhood

    @cached_property
    def reached(self) -> Sequence[Reached]:
        """The memories, best first."""
        return list(map(Reached, self.docs.tolist(), self.activations.tolist()))

    def path(self, doc: int) -> tuple[Link, ...]:
        """The entities that led to a memory, from the first on."""
        return self.neighbourhood.path(doc)


def begin(view: View, seeds: Sequence[Seed], *, rules: Sequence[Rule], bounds: Bounds) -> Neighbourhood:
    """Hop 0: the memories that mention a query's entities, and the entities that relations join to these.

    Args:
        view: what may be seen.
        seeds: as `graph.linking.link` gives them.
        rules: what follows from the relations that memories state.
        bounds: the caps.
    """
    near = Neighbourhood(seeds, view.memories, bounds)
    if seeds:
        near.begin(view)
        near.joined = _relations(view, near, rules)
    return near


def walk(view: View, near: Neighbourhood, anchors: Mapping[int, float], *, rules: Sequence[Rule]) -> Walk:
    """The memories around what `begin` found and some anchors, nearest first.

    Args:
        view: what may be seen.
        near: what `begin` found, with the caps; the walk adds to it. With `max_hops` 0 only memories that mention a
            seed, and anchors, are returned.
        anchors: eligible memories close to the query, with their strength > 0; may be empty.
        rules: what follows from the relations that memories state.
    """
    started, bounds = monotonic(), near.bounds
    if anchors:
        near.anchor(anchors)
    hops = 0
    while hops < bounds.max_hops and near.room > 0 and monotonic() - started < bounds.time_s:
        if hops and near.memories >= bounds.enough:
            break
        top = near.best(_narrowed(bounds.memories_per_hop, hops)) if hops or not anchors else dict(anchors)
        relations = _relations(view, near, rules) if hops else near.joined
        if not (top or relations):
            break
        entities = _narrowed(bounds.entities_per_hop, hops)
        if near.onward(view, top, relations, entities=entities, from_anchors=bool(anchors) and not hops):
            hops += 1
        elif anchors and not hops:  # they name nothing: the way from the seeds is left
            anchors = {}
        else:
            break
    return Walk(*near.activations(), hops, near)


def _narrowed(width: int, hops: int) -> int:
    """Half as wide with every hop, but not a single file: one wrong step would end the walk."""
    return max(min(width, 2), width >> hops)


def _relations(view: View, near: Neighbourhood, rules: Sequence[Rule]) -> dict[int, JoinedEdge]:
    """Entities that relations join to the last ones, each with the strongest of these relations."""
    active = near.frontier
    if not any(map(view.graph.has_relations, active)):
        return {}
    strongest: dict[int, JoinedEdge] = {}
    # Strongest first; two entities may be joined by several, inferred from each other.
    for edge in joined(view.graph, view.eligible, active, rules=rules, known=near.entities):
        strongest.setdefault(edge.entity, edge)
    return strongest
