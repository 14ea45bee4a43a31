"""Entities that a caller has merged: which entity each is shown as.

What memories mention and state is stored under the entity that their texts name; it is shown under the root of that
entity's merges. So undoing a merge restores what was, and what was written in between goes where its texts say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import LiteralString

import numpy as np

from graph.forward_chaining import Stated
from graph.segments import NarrowEdges
from postgres.connection import Connection, fetch

Roots = Mapping[int, int]
"""The root of each entity that is merged into another; roots have none."""

_ROOTS: LiteralString = "select entity, root from entity_merge where ns = %(ns)s"


async def read_roots(conn: Connection, ns: int) -> dict[int, int]:
    """The roots of a namespace's merged entities."""
    return dict(await fetch(conn, _ROOTS, {"ns": ns}, binary=True))


def moved(before: Roots, now: Roots) -> set[int]:
    """The entities as which something was shown before that is now shown as another."""
    return {before.get(entity, entity) for entity, _ in before.items() ^ now.items()}


def unified(edges: NarrowEdges, relations: Iterable[Stated], roots: Roots) -> tuple[NarrowEdges, list[Stated]]:
    """Edges and relations with roots in the place of merged entities, each once.

    Of the edges of several entities to one memory the heaviest is kept. A relation between two entities that are now
    one is dropped.
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


def _unified_relations(relations: Iterable[Stated], roots: Roots) -> list[Stated]:
    shown: dict[Stated, None] = {}
    for stated in relations:
        source, target = roots.get(stated.source, stated.source), roots.get(stated.target, stated.target)
        if source != target or stated.source == stated.target:
            shown[stated._replace(source=source, target=target)] = None
    return list(shown)
