"""The visible memories and the limits of a walk: a hub of a million mentions costs as much as one of a hundred."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graph.adjacency import Adjacency


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """The limits of a walk.

    Attributes:
        max_hops: hops beyond the memories that mention the seeds.
        enough: number of memories after which only the first hop is still made.
        memories_per_seed: most memories taken per seed, the latest first.
        memories_per_entity: most memories taken per other entity.
        entities_per_hop: most entities expanded in the first hop; halved with each further hop.
        memories_per_hop: best memories whose entities the first hop looks at; halved with each further hop.
        mentions_per_memory: most entities looked at per such memory, by falling weight.
        nodes: most memories and entities in total.
        scanned_per_seed, scanned_per_entity: most mentions read to find eligible memories.
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


@dataclass(frozen=True, slots=True)
class View:
    """The part of a namespace that a walk may see: the memories that meet the query's filters.

    Attributes:
        graph: of the namespace.
        memories: number of memories in the namespace, or an upper bound.
        eligible: mask over all ordinals of the graph; an ineligible memory is neither returned nor walked through, and
            its relations are not followed.
    """

    graph: Adjacency
    memories: int
    eligible: NDArray[np.bool_]
