"""The edges of a graph in memory, read from the kernels one by one; a walk reads them without leaving C."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from graph.adjacency import Adjacency
from native import address, function

Edges = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""Entities, memories and weights, one of each per edge."""

_latest = function("trivet_latest_of", "PPqqqqPP", "q")


def edges_of(mentions: Mapping[int, Mapping[int, float]]) -> Edges:
    """Weights by memory and entity as columns."""
    rows = [(entity, doc, weight) for doc, weights in mentions.items() for entity, weight in weights.items()]
    entities, docs, weights = zip(*rows, strict=True) if rows else ((), (), ())
    return np.array(entities, np.int64), np.array(docs, np.int64), np.array(weights, np.float64)


def latest_edges(
    graph: Adjacency, entities: NDArray[np.int64], eligible: NDArray[np.bool_], *, scanned: int, most: int
) -> Edges:
    """The edges of some entities, none twice, to the latest eligible memories that mention them.

    At most `scanned` memories of each are looked at and `most` of them taken.
    """
    parts = [_room(0)]
    for entity in entities.tolist():
        numbers, docs, weights = _room(most)
        numbers[:] = entity
        room = address(eligible), len(eligible), entity, scanned, most, address(docs), address(weights)
        found = _latest(graph.layout, *room)
        parts.append((numbers[:found], docs[:found], weights[:found]))
    entities, docs, weights = map(np.concatenate, zip(*parts, strict=True))
    return entities, docs, weights


def weightiest_edges(graph: Adjacency, docs: NDArray[np.int64], *, most: int) -> Edges:
    """The edges of some memories, none twice, to the entities mentioned with the greatest weight."""
    parts = [_room(0), *(tuple(column[:most] for column in graph.mentions_in(doc)) for doc in docs.reshape(-1, 1))]
    entities, docs, weights = map(np.concatenate, zip(*parts, strict=True))
    return entities, docs, weights


def _room(edges: int) -> Edges:
    return np.empty(edges, np.int64), np.empty(edges, np.int64), np.empty(edges, np.float64)
