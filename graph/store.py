"""Writes entities, mentions, aliases and relations to Postgres, in the transaction of their memories.

Locks, each kind taken in one statement by ascending id and held until the transaction ends:

0. Advisory locks, shared on aliases that texts use, exclusive on those about to be removed.
1. `for key share` on the entities that are mentioned; missing ones are inserted. The lock is shared, so writers wait
   only for another one that inserts the same entity, or for a lock of the third kind.
2. `for no key update` on entities that a memory no longer mentions, that lose an alias or a merge made by hand, or
   that get another name.
3. `for update` on entities without mentions, before they are deleted. Locked rows are skipped, not waited for: an
   entity that another writer holds is about to be mentioned.

So no mention loses its entity, except for a race in PostgreSQL: a writer that upgrades a lock from the second kind to
the third may go unnoticed by one that takes the first at that moment. Both then hold it, and the former detects that at
the end.

Two writers that remove aliases and use each other's may deadlock; the database then makes one start over. Otherwise
there is no deadlock: a holder of locks of the third kind waits for nothing but that race, and one that takes locks of
the second kind waits only for holders of such locks with a higher id.
"""

from __future__ import annotations

import asyncio
from binascii import crc32
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, LiteralString, NamedTuple, TypeVar

from psycopg.errors import TransactionRollback

from graph.extraction import TOKENIZED_TYPES
from graph.graph_rows import FOUND_TYPES, DocGraph, EntityRow, GraphRows
from graph.names import entity_id, normalize
from postgres.arrays import array_text, text_array
from postgres.connection import Connection, fetch

T = TypeVar("T")

_MANY_NAMES = 1_000
"""More names of a batch are read in a thread."""

# The class number is arbitrary and separates these locks from other advisory locks.
_USE_ALIASES: LiteralString = """
    select pg_advisory_xact_lock_shared(8324, bucket) from unnest(%(buckets)s::integer[]) as locks (bucket)
"""
_CHANGE_ALIASES = _USE_ALIASES.replace("lock_shared", "lock")
_ALIAS_BUCKETS = 128
# A name to which a caller gave a type is never an alias.
_ALIASES: LiteralString = """
    select a.key, min(a.entity)
    from unnest(%(keys)s::text[], %(own)s::bigint[]) as k (key, own)
    join entity_alias a on a.ns = %(ns)s and a.key = k.key and a.doc <> all(%(gone)s::integer[])
    where not exists (
        select from entity e where e.ns = %(ns)s and e.entity = k.own and e.type <> all(%(found)s::text[])
    )
    group by a.key having count(distinct a.entity) = 1
"""
_GIVEN_ALIASES: LiteralString = """
    select distinct key, entity from entity_alias where ns = %(ns)s and doc = any(%(numbers)s::integer[])
"""
_NOT_GIVEN: LiteralString = """
    select a.key, a.entity from unnest(%(keys)s::text[], %(entities)s::bigint[]) as a (key, entity)
    where not exists (
        select from entity_alias b where b.ns = %(ns)s and b.key = a.key and b.entity = a.entity
            and b.doc <> all(%(but)s::integer[])
    )
"""
_LOCK: LiteralString = """
    select entity, type from entity where ns = %(ns)s and entity = any(%(numbers)s::bigint[]) order by entity for
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
# Ordinals are new, so these rows cannot exist yet.
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
_REMOVE_LINKS: LiteralString = """
    with unmentioned as (
        delete from mention where ns = %(ns)s and doc = any(%(numbers)s::integer[]) returning entity
    ), unrelated as (
        delete from relation where ns = %(ns)s and doc = any(%(numbers)s::integer[]) returning source, target
    ), unnamed as (
        delete from entity_alias where ns = %(ns)s and doc = any(%(numbers)s::integer[])
    )
    select entity from unmentioned union select source from unrelated union select target from unrelated
