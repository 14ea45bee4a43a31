"""Entities, mentions, aliases and relations in Postgres, written and removed with their memories.

Locks: `write` holds its entities `for key share` until its transaction ends, `remove` its own `for no
key update` and those that nothing mentions any more `for update`, all in ascending order. So a mention never loses its
entity, and no two of these calls wait for each other in a circle.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

from psycopg import AsyncConnection

from graph.arrays import array_text
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
class _Entity:
    key: str
    name: str
    type: str
    strength: int


class _Batch:
    """The rows of some memories, each once."""

    def __init__(self, docs: Sequence[DocGraph], aliases: dict[str, int]) -> None:
        """Gather; `aliases` are the stored ones that name a single entity, by key."""
        self.entities: dict[int, _Entity] = {}
        self.mentions: dict[tuple[int, int], float] = {}
        self.aliases: dict[tuple[str, int, int], str] = {}
        self.relations: set[tuple[int, str, int, int]] = set()
        self.redirected: set[int] = set()
        for doc in docs:
            self._add_given(doc)
        redirects = self._redirects(aliases)
        for doc in docs:
            for mention in doc.mentions:
                self._mention(doc.doc, mention, redirects.get(mention.key))

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
        self._entity(entity, _Entity(key, name, type_ or "thing", strength))
        self.mentions[entity, doc] = GIVEN_WEIGHT
        return entity

    def _redirects(self, stored: dict[str, int]) -> dict[str, int]:
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
        entity = entity_id(mention.key) if redirect is None else redirect
        if redirect is None:
            self._entity(entity, _Entity(mention.key, mention.name, mention.type, _STRENGTH.get(mention.type, 0)))
        elif redirect not in self.entities:
            self.redirected.add(redirect)
        at = (entity, doc)
        self.mentions[at] = max(mention.weight, self.mentions.get(at, 0.0))

    def _entity(self, entity: int, row: _Entity) -> None:
        known = self.entities.get(entity)
        if known is None or row.strength > known.strength:
            self.entities[entity] = row


_ALIASES: LiteralString = """
    select key, min(entity) from entity_alias where ns = %(ns)s and key = any(%(keys)s)
    group by key having count(distinct entity) = 1
"""
_LOCK_ENTITIES: LiteralString = """
    select entity, type from entity where ns = %(ns)s and entity = any(%(entities)s::bigint[])
    order by entity for key share
"""
_ADD_ENTITIES: LiteralString = """
    insert into entity (ns, entity, key, name, type)
    select %(ns)s, * from unnest(%(entities)s::bigint[], %(keys)s::text[], %(names)s::text[], %(types)s::text[])
        as e (entity, key, name, type)
    order by e.entity
    on conflict (ns, entity) do nothing
    returning entity
"""
_RENAME_ENTITIES: LiteralString = """
    with locked as (
        select entity from entity where ns = %(ns)s and entity = any(%(entities)s::bigint[])
        order by entity for no key update
    )
    update entity set name = e.name, type = e.type
    from unnest(%(entities)s::bigint[], %(names)s::text[], %(types)s::text[]) as e (entity, name, type)
    where ns = %(ns)s and entity.entity = e.entity and e.entity in (select entity from locked)
"""
_ADD_TOKENS: LiteralString = """
    insert into entity_token (ns, token, entity)
    select %(ns)s, * from unnest(%(tokens)s::text[], %(entities)s::bigint[]) as t (token, entity)
    order by t.token, t.entity
    on conflict (ns, token, entity) do nothing
"""
_ADD_ALIASES: LiteralString = """
    insert into entity_alias (ns, key, entity, doc, name)
    select %(ns)s, * from unnest(%(keys)s::text[], %(entities)s::bigint[], %(docs)s::integer[], %(names)s::text[])
        as a (key, entity, doc, name)
    order by a.key, a.entity, a.doc
    on conflict (ns, key, entity, doc) do nothing
"""
_ADD_MENTIONS: LiteralString = """
    insert into mention (ns, entity, doc, weight)
    select %(ns)s, * from unnest(%(entities)s::bigint[], %(docs)s::integer[], %(weights)s::real[])
    on conflict (ns, entity, doc) do update set weight = greatest(mention.weight, excluded.weight)
"""
_ADD_RELATIONS: LiteralString = """
    insert into relation (ns, source, type, target, doc)
    select %(ns)s, * from unnest(%(sources)s::bigint[], %(types)s::text[], %(targets)s::bigint[], %(docs)s::integer[])
    on conflict (ns, source, target, type, doc) do nothing
