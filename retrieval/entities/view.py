"""The part of a namespace's entity graph that one request may see, and how it is shown on the wire."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from graph.extraction import TOKENIZED_TYPES
from graph.visible import MAX_EVIDENCE, Relation, Tie, VisibleGraph, grouped
from postgres.connection import Connection
from retrieval.errors import NotFound
from retrieval.index.snapshot import NamespaceSnapshot
from retrieval.legs.base import SearchView
from retrieval.store import entities
from retrieval.store.entities import StoredEntity
from retrieval.types.entity import EntityEdge, EntityName, EntitySummary

MAX_TIES = 300
"""Strongest ties of one entity that are followed."""

MAX_EXPANDED = 32
"""Most entities of one hop from which the next one starts, the most strongly tied first."""

DEADLINE_S = 1.0
"""No further entity is expanded after so many seconds."""


def entity_code(entity: int) -> str:
    """An entity's number as callers see it: 16 hexadecimal digits.

    >>> entity_code(-1), entity_number(entity_code(-2))
    ('ffffffffffffffff', -2)
    """
    return f"{entity % 2**64:016x}"


def entity_number(code: str) -> int | None:
    """The inverse of `entity_code`; None for what is no such code."""
    if len(code) != 16 or not set(code) <= set("0123456789abcdef"):
        return None
    return (int(code, 16) + 2**63) % 2**64 - 2**63


@dataclass(slots=True)
class EntityView:
    """The visible graph of a namespace with the names of its entities.

    Attributes:
        seen: the memories that count; held, so that the index keeps what it knows of these.
        words: whether words, dates and identifiers are shown beside names.
        ties: those that `expand` has read, by the two entities in ascending order; each is read from one end, and that
            with more evidence is kept.
        is_cut: whether a limit or the deadline has left something out of it.
    """

    conn: Connection
    snapshot: NamespaceSnapshot
    seen: SearchView
    graph: VisibleGraph
    words: bool = False
    ties: dict[tuple[int, int], Tie] = field(default_factory=dict)
    is_cut: bool = False
    _known: dict[int, StoredEntity] = field(default_factory=dict)

    @property
    def ns(self) -> int:
        """The number of the namespace."""
        return self.snapshot.namespace.ns

    async def entity(self, code: str) -> StoredEntity:
        """The entity of that id, or the one that it was merged into; raises NotFound if there is none."""
        number = entity_number(code)
        named = None if number is None else (await self.described({number})).get(number)
        shown = None if named is None else (await self.described({named.root})).get(named.root)
        if shown is None:
            name = self.snapshot.namespace.name
            raise NotFound(f"there is no entity with id {code!r} in namespace {name!r}; /entities lists names and ids")
        return shown

    def roots(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The entities as which some are shown, shape as given."""
        roots = self.snapshot.index.roots
        return np.array([roots.get(number, number) for number in numbers.tolist()], np.int64) if roots else numbers

    async def described(self, numbers: Collection[int]) -> dict[int, StoredEntity]:
        """Those of the entities that exist, by number."""
        unknown = set(numbers) - self._known.keys()
        if unknown:
            self._known |= await entities.describe(self.conn, self.ns, unknown)
        return {number: self._known[number] for number in numbers if number in self._known}

    async def shown(self, numbers: Collection[int]) -> dict[int, StoredEntity]:
        """The same of those that are names; of all if words are shown too."""
        known = await self.described(numbers)
        return {number: each for number, each in known.items() if self.words or each.type not in TOKENIZED_TYPES}

    def may_be_shown(self, entities: NDArray[np.int64], always: Collection[int] = ()) -> NDArray[np.bool_]:
        """Which of some entities are shown, as far as the index knows, shape as given; those in `always` are.

        So that the words of a hub, of which there are many, do not take the places of names among its ties.
        """
        if self.words:
            return np.ones(len(entities), np.bool_)
        names = {each for each, row in self.snapshot.index.names.rows_of(entities.tolist()).items() if row.is_name}
        return np.isin(entities, [*names, *always])

    async def expand(self, start: int, *, hops: int, always: Collection[int] = ()) -> dict[int, tuple[int, float]]:
        """Go from an entity to those tied to it, from the strongest of each hop on; those in `always` are shown.

        Returns the hop of each entity reached, 0 for the start, and how strongly it is tied to the start, in (0, 1].
        """
        began = monotonic()
        reached = {start: (0, 1.0)}
        frontier = [start]
        for hop in range(1, hops + 1):
            found: dict[int, float] = {}
            for entity in frontier:
                if monotonic() - began > DEADLINE_S:
                    self.is_cut = True
                    break
                ties, cut = self.graph.ties_of(entity, most=MAX_TIES, counts=partial(self.may_be_shown, always=always))
                self.is_cut |= cut
                known = await self.shown([tie.other for tie in ties])
                shown = [tie for tie in ties if tie.other in always or tie.other in known]
                for tie in shown:
                    pair = min(tie.entity, tie.other), max(tie.entity, tie.other)
                    if pair not in self.ties or tie.shared > self.ties[pair].shared:
                        self.ties[pair] = tie
                    strength = reached[entity][1] * tie.strength / shown[0].strength
                    if tie.other not in reached:
                        found[tie.other] = max(strength, found.get(tie.other, 0.0))
                await asyncio.sleep(0)  # let other requests run
            ranked = sorted(found, key=lambda entity: (-found[entity], entity))
            reached |= {entity: (hop, found[entity]) for entity in ranked}
            frontier = ranked[:MAX_EXPANDED]
            self.is_cut |= hop < hops and len(ranked) > MAX_EXPANDED
        return reached

    def summary(self, entity: int, mentions: int | None = None) -> EntitySummary:
        """An entity that was described before; its mentions are counted unless they are given."""
        count = len(self.graph.docs_of(entity)) if mentions is None else mentions
        stored = self._known[entity]
        return EntitySummary(id=entity_code(entity), name=stored.name, type=stored.type, mentions=count)

    def named(self, entity: int) -> EntityName:
        """An entity that was described before, as an end of a relation."""
        return EntityName(id=entity_code(entity), name=self._known[entity].name)

    def ids(self, docs: Sequence[int]) -> list[str]:
        """The ids of memories, given by slot."""
        return self.snapshot.index.memories.ids.get(np.array(docs, np.int64))

    def edges(self, ties: Iterable[Tie]) -> list[EntityEdge]:
        """Ties as edges: that both are met, then what is stated of them."""
        edges = []
        for tie in ties:
            if tie.shared:
                edges.append(self.edge(tie.entity, None, tie.other, tie.shared, tie.docs))
            edges += map(self.stated_edge, grouped(tie.stated))
        return edges

    def stated_edge(self, relation: Relation) -> EntityEdge:
        """A relation as an edge."""
        return self.edge(relation.source, relation.relation, relation.target, len(relation.docs), relation.docs)

    def edge(self, source: int, type_: str | None, target: int, memories: int, docs: Sequence[int]) -> EntityEdge:
        """An edge with the first of its memories."""
        return EntityEdge(
            source=entity_code(source),
            target=entity_code(target),
            type=type_,
            memories=memories,
            evidence=self.ids(docs[:MAX_EVIDENCE]),
        )