"""
# An entity may have very many mentions; the last thousand of its memories with given entities decide.
_GIVEN_TYPES: LiteralString = """
    select e.entity, given.name, given.type
    from unnest(%(numbers)s::bigint[]) as e (entity) cross join lateral (
        select d.doc, d.entities from mention m join memory d on d.ns = m.ns and d.doc = m.doc
        where m.ns = %(ns)s and m.entity = e.entity and d.entities <> '[]' order by m.doc desc limit 1000
    ) as latest cross join jsonb_to_recordset(latest.entities) as given (name text, type text)
    where given.type <> 'thing' order by latest.doc
"""
_SET_TYPES: LiteralString = """
    update entity set type = e.type from unnest(%(entities)s::bigint[], %(types)s::text[]) as e (entity, type)
    where ns = %(ns)s and entity.entity = e.entity
"""
_TOKENIZED = array_text(sorted(TOKENIZED_TYPES))
_IS_UNUSED: LiteralString = """
    not exists (select from mention m where m.ns = %(ns)s and m.entity = e.entity)
    and not exists (select from relation r where r.ns = %(ns)s and r.source = e.entity)
    and not exists (select from relation r where r.ns = %(ns)s and r.target = e.entity)
    and not exists (select from entity_alias a where a.ns = %(ns)s and a.entity = e.entity and a.doc = -1)
    and not exists (select from entity_merge g where g.ns = %(ns)s and g.entity = e.entity)
    and not exists (select from entity_merge g where g.ns = %(ns)s and g.target = e.entity)
"""
_LOCK_UNUSED: LiteralString = (
    "select e.entity from entity e where e.ns = %(ns)s and e.entity = any(%(numbers)s::bigint[]) and"
    + _IS_UNUSED
    + "order by e.entity for update skip locked"
)
_REMOVE_ENTITIES: LiteralString = (
    "with gone as (delete from entity e where e.ns = %(ns)s and e.entity = any(%(numbers)s::bigint[]) and"
    + _IS_UNUSED
    + """ returning e.entity, e.key, e.name, e.type
    ), unnamed as (
        delete from entity_alias where ns = %(ns)s and entity = any(array(select entity from gone))
    ), unlinked as (
        delete from entity_token where ns = %(ns)s and entity = any(array(select entity from gone))
    )
    select entity from gone where type <> all(%(tokenized)s::text[]) or name <> key
