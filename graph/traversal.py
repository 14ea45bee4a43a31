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
from itertools import starmap
from time import monotonic
from typing import NamedTuple

from graph.hops import Bounds, View, of_seeds, onward
from graph.inference import JoinedEdge, joined
from graph.linking import Seed
from graph.neighbourhood import Link, Neighbourhood, Step
from graph.rules import Rule

__all__ = ["Bounds", "Reached", "View", "Walk", "begin", "walk"]


class Reached(NamedTuple):
    """A memory that the walk came to: activation in (0, 1], the best has 1."""

    doc: int
    activation: float


@dataclass(frozen=True, slots=True)
class Walk:
    """What a walk found, best first, and how it got there."""

    reached: Sequence[Reached]
    hops: int
    neighbourhood: Neighbourhood

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
    near = Neighbourhood(seeds, view.memories, max_nodes=bounds.nodes)
    if seeds:
        near.add(Step(near.frontier, of_seeds(view, seeds, bounds)))
        near.joined = _relations(view, near, rules)
    return near


def walk(
    view: View,
    near: Neighbourhood,
    anchors: Mapping[int, float],
    *,
    rules: Sequence[Rule],
    bounds: Bounds,
) -> Walk:
    """The memories around what `begin` found and some anchors, nearest first.

    Args:
        view: what may be seen.
        near: what `begin` found; the walk adds to it.
        anchors: eligible memories close to the query, with their strength > 0; may be empty.
        rules: what follows from the relations that memories state.
        bounds: the caps. With `max_hops` 0 only memories that mention a seed, and anchors, are returned.
    """
    started = monotonic()
    if anchors:
        near.anchor(anchors)
    hops = 0
    while hops < bounds.max_hops and near.room > 0 and monotonic() - started < bounds.time_s:
        if hops and len(near.docs) >= bounds.enough:
            break
        top = dict(near.best(_narrowed(bounds.memories_per_hop, hops))) if hops or not anchors else dict(anchors)
        relations = _relations(view, near, rules) if hops else near.joined
        if not (top or relations):
            break
        entities = _narrowed(bounds.entities_per_hop, hops)
        met, edges = onward(view, top, relations, known=near.entities, entities=entities, bounds=bounds)
        if met:
            near.add(Step(met, edges, top, from_anchors=bool(anchors) and not hops))
            hops += 1
        elif anchors and not hops:  # they name nothing: the way from the seeds is left
            anchors = {}
        else:
            break
    return Walk(list(starmap(Reached, near.activations())), hops, near)


def _narrowed(width: int, hops: int) -> int:
    """Half as wide with every hop, but not a single file: one wrong step would end the walk."""
    return max(min(width, 2), width >> hops)


def _relations(view: View, near: Neighbourhood, rules: Sequence[Rule]) -> dict[int, JoinedEdge]:
    """Entities that relations join to the last ones, each with the strongest of these relations."""
    active = {met.entity: met.strength for met in near.frontier}
    strongest: dict[int, JoinedEdge] = {}
    # Strongest first; two entities may be joined by several, inferred from each other.
    for edge in joined(view.graph, view.eligible, active, rules=rules, known=near.entities):
        strongest.setdefault(edge.entity, edge)
    return strongest
