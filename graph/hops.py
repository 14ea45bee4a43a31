"""What a walk may see and how far it may go: a hub of a million mentions costs what one of a hundred does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graph.adjacency import Adjacency


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
