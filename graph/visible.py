"""The entity graph of the visible memories: mentions, stated relations, and entities mentioned together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from itertools import chain, islice
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph.adjacency import Adjacency, in_mask, is_in_mask
from graph.forward_chaining import Key, StatedRelation
from graph.resolution import MENTIONS_CAP

Mask = NDArray[np.bool_]

RECENT = 200
"""Number of latest memories of an entity that are searched for entities mentioned with it."""

STATED_SCANNED = 1_000
"""Most relations read of an entity as source, and as many as target, to find visible ones."""

MAX_EVIDENCE = 5
"""Most memories listed for a tie or a relation, latest first."""

STATED_STRENGTH = 2.0
"""What a stated relation adds to the strength of a tie; a shared memory adds the other entity's idf, at most 1."""

MATRIX_DOCS = 2_000
"""Columns of the incidence matrix that are multiplied at once."""


class Tie(NamedTuple):
    """The connection of an entity to another.

    Attributes:
        shared: number of memories that mention both, among the latest `RECENT` of `entity`.
        docs: the latest of these, at most `MAX_EVIDENCE`.
        stated: relations between the two, in either direction.
        strength: orders the ties.
    """

    entity: int
    other: int
    shared: int
    docs: tuple[int, ...]
    stated: tuple[StatedRelation, ...]
    strength: float


class Relation(NamedTuple):
    """A relation with all memories that state it, the latest first."""

    source: int
    relation: str
    target: int
    docs: tuple[int, ...]


class VisibleGraph:
    """The part of a namespace's graph that visible memories support."""

    def __init__(self, graph: Adjacency, visible: NDArray[np.bool_]) -> None:
        """Restrict `graph` to a mask of memories."""
        self._graph = graph
        self._visible = visible
        self.size = int(visible.sum())
        """The number of visible memories."""

    def counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All entities that are mentioned, and the number of memories that mention each, most first, ties by id."""
        return self._graph.mention_counts(self._visible)

    def docs_of(self, entity: int) -> NDArray[np.int64]:
        """The memories that mention an entity, latest addition first."""
        docs = self._graph.docs_of(entity)
        return docs[in_mask(docs, self._visible)]

    def relations_of(self, entity: int) -> tuple[list[Relation], bool]:
        """The relations of an entity, most often stated first, and whether there may be more."""
        stated, is_cut = self._stated(entity)
        return grouped(stated), is_cut

    def ties_of(
        self, entity: int, *, most: int, recent: int = RECENT, counts: Callable[[NDArray[np.int64]], Mask] | None = None
    ) -> tuple[list[Tie], bool]:
        """The strongest ties of an entity, strongest first, and whether there may be more.

        `counts` selects the entities that may be the other end; without it all may.
        """
        docs = self.docs_of(entity)
        others, shared, latest = self._met(entity, docs[:recent])
        stated: dict[int, list[StatedRelation]] = defaultdict(list)
        relations, is_cut = self._stated(entity)
        for each in relations:
            stated[each.target if each.source == entity else each.source].append(each)
        stated.pop(entity, None)
        met = dict(zip(others.tolist(), zip(shared.tolist(), latest, strict=True), strict=True))
        entities = np.array(list(met.keys() | stated.keys()), np.int64)
        if counts is not None:
            entities = entities[counts(entities)]
        mentions = self._graph.mentions(entities, cap=MENTIONS_CAP)
        ties = []
        for other, count in zip(entities.tolist(), mentions.tolist(), strict=True):
            in_both, evidence = met.get(other, (0, ()))
            said = tuple(stated.get(other, ()))
            idf = log(1 + self.size / max(count, 1)) / log(1 + self.size) if self.size else 0.0
            ties.append(Tie(entity, other, in_both, evidence, said, in_both * idf + STATED_STRENGTH * len(said)))
        ties.sort(key=lambda tie: (-tie.strength, tie.other))
        return ties[:most], is_cut or len(docs) > recent or len(ties) > most

    def relations_among(self, entities: Collection[int]) -> tuple[list[Relation], bool]:
        """The relations between some entities, and whether there may be more."""
        inside, is_cut = set(entities), False
        stated: set[StatedRelation] = set()
        for entity in entities:
            found, cut = self._stated(entity)
            stated.update(each for each in found if each.source in inside and each.target in inside)
            is_cut |= cut
        return grouped(stated), is_cut

    def _stated(self, entity: int) -> tuple[list[StatedRelation], bool]:
        ways = self._graph.relations.of_entity(entity)
        every = chain.from_iterable(islice(way, STATED_SCANNED) for way in ways)
        stated = [each for each in every if is_in_mask(each.doc, self._visible)]
        return list(dict.fromkeys(stated)), any(len(way) > STATED_SCANNED for way in ways)

    def _met(
        self, entity: int, docs: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], list[tuple[int, ...]]]:
        """The entities mentioned in the same memories, with the number of these and the latest ones."""
        entities, mentioned_in, _ = self._graph.mentions_in(docs)
        others = entities != entity
        entities, mentioned_in = entities[others], mentioned_in[others]
        order = np.lexsort((-mentioned_in, entities))
        entities, mentioned_in = entities[order], mentioned_in[order]
        met, starts, shared = np.unique(entities, return_index=True, return_counts=True)
        latest = [
            tuple(mentioned_in[start : start + min(count, MAX_EVIDENCE)].tolist())
            for start, count in zip(starts.tolist(), shared.tolist(), strict=True)
        ]
        return met, shared, latest


def grouped(stated: Collection[StatedRelation]) -> list[Relation]:
    """Relations, each once with the memories that state it, most often stated first, then latest."""
    alike: dict[Key, list[StatedRelation]] = defaultdict(list)
    for each in sorted(stated, key=lambda one: (-one.doc, one)):
        alike[each.key].append(each)
    relations = [Relation(*same[0][:3], tuple(dict.fromkeys(each.doc for each in same))) for same in alike.values()]
    return sorted(relations, key=lambda one: (-len(one.docs), -one.docs[0], one))


def co_mentions(docs_of: Sequence[NDArray[np.int64]], *, most_docs: int) -> tuple[NDArray[np.int64], bool]:
    """The number of memories that mention both of each pair, shape (entities, entities), and whether there are more.

    `docs_of` has the memories of each entity; only the latest `most_docs` of all count. The diagonal has the number for
    each entity itself.
    """
    every = np.unique(np.concatenate(docs_of)) if docs_of else np.empty(0, np.int64)
    kept = every[-most_docs:]
    counts = np.zeros((len(docs_of), len(docs_of)), np.float32)
    for first in range(0, len(kept), MATRIX_DOCS):
        some = kept[first : first + MATRIX_DOCS]
        incidence = np.zeros((len(docs_of), len(some)), np.float32)
        for row, docs in enumerate(docs_of):
            incidence[row, np.searchsorted(some, docs[(docs >= some[0]) & (docs <= some[-1])])] = 1
        counts += incidence @ incidence.T
    return counts.astype(np.int64), len(every) > len(kept)
