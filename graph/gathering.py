"""The rows of entities, mentions, aliases and relations that some memories come to; no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graph.extraction import ExtractedMention
from graph.names import entity_id, name_tokens, normalize, singular_key

GIVEN_WEIGHT = 1.0
"""Weight of a mention that the caller stated."""

TOKENIZED_TYPES = frozenset({"phrase", "term", "date", "identifier"})
"""Types of found entities that are linked whole only, never by a part of their name."""

_STRENGTH = {type_: at for at, type_ in enumerate(("term", "phrase", "date", "identifier", "name", "speaker", "title"))}
_GIVEN_STRENGTH = len(_STRENGTH)


@dataclass(frozen=True, slots=True)
class GivenEntity:
    """An entity that the caller says a memory mentions."""

    name: str
    type: str = "thing"
    aliases: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class GivenRelation:
    """A typed edge between two named entities."""

    source: str
    type: str
    target: str


@dataclass(frozen=True, slots=True)
class DocGraph:
    """What one memory adds to the graph."""

    doc: int
    mentions: Sequence[ExtractedMention] = ()
    entities: Sequence[GivenEntity] = ()
    relations: Sequence[GivenRelation] = ()


@dataclass(frozen=True, slots=True)
class EntityRow:
    """An entity as it would be stored; of two descriptions the stronger one stays."""

    key: str
    name: str
    type: str
    strength: int

    @property
    def tokens(self) -> tuple[str, ...]:
        """The parts of its name by which it is linked too."""
        return () if self.type in TOKENIZED_TYPES else name_tokens(self.key)

    def is_stronger(self, stored_type: str) -> bool:
        """Whether it should replace a stored description of that type; types of callers are as strong as names."""
        return self.type != stored_type and self.strength > _STRENGTH.get(stored_type, _STRENGTH["name"])


class Batch:
    """The rows of some memories, each once.

    Attributes:
        entities: by id, those that the memories name.
        mentions: weight by entity and memory.
        aliases: name by key, entity and memory.
        relations: (source, type, target, memory).
        redirected: entities that are mentioned by a stored alias alone.
    """

    def __init__(self, docs: Sequence[DocGraph], aliases: Mapping[str, int]) -> None:
        """Gather; `aliases` are the stored ones that name a single entity, by key."""
        self.entities: dict[int, EntityRow] = {}
        self.mentions: dict[tuple[int, int], float] = {}
        self.aliases: dict[tuple[str, int, int], str] = {}
        self.relations: set[tuple[int, str, int, int]] = set()
        self.redirected: set[int] = set()
        for doc in docs:
            self._add_given(doc)
        redirects = self._redirects(aliases)
        for doc in docs:
            for mention in doc.mentions:
                self._mention(doc.doc, mention, redirects.get(mention.key) if redirects else None)

    def _add_given(self, doc: DocGraph) -> None:
        for given in doc.entities:
            entity = self._given(given.name, given.type, doc.doc)
            if entity is not None:
                own = normalize(given.name)
                for key, name in ((singular_key(own), given.name), *((normalize(a), a) for a in given.aliases)):
                    if key and key != own:
                        self.aliases[key, entity, doc.doc] = name
        for relation in doc.relations:
            source = self._given(relation.source, None, doc.doc)
            target = self._given(relation.target, None, doc.doc)
            if source is not None and target is not None:
                self.relations.add((source, relation.type, target, doc.doc))

    def _given(self, name: str, type_: str | None, doc: int) -> int | None:
        key = normalize(name)
        if not key:
            return None
        entity = entity_id(key)
        strength = _GIVEN_STRENGTH if type_ is not None else _STRENGTH["name"]
        self._entity(entity, key, name, type_ or "thing", strength)
        self.mentions[entity, doc] = GIVEN_WEIGHT
        return entity

    def _redirects(self, stored: Mapping[str, int]) -> dict[str, int]:
        """Alias key -> the one entity it means, for keys that are not given entities themselves."""
        meanings: dict[str, set[int]] = {key: {entity} for key, entity in stored.items()}
        for key, entity, _ in self.aliases:
            meanings.setdefault(key, set()).add(entity)
        return {
            key: next(iter(entities))
            for key, entities in meanings.items()
            if len(entities) == 1 and entity_id(key) not in self.entities
        }

    def _mention(self, doc: int, mention: ExtractedMention, redirect: int | None) -> None:
        name, key, type_, weight = mention
        entity = entity_id(key) if redirect is None else redirect
        if redirect is None:
            self._entity(entity, key, name, type_, _STRENGTH.get(type_, 0))
        elif redirect not in self.entities:
            self.redirected.add(redirect)
        at = (entity, doc)
        if weight > self.mentions.get(at, 0.0):
            self.mentions[at] = weight

    def _entity(self, entity: int, key: str, name: str, type_: str, strength: int) -> None:
        known = self.entities.get(entity)
        if known is None or strength > known.strength:
            self.entities[entity] = EntityRow(key, name, type_, strength)
