"""A bounded walk from a query's entities to the memories around them.

Hop 0 collects the memories that mention the seeds. The first hop starts from anchors (memories known to be close to
the query, such as the best of the other legs) or, without any, from the best memories so far. It goes to the entities
they mention and to those related to the seeds, and collects their memories. Further hops start from the best memories
of the last one. Personalised PageRank over the collected nodes scores each memory (HippoRAG, NeurIPS 2024; the anchors
are LinearRAG's passage nodes, arXiv 2510.10114).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic

from graph.inference import JoinedEdge, joined
from graph.neighbourhood import Bounds, GraphView, Neighbourhood
from graph.resolution import Seed
from graph.rules import Rule


def begin(view: GraphView, seeds: Sequence[Seed], *, rules: Sequence[Rule], bounds: Bounds) -> Neighbourhood:
    """Hop 0: the memories that mention the query's entities, and the entities related to these by `rules`."""
    neighbourhood = Neighbourhood(seeds, view.memories, bounds)
    if seeds:
        neighbourhood.begin(view)
        neighbourhood.joined = _relations(view, neighbourhood, rules)
    return neighbourhood


def walk(view: GraphView, neighbourhood: Neighbourhood, anchors: Mapping[int, float], *, rules: Sequence[Rule]) -> None:
    """Extend the result of `begin` by a walk from it and some anchors.

    With `max_hops` 0 it has only memories that mention a seed, and anchors; `anchors` has the strength > 0 of eligible
    memories close to the query.
    """
    started, bounds = monotonic(), neighbourhood.bounds
    if anchors:
        neighbourhood.anchor(anchors)
    while (
        (hops := neighbourhood.hops) < bounds.max_hops
        and neighbourhood.room > 0
        and monotonic() - started < bounds.time_s
    ):
        if hops and neighbourhood.memories >= bounds.enough:
            break
        top = neighbourhood.best(_narrowed(bounds.memories_per_hop, hops)) if hops or not anchors else dict(anchors)
        relations = _relations(view, neighbourhood, rules) if hops else neighbourhood.joined
        if not (top or relations):
            break
        entities = _narrowed(bounds.entities_per_hop, hops)
        if neighbourhood.onward(view, top, relations, entities=entities, from_anchors=bool(anchors) and not hops):
            continue
        if not anchors or hops:
            break
        anchors = {}  # they mention nothing: continue from the seeds


def _narrowed(width: int, hops: int) -> int:
    """The width halved with every hop, but at least two: a single wrong step must not end the walk."""
    return max(min(width, 2), width >> hops)


def _relations(view: GraphView, neighbourhood: Neighbourhood, rules: Sequence[Rule]) -> dict[int, JoinedEdge]:
    """The entities related to those of the last hop, each with its strongest relation."""
    active = neighbourhood.frontier
    if not view.graph.relations.related(active):
        return {}
    strongest: dict[int, JoinedEdge] = {}
    # Strongest first; two entities may be joined by several edges, inferred from each other.
    known = neighbourhood.entities if neighbourhood.hops else active  # the seeds
    for edge in joined(view.graph, view.eligible, active, rules=rules, known=known):
        strongest.setdefault(edge.entity, edge)
    return strongest