"""
)
# Written as a negation of the condition, this would read all mentions of the namespace.
_REMOVED_THOUGH_USED: LiteralString = (
    """
    select n.entity from unnest(%(numbers)s::bigint[]) as n (entity)
    where not exists (select from entity e where e.ns = %(ns)s and e.entity = n.entity)
    except select e.entity from unnest(%(numbers)s::bigint[]) as e (entity) where
    """
    + _IS_UNUSED
)


class Alias(NamedTuple):
    """A key by which texts mention an entity with a different key."""

    key: str
    entity: int


async def take_aliases(conn: Connection, ns: int, keys: Collection[str]) -> None:
    """Wait for writers that mention entities by these aliases, and block new ones until the transaction ends."""
    await _lock_aliases(conn, _CHANGE_ALIASES, ns, keys)


async def aliases_of(conn: Connection, ns: int, removed: Collection[int], *, but: Sequence[DocGraph]) -> set[Alias]:
    """The aliases given by memories about to be removed, except those that new memories give."""
    removed_too = {Alias(*row) for row in await _fetch_if_any(conn, _GIVEN_ALIASES, ns, removed)}
    given = [each for doc in but for each in doc.entities]
    return removed_too - {Alias(key, entity_id(normalize(each.name))) for each in given for key, _ in each.alias_keys()}


async def not_given(conn: Connection, ns: int, aliases: Collection[Alias], *, but: Collection[int]) -> list[Alias]:
    """The aliases given neither by a memory other than those in `but` nor by hand."""
    columns = {"keys": text_array([each.key for each in aliases]), "entities": array_text(e.entity for e in aliases)}
    rows = await fetch(conn, _NOT_GIVEN, {"ns": ns, "but": array_text(but), **columns})
    return [Alias(*row) for row in rows]


async def write(
    conn: Connection,
    ns: int,
    docs: Sequence[DocGraph],
    *,
    removed: Collection[int] = (),
    withdrawn: Collection[str] = (),
) -> set[int]:
    """Add memories to the graph and remove others, in the caller's transaction; call it at most once per transaction.

    Returns the entities added, deleted or described differently, except for common phrases that were added or deleted
    with their key as their name.

    A mention whose key is an alias of exactly one entity counts for that entity, and so does a relation. Entities
    without mentions are deleted with their aliases and tokens, unless a caller has merged them or named them by hand.
    `withdrawn` are the names that the removed memories gave as entities: these get the type that other memories gave
    last. The connection is in a transaction at READ COMMITTED, not in autocommit mode. `docs` has each memory once;
    `removed` are ordinals, which may also be in `docs`.

    Raises UniqueViolation if a memory is already in the graph, TransactionRollback if other writers deleted entities at
    the same time; the transaction must then be retried.
    """
    aliases = await _aliases(conn, ns, docs, but={*removed} - {doc.doc for doc in docs})
    touched = await _ids(conn, _REMOVE_LINKS, ns, removed)
    batch = await _in_thread_if_many(docs, lambda: GraphRows(docs, aliases))
    types, added = await _lock_entities(conn, ns, batch)
    stronger = {entity for entity, row in batch.entities.items() if row.is_stronger(types[entity])}
    # Of two writers that remove an entity's last mentions, the later waits here and then sees that none is left.
    types = await _lock(conn, "no key update", ns, stronger.union(touched))
    retyped = await _take_types_back(conn, ns, {entity_id(normalize(name)) for name in withdrawn}, types)
    types |= retyped
    described = {
        entity: row for entity, row in batch.entities.items() if entity in types and row.is_stronger(types[entity])
    }
    if described:
        await conn.execute(_DESCRIBE_ENTITIES, _columns(ns, described))
    if batch.mentions:  # every alias and relation comes with mentions of its entities
        await conn.execute(_ADD_LINKS, {"ns": ns, **await _in_thread_if_many(docs, lambda: _links(batch))})
    gone = await _remove_unused(conn, ns, touched)
    return {*described, *retyped, *gone, *(entity for entity in added if batch.entities[entity].is_shown_otherwise)}


async def _in_thread_if_many(docs: Sequence[DocGraph], make: Callable[[], T]) -> T:
    """What is made of a batch; in a thread if it has many names, since a million take seconds."""
    given = [entity for doc in docs for entity in doc.entities]
    names = sum(len(doc.mentions) + len(doc.relations) for doc in docs) + sum(1 + len(one.aliases) for one in given)
    return await asyncio.to_thread(make) if names > _MANY_NAMES else make()


async def _aliases(conn: Connection, ns: int, docs: Sequence[DocGraph], *, but: Collection[int]) -> dict[str, int]:
    """By key in some memories, the entity that it is an alias of, ignoring aliases given by the memories in `but`."""
    keys = await _in_thread_if_many(docs, lambda: sorted({key for doc in docs for key in doc.may_be_aliases()}))
    columns = {"keys": text_array(keys), "own": array_text(map(entity_id, keys))}
    asked = {"ns": ns, **columns, "gone": array_text(sorted(but)), "found": text_array([*FOUND_TYPES])}
    aliases: dict[str, int] = dict(await fetch(conn, _ALIASES, asked)) if keys else {}
    if aliases:  # a writer that removes one has committed once this lock is held, or waits
        await _lock_aliases(conn, _USE_ALIASES, ns, aliases)
        aliases = dict(await fetch(conn, _ALIASES, asked))
    return aliases


async def _lock_aliases(conn: Connection, sql: LiteralString, ns: int, keys: Collection[str]) -> None:
    if keys:
        buckets = sorted({crc32(f"{ns} {key}".encode()) % _ALIAS_BUCKETS for key in keys})
        await conn.execute(sql, {"buckets": array_text(buckets)})


async def _take_types_back(
    conn: Connection, ns: int, entities: Collection[int], types: Mapping[int, str]
) -> dict[int, str]:
    """Set entities' types to those that memories gave last, or to none; returns the changed ones among `types`."""
    typed = [entity for entity in entities if types.get(entity, "thing") not in FOUND_TYPES]
    given = dict.fromkeys(typed, "thing") | {
        entity: type_
        for entity, name, type_ in await _fetch_if_any(conn, _GIVEN_TYPES, ns, typed)
        if entity_id(normalize(name)) == entity
    }
    changed = {entity: type_ for entity, type_ in given.items() if type_ != types[entity]}
    if changed:
        columns = {"entities": array_text(changed), "types": text_array([*changed.values()])}
        await conn.execute(_SET_TYPES, {"ns": ns, **columns})
    return changed


