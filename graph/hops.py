"""The steps of a walk, with a limit on each fan: a hub of a million mentions costs what one of a hundred does."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.adjacency import Adjacency, Edges
from graph.inference import JoinedEdge
from graph.linking import MENTIONS_CAP, Seed
from graph.neighbourhood import Met


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """How far a walk may go.

    Attributes:
        max_hops: hops beyond the memories that mention the seeds.
        enough: memories after which no further hop is made beyond the first.
        memories_per_seed: most memories taken of a seed, the latest first.
        memories_per_entity: the same of any other entity.
        entities_per_hop: most entities expanded in the first hop, half as many in each further one.
        memories_per_hop: best memories whose entities the first hop looks at, then half as many.
        mentions_per_memory: most entities looked at of each of them, the weightiest.
        nodes: most memories and entities altogether.
        scanned_per_seed, scanned_per_entity: most mentions read to find eligible memories.
        time_s: no further hop starts after this long.
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


@dataclass(frozen=True, slots=True)
class View:
    """What a walk may see: the memories of a namespace that meet a query's conditions.

    Attributes:
        graph: of the namespace.
        memories: its size, or an upper bound of it.
        eligible: by ordinal, for every ordinal in the graph; a memory that is not eligible is neither returned nor
            walked through, and a relation that it states is not followed.
    """

    graph: Adjacency
    memories: int
    eligible: NDArray[np.bool_]


def of_seeds(view: View, seeds: Sequence[Seed], bounds: Bounds) -> Edges:
    """Hop 0: the edges between the seeds and their latest memories.

    A hub's latest are few of its own, so its edges to the memories of the other seeds are there too.
    """
    entities = np.array([seed.entity for seed in seeds], np.int64)
    edges = view.graph.latest_of(
        entities, view.eligible, scanned=bounds.scanned_per_seed, most=bounds.memories_per_seed
    )
    hubs = [seed.entity for seed in seeds if seed.mentions > bounds.memories_per_seed]
    if not hubs or len(seeds) == 1:
        return edges
    scores = np.array([seed.score for seed in seeds])
    numbers, docs, weights = edges
    order = np.argsort(entities)
    of_edge = scores[order[np.searchsorted(entities, numbers, sorter=order)]]
    kept = _strongest(docs, of_edge * weights, bounds.nodes)
    others = view.graph.weightiest_of(kept, most=bounds.nodes)
    return _each_once(edges, tuple(column[np.isin(others[0], hubs)] for column in others))


def onward(
    view: View,
    top: Mapping[int, float],
    joined: Mapping[int, JoinedEdge],
    *,
    known: Sequence[int],
    entities: int,
    bounds: Bounds,
) -> tuple[list[Met], Edges]:
    """The entities to which some memories and relations lead, most telling first, and their edges.

    A mention's weight counts squared: a name leads further than a word.

    Args:
        view: what may be seen.
        top: memories with the strength in which they activate what they mention.
        joined: entities that relations lead to, with the strongest one.
        known: entities already met.
        entities: most of them.
        bounds: the caps.

    Returns:
        Entities, the strongest with strength 1, and the edges between them and memories.
    """
    touched = view.graph.weightiest_of(np.array(list(top), np.int64), most=bounds.mentions_per_memory)
    pulls = _pulls(touched, top, set(known), most=3 * entities // 2)
    for entity, edge in joined.items():
        pulls[entity] = pulls.get(entity, 0.0) + edge.strength
    numbers = np.array(list(pulls), np.int64)
    mentions = view.graph.mentions(numbers, cap=MENTIONS_CAP)
    strengths = {
        entity: (pull * log(1 + view.memories / max(count, 1)), count)
        for (entity, pull), count in zip(pulls.items(), mentions.tolist(), strict=True)
        if count > 1 or entity in joined
    }
    fan = sorted(strengths, key=lambda entity: (-strengths[entity][0], entity))[:entities]
    found = view.graph.latest_of(
        np.array(fan, np.int64), view.eligible, scanned=bounds.scanned_per_entity, most=bounds.memories_per_entity
    )
    wanted = {*fan, *known}
    relevant = np.array([entity in wanted for entity in touched[0].tolist()], np.bool_)
    edges = _each_once(found, tuple(column[relevant] for column in touched))
    strongest = max((strengths[entity][0] for entity in fan), default=0.0) or 1.0
    met = [Met(e, strengths[e][1], strengths[e][0] / strongest, joined.get(e)) for e in fan]
    return met, edges


def _pulls(touched: Edges, top: Mapping[int, float], known: Collection[int], *, most: int) -> dict[int, float]:
    """How strongly each entity that is new is pulled by the strongest of its memories; the strongest entities."""
    pulls: dict[int, float] = {}
    for entity, doc, weight in zip(*(column.tolist() for column in touched), strict=True):
        if entity not in known:
            pulls[entity] = max(pulls.get(entity, 0.0), top[doc] * weight * weight)
    return {entity: pulls[entity] for entity in sorted(pulls, key=lambda e: (-pulls[e], e))[:most]}


def _strongest(docs: NDArray[np.int64], strengths: NDArray[np.float64], most: int) -> NDArray[np.int64]:
    """The memories with the greatest sums, the latest of equals first."""
    each, inverse = np.unique(docs, return_inverse=True)
    sums = np.bincount(inverse, weights=strengths, minlength=len(each))
    return each[np.lexsort((-each, -sums))[:most]]


def _each_once(edges: Edges, more: tuple[NDArray[Any], ...]) -> Edges:
    numbers, docs = np.concatenate([edges[0], more[0]]), np.concatenate([edges[1], more[1]])
    weights = np.concatenate([edges[2], more[2]])
    order = np.lexsort((docs, numbers))
    numbers, docs, weights = numbers[order], docs[order], weights[order]
    first = np.ones(len(numbers), np.bool_)
    first[1:] = (numbers[1:] != numbers[:-1]) | (docs[1:] != docs[:-1])
    return numbers[first], docs[first], weights[first]
