"""Entities that a caller has merged: which entity each is shown as.

Mentions and relations are stored under the entity that the texts name, and shown under the root of its merges. So
undoing a merge restores the previous state, and memories written in between belong to the entity their texts name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import LiteralString

import numpy as np

from graph.forward_chaining import StatedRelation
from graph.segments import NarrowEdges
from postgres.connection import Connection, fetch

Roots = Mapping[int, int]
"""The root of each entity that is merged into another; roots have none."""

_ROOTS: LiteralString = "select entity, root from entity_merge where ns = %(ns)s"


async def read_roots(conn: Connection, ns: int) -> dict[int, int]:
    """The roots of a namespace's merged entities."""
    return dict(await fetch(conn, _ROOTS, {"ns": ns}, binary=True))


def moved(before: Roots, now: Roots) -> set[int]:
    """The entities under which something was shown before that is now shown under another."""
    return {before.get(entity, entity) for entity, _ in before.items() ^ now.items()}


def unified(
    edges: NarrowEdges, relations: Iterable[StatedRelation], roots: Roots
) -> tuple[NarrowEdges, list[StatedRelation]]:
    """Edges and relations with merged entities replaced by their roots, each once.

    Of several entities' edges to one memory the heaviest is kept. A relation between two entities that are now one is
    dropped.
    """
    return (_unified_edges(edges, roots), _unified_relations(relations, roots)) if roots else (edges, list(relations))


def _unified_edges(edges: NarrowEdges, roots: Roots) -> NarrowEdges:
    entities, docs, weights = edges
    merged = np.array(sorted(roots), np.int64)
    shown_as = np.array([roots[entity] for entity in merged.tolist()], np.int64)
    places = np.minimum(np.searchsorted(merged, entities), len(merged) - 1)
    is_merged = merged[places] == entities
    if not is_merged.any():
        return edges
    entities = np.where(is_merged, shown_as[places], entities)
    touched = np.flatnonzero(np.isin(entities, shown_as))
    touched = touched[np.lexsort((-weights[touched], docs[touched], entities[touched]))]
    again = (np.diff(entities[touched]) == 0) & (np.diff(docs[touched]) == 0)
    kept = np.ones(len(entities), np.bool_)
    kept[touched[1:][again]] = False
    return entities[kept], docs[kept], weights[kept]


def _unified_relations(relations: Iterable[StatedRelation], roots: Roots) -> list[StatedRelation]:
    shown: dict[StatedRelation, None] = {}
    for stated in relations:
        source, target = roots.get(stated.source, stated.source), roots.get(stated.target, stated.target)
        if source != target or stated.source == stated.target:
            shown[stated._replace(source=source, target=target)] = None
    return list(shown)
