"""The rows of entities, mentions, aliases and relations that a batch of memories adds; no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from graph.extraction import TOKENIZED_TYPES, ExtractedMention
from graph.names import entity_id, name_tokens, normalize, singular_key

GIVEN_WEIGHT = 1.0
"""Weight of a mention given by the caller."""


_STRENGTH = {"term": 0, "phrase": 1, "date": 2, "identifier": 3, "name": 4, "thing": 5, "speaker": 6, "title": 7}
_TYPED_STRENGTH = len(_STRENGTH)
FOUND_TYPES = _STRENGTH.keys()
"""Types assigned by extraction, and the default for entities that callers give; any other is a caller's own."""


@dataclass(frozen=True, slots=True)
class GivenEntity:
    """An entity given by the caller as mentioned in a memory."""

    name: str
    type: str = "thing"
    aliases: Sequence[str] = ()

    def alias_keys(self) -> Iterator[tuple[str, str]]:
        """The keys of its aliases, each with the name that it comes from; includes the singular of its own name."""
        own = normalize(self.name)
        for key, name in ((singular_key(own), self.name), *((normalize(alias), alias) for alias in self.aliases)):
            if own and key and key != own:
                yield key, name


@dataclass(frozen=True, slots=True)
class GivenRelation:
    """A typed relation between two named entities."""

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

    def may_be_aliases(self) -> Iterator[str]:
        """The keys by which it mentions and relates entities, which may be aliases; given entities never are."""
        for mention in self.mentions:
            yield mention.key
        for relation in self.relations:
            yield normalize(relation.source)
            yield normalize(relation.target)


@dataclass(frozen=True, slots=True)
class EntityRow:
    """An entity to store; of two descriptions of an entity the stronger is kept."""

    key: str
    name: str
    type: str

    @property
    def strength(self) -> int:
        """Decides which of two descriptions is kept: a caller's type is the strongest."""
        return _STRENGTH.get(self.type, _TYPED_STRENGTH)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The words of the name that link to the entity; empty for types linked by their whole name."""
        return () if self.type in TOKENIZED_TYPES else name_tokens(self.key)

    @property
    def is_shown_otherwise(self) -> bool:
        """Whether it is not a common phrase whose name is its key."""
        return self.type not in TOKENIZED_TYPES or self.name != self.key

    def is_stronger(self, stored_type: str) -> bool:
        """Whether it replaces a stored description of that type; only another caller's type replaces a caller's."""
        stored = _STRENGTH.get(stored_type, _TYPED_STRENGTH)
        return self.strength > stored or (self.strength == stored == _TYPED_STRENGTH and self.type != stored_type)


class GraphRows:
    """The rows of a batch, each once.

    Attributes:
        entities: by id.
        mentions: weight by (entity, memory).
        aliases: name by (key, entity, memory).
        relations: (source, type, target, memory).
        redirected: entities mentioned or related only by a stored alias.
    """

    def __init__(self, docs: Sequence[DocGraph], aliases: Mapping[str, int]) -> None:
        """Collect the rows; `aliases` maps the stored alias keys with a single meaning to their entity."""
        self.entities: dict[int, EntityRow] = {}
        self.mentions: dict[tuple[int, int], float] = {}
        self.aliases: dict[tuple[str, int, int], str] = {}
        self.relations: set[tuple[int, str, int, int]] = set()
        self.redirected: set[int] = set()
        self._meanings = {key: {entity} for key, entity in aliases.items()}
        for doc in docs:  # in order: an alias counts from its memory on
            self._given: set[int] = set()
            self._given_aliases: dict[str, set[int]] = {}
            for given in doc.entities:
                self._add_given(given, doc.doc)
            for relation in doc.relations:
                self._relate(relation, doc.doc)
            for mention in doc.mentions:
                self._mention(doc.doc, mention)
            for key, meanings in self._given_aliases.items():
                self._meanings.setdefault(key, set()).update(meanings)

    def _add_given(self, given: GivenEntity, doc: int) -> None:
        own = normalize(given.name)
        if not own:
            return
        entity = entity_id(own)
        self._entity(entity, own, given.name, given.type)
        self._given.add(entity)
        self.mentions[entity, doc] = GIVEN_WEIGHT
        for key, name in given.alias_keys():
            self.aliases[key, entity, doc] = name
            self._given_aliases.setdefault(key, set()).add(entity)

    def _relate(self, relation: GivenRelation, doc: int) -> None:
        named = [(normalize(name), name) for name in (relation.source, relation.target)]
        ends = [self._mention(doc, ExtractedMention(name, key, "thing", GIVEN_WEIGHT)) for key, name in named if key]
        # Drop a relation between two names of one entity, but keep one from a name to itself.
        if len(ends) == 2 and (ends[0] != ends[1] or named[0][0] == named[1][0]):
            self.relations.add((ends[0], relation.type, ends[1], doc))

    def _meant(self, key: str) -> int:
        """The entity that a key of a memory stands for: the one that it is an alias of, if there is just one.

        An entity that the memory gives is never an alias. Aliases that other memories gave count if they had one
        meaning, and if no entity with that name has a caller's type.
        """
        own, meanings = entity_id(key), self._meanings.get(key, set())
        if own in self._given:
            return own
        if len(meanings) != 1 or (own in self.entities and self.entities[own].strength == _TYPED_STRENGTH):
            meanings = set()
        meanings = meanings | self._given_aliases.get(key, set())
        return next(iter(meanings)) if len(meanings) == 1 else own

    def _mention(self, doc: int, mention: ExtractedMention) -> int:
        """Mention an entity, or the one that its key is an alias of; returns the entity mentioned."""
        name, key, type_, weight = mention
        entity = self._meant(key)
        if entity == entity_id(key):
            self._entity(entity, key, name, type_)
        elif entity not in self.entities:
            self.redirected.add(entity)
        self.mentions[entity, doc] = max(weight, self.mentions.get((entity, doc), 0.0))
        return entity

    def _entity(self, entity: int, key: str, name: str, type_: str) -> None:
        row, known = EntityRow(key, name, type_), self.entities.get(entity)
        if known is None or row.is_stronger(known.type):
            self.entities[entity] = row
