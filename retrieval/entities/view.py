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
"""Number of strongest ties followed from one entity."""

MAX_EXPANDED = 32
"""Most entities of one hop from which the next one starts, the most strongly tied first."""

DEADLINE_S = 1.0
"""No further entity is expanded after this time."""


def entity_code(entity: int) -> str:
    """An entity's number as callers see it: 16 hexadecimal digits.

    >>> entity_code(-1), entity_number(entity_code(-2))
    ('ffffffffffffffff', -2)
    """
    return f"{entity % 2**64:016x}"


def entity_number(code: str) -> int | None:
    """The inverse of `entity_code`; None for an invalid code."""
    if len(code) != 16 or not set(code) <= set("0123456789abcdef"):
        return None
    return (int(code, 16) + 2**63) % 2**64 - 2**63


@dataclass(slots=True)
class EntityView:
    """The visible graph of a namespace with the names of its entities.

    Attributes:
        seen: the memories that count; held so that the index keeps their data.
        words: whether words, dates and identifiers are shown beside names.
        ties: those that `expand` has read, by the two entities in ascending order; of the readings from both ends, the
            one with more evidence.
        is_cut: whether a limit or the deadline has left something out.
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
        """The entity with that id, or the one it was merged into; raises NotFound if there is none."""
        number = entity_number(code)
        named = None if number is None else (await self.described({number})).get(number)
        shown = None if named is None else (await self.described({named.root})).get(named.root)
        if shown is None:
            name = self.snapshot.namespace.name
            raise NotFound(f"there is no entity with id {code!r} in namespace {name!r}; /entities lists names and ids")
        return shown

    def roots(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The entities that some entities are shown as, same shape."""
        roots = self.snapshot.index.roots
        return np.array([roots.get(number, number) for number in numbers.tolist()], np.int64) if roots else numbers

    async def described(self, numbers: Collection[int]) -> dict[int, StoredEntity]:
        """The existing entities among these, by number."""
        unknown = set(numbers) - self._known.keys()
        if unknown:
            self._known |= await entities.describe(self.conn, self.ns, unknown)
        return {number: self._known[number] for number in numbers if number in self._known}

    async def shown(self, numbers: Collection[int]) -> dict[int, StoredEntity]:
        """The existing entities among these that are names, or any if words are shown, by number."""
        known = await self.described(numbers)
        return {number: each for number, each in known.items() if self.words or each.type not in TOKENIZED_TYPES}

    def may_be_shown(self, entities: NDArray[np.int64], always: Collection[int] = ()) -> NDArray[np.bool_]:
        """Mask of the entities that are shown, as far as the index knows, same shape; those in `always` are.

        Used so that the many words tied to a hub do not displace names among its ties.
        """
        if self.words:
            return np.ones(len(entities), np.bool_)
        names = {each for each, row in self.snapshot.index.names.rows_of(entities.tolist()).items() if row.is_name}
        return np.isin(entities, [*names, *always])

    async def expand(self, start: int, *, hops: int, always: Collection[int] = ()) -> dict[int, tuple[int, float]]:
        """Walk from an entity along its ties, continuing from the strongest of each hop; those in `always` are shown.

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
        """The summary of an entity described before; its mentions are counted unless given."""
        count = len(self.graph.docs_of(entity)) if mentions is None else mentions
        stored = self._known[entity]
        return EntitySummary(id=entity_code(entity), name=stored.name, type=stored.type, mentions=count)

    def named(self, entity: int) -> EntityName:
        """The name of an entity described before, as an end of a relation."""
        return EntityName(id=entity_code(entity), name=self._known[entity].name)

    def ids(self, docs: Sequence[int]) -> list[str]:
        """The ids of memories, given by slot."""
        return self.snapshot.index.memories.ids.get(np.array(docs, np.int64))

    def edges(self, ties: Iterable[Tie]) -> list[EntityEdge]:
        """Ties as edges: that both are met together, then their stated relations."""
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
