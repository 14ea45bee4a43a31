"""Personalised PageRank on a small bipartite graph, in numpy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

DAMPING = 0.5
"""Share of the activation that walks on; Gutierrez et al., HippoRAG, NeurIPS 2024."""


def bipartite_pagerank(
    edges: NDArray[np.float64], restart: NDArray[np.float64], memory_restart: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Activation of memories when a walker restarts at entities and memories; exact, no iteration.

    p = (1 - d) restart + d P p (Haveliwala, WWW 2002), with P the step along the edges, taken with
    probability proportional to their weight. On two sides that is m = (1 - d) s + d T e for memories
    and e = (1 - d) r + d U m for entities, so e solves (I - d^2 U T) e = (1 - d) (r + d U s): one
    small linear system, never singular. An entity without edges sends its walkers back to the
    restart at the entities; at a memory without edges they end.

    Args:
        edges: weights >= 0, shape (memories, entities).
        restart: r, shape (entities,), >= 0.
        memory_restart: s, shape (memories,), >= 0; with `restart` it sums to 1.

    Returns:
        shape (memories,), the memories' share of the stationary distribution.
    """
    out_of_memory = edges.sum(axis=1, keepdims=True)
    out_of_entity = edges.sum(axis=0)
    stuck = out_of_entity == 0
    to_memory = edges / np.where(stuck, 1.0, out_of_entity)
    to_entity = (edges / np.where(out_of_memory == 0, 1.0, out_of_memory)).T
    back = restart / (restart.sum() or 1.0)
    system = np.eye(len(restart)) - DAMPING**2 * (to_entity @ to_memory) - DAMPING * np.outer(back, stuck)
    entities = np.linalg.solve(system, (1 - DAMPING) * (restart + DAMPING * (to_entity @ memory_restart)))
    memories: NDArray[np.float64] = (1 - DAMPING) * memory_restart + DAMPING * (to_memory @ entities)
    return np.maximum(memories, 0.0)