"""


async def write(conn: AsyncConnection[Any], ns: int, docs: Sequence[DocGraph]) -> None:
    """Add memories to the graph, in the caller's transaction.

    A found mention whose key is a known alias of exactly one entity counts for that entity.

    Args:
        conn: inside a transaction at READ COMMITTED, not in autocommit.
        ns: number of the namespace.
        docs: one per memory; at most a few thousand at once. A memory already in the graph must
            have been removed first, or its old mentions stay beside the new.
    """
    keys = sorted({m.key for doc in docs for m in doc.mentions})
    aliases = dict(await (await conn.execute(_ALIASES, {"ns": ns, "keys": keys})).fetchall()) if keys else {}
    batch = _Batch(docs, aliases)
    lost = await _hold_entities(conn, ns, batch)
    if lost:
        stored = {key: entity for key, entity in aliases.items() if entity not in lost}
        batch = _Batch(docs, stored)
        await _hold_entities(conn, ns, batch)
    if batch.mentions:
        pairs = sorted(batch.mentions)
        params = {
            "ns": ns,
            "entities": array_text(entity for entity, _ in pairs),
            "docs": array_text(doc for _, doc in pairs),
            "weights": array_text(round(batch.mentions[pair], 4) for pair in pairs),
        }
        await conn.execute(_ADD_MENTIONS, params)
    if batch.aliases:
        rows = sorted((*key, name) for key, name in batch.aliases.items())
        columns = dict(zip(("keys", "entities", "docs", "names"), map(list, zip(*rows, strict=True)), strict=True))
        await conn.execute(_ADD_ALIASES, {"ns": ns, **columns})
    if batch.relations:
        edges = sorted(batch.relations)
        columns = dict(zip(("sources", "types", "targets", "docs"), map(list, zip(*edges, strict=True)), strict=True))
        await conn.execute(_ADD_RELATIONS, {"ns": ns, **columns})


async def _hold_entities(conn: AsyncConnection[Any], ns: int, batch: _Batch) -> set[int]:
    """Make the batch's entities exist and hold them until the transaction ends.

    Returns the entities known by alias alone that a concurrent delete has taken away.
    """
    held: dict[int, str] = {}
    wanted = batch.entities.keys() | batch.redirected
    missing = sorted(wanted)
    while missing:
        rows = await conn.execute(_LOCK_ENTITIES, {"ns": ns, "entities": array_text(missing)})
        held.update(await rows.fetchall())
        new = {entity: batch.entities[entity] for entity in missing if entity not in held and entity in batch.entities}
        added = await _add_entities(conn, ns, new)
        held.update((entity, new[entity].type) for entity in added)
        missing = sorted(new.keys() - added)
    stronger = {
        entity: row
        for entity, row in batch.entities.items()
        if row.type != held[entity] and row.strength > _STRENGTH.get(held[entity], _STRENGTH["name"])
    }
    if stronger:
        params = {
            "ns": ns,
            "entities": list(stronger),
            "names": [row.name for row in stronger.values()],
            "types": [row.type for row in stronger.values()],
        }
        await conn.execute(_RENAME_ENTITIES, params)
        await _add_tokens(conn, ns, stronger)
    return batch.redirected - held.keys()


async def _add_entities(conn: AsyncConnection[Any], ns: int, new: dict[int, _Entity]) -> set[int]:
    """Insert entities; those that another transaction has inserted meanwhile are not in the answer."""
    if not new:
        return set()
    params = {
        "ns": ns,
        "entities": array_text(new),
        "keys": [row.key for row in new.values()],
        "names": [row.name for row in new.values()],
        "types": [row.type for row in new.values()],
    }
    added = {entity for (entity,) in await (await conn.execute(_ADD_ENTITIES, params)).fetchall()}
    await _add_tokens(conn, ns, {entity: row for entity, row in new.items() if entity in added})
    return added


async def _add_tokens(conn: AsyncConnection[Any], ns: int, entities: dict[int, _Entity]) -> None:
    rows = [
        (token, entity)
        for entity, row in entities.items()
        if row.type not in TOKENIZED_TYPES
        for token in name_tokens(row.key)
    ]
    if rows:
        params = {
            "ns": ns,
            "tokens": [token for token, _ in rows],
            "entities": array_text(entity for _, entity in rows),
        }
        await conn.execute(_ADD_TOKENS, params)


_REMOVE_MENTIONS: LiteralString = """
    with gone as (
        delete from mention where ns = %(ns)s and doc = any(%(docs)s) returning entity
    )
    select distinct entity from gone
