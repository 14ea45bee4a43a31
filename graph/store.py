"""Entities, mentions, aliases and relations in Postgres, written with their memories.

Locks, each kind taken in one pass by ascending id and kept until the transaction ends:

1. `for key share`, the entities that are mentioned; new ones are inserted. Writers share these, however many mention
   an entity, and wait only for who is adding the same new one, or for a lock of the third kind.
2. `for no key update`, those that a memory no longer mentions, and those that get another name.
3. `for update`, those that nothing mentions any more, before they are deleted. This waits for nobody: an entity that
   another writer holds is about to be mentioned.

So a mention never loses its entity, and nobody waits in a circle: who has locks of the third kind waits for none, who
takes those of the second waits only for others who do, at a higher id.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, LiteralString

from psycopg import AsyncConnection
from psycopg.errors import SerializationFailure

from graph.arrays import array_text, text_array
from graph.gathering import Batch, DocGraph, EntityRow, GivenEntity, GivenRelation
from graph.removal import remove_unused, unlink

__all__ = ["DocGraph", "GivenEntity", "GivenRelation", "counts", "remove", "write"]

_ALIASES: LiteralString = """
    select key, min(entity) from entity_alias where ns = %(ns)s and key = any(%(keys)s)
    group by key having count(distinct entity) = 1
"""
_LOCK_ENTITIES: LiteralString = """
    select entity, type from entity where ns = %(ns)s and entity = any(%(entities)s::bigint[])
    order by entity for key share
"""
_ADD_ENTITIES: LiteralString = """
    with added as (
        insert into entity (ns, entity, key, name, type)
        select %(ns)s, *
        from unnest(%(entities)s::bigint[], %(keys)s::text[], %(names)s::text[], %(types)s::text[])
            as e (entity, key, name, type)
        order by e.entity
        on conflict (ns, entity) do nothing
        returning entity
    ), linked as (
        insert into entity_token (ns, token, entity)
        select %(ns)s, t.token, t.entity
        from unnest(%(tokens)s::text[], %(token_entities)s::bigint[]) as t (token, entity) join added using (entity)
        order by t.token, t.entity
        on conflict (ns, token, entity) do nothing
    )
    select entity from added
"""
_LOCK_CHANGING: LiteralString = """
    select entity, type from entity where ns = %(ns)s and entity = any(%(entities)s::bigint[])
    order by entity for no key update
"""
_DESCRIBE_ENTITIES: LiteralString = """
    with described as (
        update entity set name = e.name, type = e.type
        from unnest(%(entities)s::bigint[], %(names)s::text[], %(types)s::text[]) as e (entity, name, type)
        where ns = %(ns)s and entity.entity = e.entity
    )
    insert into entity_token (ns, token, entity)
    select %(ns)s, * from unnest(%(tokens)s::text[], %(token_entities)s::bigint[]) as t (token, entity)
    order by t.token, t.entity
    on conflict (ns, token, entity) do nothing
"""
# A memory's ordinal is new, so nothing that these name can be there.
_ADD_LINKS: LiteralString = """
    with named as (
        insert into entity_alias (ns, key, entity, doc, name)
        select %(ns)s, *
        from unnest(%(alias_keys)s::text[], %(alias_entities)s::bigint[], %(alias_docs)s::integer[],
            %(aliases)s::text[]) as a (key, entity, doc, name)
    ), related as (
        insert into relation (ns, source, type, target, doc)
        select %(ns)s, *
        from unnest(%(sources)s::bigint[], %(types)s::text[], %(targets)s::bigint[], %(relation_docs)s::integer[])
            as r (source, type, target, doc)
    )
    insert into mention (ns, entity, doc, weight)
    select %(ns)s, * from unnest(%(entities)s::bigint[], %(docs)s::integer[], %(weights)s::real[])
        as m (entity, doc, weight)