async def remove_unused(conn: Connection, ns: int, entities: Collection[int]) -> list[int]:
    """Delete the entities that nothing refers to any more, in the transaction that removed references.

    Returns the deleted ones other than common phrases. Raises TransactionRollback if another writer mentions one.
    """
    await _lock(conn, "no key update", ns, entities)  # of two that remove the last references, the later sees none
    return await _remove_unused(conn, ns, entities)


async def _remove_unused(conn: Connection, ns: int, entities: Collection[int]) -> list[int]:
    """What `remove_unused` does, for entities that are locked already."""
    unused = await _ids(conn, _LOCK_UNUSED, ns, entities)
    # Only a statement that starts after the locks are held sees mentions committed before that.
    gone = await _ids(conn, _REMOVE_ENTITIES, ns, unused)
    # The deletion waited for a writer that did lock an entity, but does not see what that wrote.
    if await _ids(conn, _REMOVED_THOUGH_USED, ns, unused):
        raise TransactionRollback("other writers mention entities that were taken away at this moment")
    return gone


def _links(batch: GraphRows) -> dict[str, Any]:
    """The columns of a batch's mentions, aliases and relations, sorted by key."""
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


async def _lock_entities(conn: Connection, ns: int, batch: GraphRows) -> tuple[dict[int, str], set[int]]:
    """Insert the batch's missing entities and lock all of them; returns all types, and the inserted entities."""
    wanted = batch.entities.keys() | batch.redirected
    types = await _lock(conn, "key share", ns, wanted)
    new = {entity: row for entity, row in batch.entities.items() if entity not in types}
    added = {entity for (entity,) in await fetch(conn, _ADD_ENTITIES, _columns(ns, new))} if new else set()
    types |= {entity: new[entity].type for entity in added}
    types |= await _lock(conn, "key share", ns, new.keys() - added)  # inserted by another transaction since
    if wanted - types.keys():  # inserting more now would break the lock order
        raise TransactionRollback("other writers took entities away at this moment")
    return types, added


async def _lock(conn: Connection, mode: LiteralString, ns: int, entities: Collection[int]) -> dict[int, str]:
    """Lock the entities that exist; returns their types."""
    return dict(await _fetch_if_any(conn, _LOCK + mode, ns, entities))


async def _ids(conn: Connection, sql: LiteralString, ns: int, numbers: Collection[int]) -> list[int]:
    return [entity for (entity,) in await _fetch_if_any(conn, sql, ns, numbers)]


async def _fetch_if_any(conn: Connection, sql: LiteralString, ns: int, numbers: Collection[int]) -> list[Any]:
    """The rows of a statement about entities or memories; not run if there are none."""
    params = {"ns": ns, "numbers": array_text(sorted(numbers)), "tokenized": _TOKENIZED}
    return await fetch(conn, sql, params) if numbers else []


def _columns(ns: int, entities: Mapping[int, EntityRow]) -> dict[str, Any]:
    """The columns of entities, and their tokens, each with its entity."""
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