"""
_REMOVE_RELATIONS: LiteralString = """
    with gone as (
        delete from relation where ns = %(ns)s and doc = any(%(docs)s) returning source, target
    )
    select source from gone union select target from gone
"""
_REMOVE_ALIASES: LiteralString = "delete from entity_alias where ns = %(ns)s and doc = any(%(docs)s)"
_LOCK_TOUCHED: LiteralString = """
    select entity from entity where ns = %(ns)s and entity = any(%(entities)s::bigint[])
    order by entity for no key update
"""
_UNUSED: LiteralString = """
    select e.entity from unnest(%(entities)s::bigint[]) as e (entity)
    where not exists (select from mention m where m.ns = %(ns)s and m.entity = e.entity)
      and not exists (select from relation r where r.ns = %(ns)s and r.source = e.entity)
      and not exists (select from relation r where r.ns = %(ns)s and r.target = e.entity)
"""
_LOCK_UNUSED: LiteralString = """
    select entity from entity where ns = %(ns)s and entity = any(%(entities)s::bigint[]) order by entity for update
"""
_REMOVE_ENTITIES: LiteralString = """
    delete from entity e where e.ns = %(ns)s and e.entity = any(%(entities)s::bigint[])
      and not exists (select from mention m where m.ns = %(ns)s and m.entity = e.entity)
      and not exists (select from relation r where r.ns = %(ns)s and r.source = e.entity)
      and not exists (select from relation r where r.ns = %(ns)s and r.target = e.entity)
    returning e.entity
"""
_REMOVE_ENTITY_ALIASES: LiteralString = """
    delete from entity_alias where ns = %(ns)s and entity = any(%(entities)s::bigint[])
"""
_REMOVE_ENTITY_TOKENS: LiteralString = """
    delete from entity_token where ns = %(ns)s and entity = any(%(entities)s::bigint[])
"""


async def remove(conn: AsyncConnection[Any], ns: int, docs: Collection[int]) -> None:
    """Take memories out of the graph, in the caller's transaction at READ COMMITTED.

    Entities that no memory mentions and no relation joins any more go with them, and so do their
    aliases and tokens.
    """
    if not docs:
        return
    params = {"ns": ns, "docs": sorted(docs)}
    touched = {entity for (entity,) in await (await conn.execute(_REMOVE_MENTIONS, params)).fetchall()}
    touched |= {entity for (entity,) in await (await conn.execute(_REMOVE_RELATIONS, params)).fetchall()}
    await conn.execute(_REMOVE_ALIASES, params)
    # Of two that take an entity's last mentions at once, the later one waits here and sees that none is left.
    # Writers do not wait: their locks and this one go together.
    await _ids(conn, _LOCK_TOUCHED, ns, touched)
    unused = await _ids(conn, _UNUSED, ns, touched)
    unused = await _ids(conn, _LOCK_UNUSED, ns, unused)
    # Only a statement that starts after the locks were had sees mentions committed while it waited.
    unused = await _ids(conn, _REMOVE_ENTITIES, ns, unused)
    if unused:
        ids = {"ns": ns, "entities": array_text(unused)}
        await conn.execute(_REMOVE_ENTITY_ALIASES, ids)
        await conn.execute(_REMOVE_ENTITY_TOKENS, ids)


async def _ids(conn: AsyncConnection[Any], sql: LiteralString, ns: int, entities: Collection[int]) -> list[int]:
    if not entities:
        return []
    rows = await conn.execute(sql, {"ns": ns, "entities": array_text(sorted(entities))})
    return [entity for (entity,) in await rows.fetchall()]


_COUNTS: LiteralString = """
    select (select count(*) from entity where ns = %(ns)s),
           (select count(*) from mention where ns = %(ns)s),
           (select count(*) from relation where ns = %(ns)s)
"""


async def counts(conn: AsyncConnection[Any], ns: int) -> tuple[int, int, int]:
    """Entities, mentions and relations of a namespace."""
    row = await (await conn.execute(_COUNTS, {"ns": ns})).fetchone()
    if row is None:
        raise RuntimeError("an aggregate without groups gave no row")
    entities, mentions, relations = row
    return int(entities), int(mentions), int(relations)