"""


async def write(
    conn: AsyncConnection[Any], ns: int, docs: Sequence[DocGraph], *, removed: Collection[int] = ()
) -> None:
    """Add memories to the graph and take others out of it, in the caller's transaction; at most one call of it.

    A found mention whose key is a known alias of exactly one entity counts for that entity. Entities that no memory
    mentions any more go with those taken out, and so do their aliases and tokens.

    Args:
        conn: inside a transaction at READ COMMITTED, not in autocommit.
        ns: number of the namespace.
        docs: one per memory, none of which is in the graph; at most a few thousand at once.
        removed: ordinals of those to take out.

    Raises:
        UniqueViolation: a memory is in the graph already.
        SerializationFailure: others took entities away at this moment; the transaction is to be started again.
    """
    touched = await unlink(conn, ns, removed) if removed else []
    keys = sorted({m.key for doc in docs for m in doc.mentions})
    aliases = (
        dict(await (await conn.execute(_ALIASES, {"ns": ns, "keys": text_array(keys)})).fetchall()) if keys else {}
    )
    batch = Batch(docs, aliases)
    types = await _hold_entities(conn, ns, batch)
    stronger = {entity for entity, row in batch.entities.items() if row.is_stronger(types[entity])}
    # Of two that take an entity's last mentions at once, the later one waits here and sees that none is left.
    types = await _lock(conn, _LOCK_CHANGING, ns, stronger.union(touched))
    await _describe(conn, ns, {at: batch.entities[at] for at in stronger if batch.entities[at].is_stronger(types[at])})
    if batch.mentions:  # each alias and relation brings mentions of what it joins
        await conn.execute(_ADD_LINKS, {"ns": ns, **_links(batch)})
    await remove_unused(conn, ns, touched)


async def remove(conn: AsyncConnection[Any], ns: int, docs: Collection[int]) -> None:
    """Take memories out of the graph, as `write` does."""
    await write(conn, ns, (), removed=docs)


def _links(batch: Batch) -> dict[str, Any]:
    """The columns of a batch's mentions, aliases and relations, in the order of their keys."""
    pairs = sorted(batch.mentions)
    aliases = sorted(batch.aliases.items())
    relations = sorted(batch.relations)
    return {
        "entities": array_text(entity for entity, _ in pairs),
        "docs": array_text(doc for _, doc in pairs),
        "weights": array_text(round(batch.mentions[pair], 4) for pair in pairs),
        "alias_keys": text_array([key for (key, _, _), _ in aliases]),
        "alias_entities": array_text(entity for (_, entity, _), _ in aliases),
        "alias_docs": array_text(doc for (_, _, doc), _ in aliases),
        "aliases": text_array([name for _, name in aliases]),
        "sources": array_text(source for source, _, _, _ in relations),
        "types": text_array([type_ for _, type_, _, _ in relations]),
        "targets": array_text(target for _, _, target, _ in relations),
        "relation_docs": array_text(doc for _, _, _, doc in relations),
    }


async def _hold_entities(conn: AsyncConnection[Any], ns: int, batch: Batch) -> dict[int, str]:
    """Make the batch's entities exist and hold them until the transaction ends; their types."""
    wanted = batch.entities.keys() | batch.redirected
    held = await _lock(conn, _LOCK_ENTITIES, ns, wanted)
    new = {entity: row for entity, row in batch.entities.items() if entity not in held}
    added = await _add_entities(conn, ns, new)
    held |= {entity: new[entity].type for entity in added}
    held |= await _lock(conn, _LOCK_ENTITIES, ns, new.keys() - added)  # another transaction has added them meanwhile
    if wanted - held.keys():  # to insert more now would be out of order
        raise SerializationFailure("other writers took entities away at this moment")
    return held


async def _lock(conn: AsyncConnection[Any], sql: LiteralString, ns: int, entities: Collection[int]) -> dict[int, str]:
    """Lock those of some entities that are there; their types."""
    if not entities:
        return {}
    rows = await conn.execute(sql, {"ns": ns, "entities": array_text(sorted(entities))})
    return dict(await rows.fetchall())


async def _describe(conn: AsyncConnection[Any], ns: int, stronger: Mapping[int, EntityRow]) -> None:
    """Give entities that are there other names and types."""
    if stronger:
        await conn.execute(_DESCRIBE_ENTITIES, _columns(ns, stronger))


async def _add_entities(conn: AsyncConnection[Any], ns: int, new: Mapping[int, EntityRow]) -> set[int]:
    """Insert entities; those that another transaction has inserted meanwhile are not in the answer."""
    if not new:
        return set()
    return {entity for (entity,) in await (await conn.execute(_ADD_ENTITIES, _columns(ns, new))).fetchall()}


def _columns(ns: int, entities: Mapping[int, EntityRow]) -> dict[str, Any]:
    """The columns of entities, and their tokens with, beside each, whose it is."""
    rows = entities.values()
    tokens = [(token, entity) for entity, row in entities.items() for token in row.tokens]
    return {
        "ns": ns,
        "entities": array_text(entities),
        "keys": text_array([row.key for row in rows]),
        "names": text_array([row.name for row in rows]),
        "types": text_array([row.type for row in rows]),
        "tokens": text_array([token for token, _ in tokens]),
        "token_entities": array_text(entity for _, entity in tokens),
    }


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
