"""Entities: reading names, aliases and merges, and changing aliases and merges by hand.

Merges and separations of a namespace are serialised by a lock on its row, which does not block writers of memories.
Then they lock entities `for key share`, as these writers do (see `graph/store.py`), so that none is deleted meanwhile.
That comes after the checks: an entity locked for a change that is then refused would outlive its last memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import LiteralString, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph.names import entity_id, normalize, without_diacritics
from graph.store import Alias, not_given, remove_unused, take_aliases
from postgres.arrays import array_text, integers, text_array
from postgres.connection import Connection, fetch
from retrieval.errors import Conflict, InvalidInput, NotFound
from retrieval.store import changes, namespaces

BY_HAND = -1
"""Stands for the memory of an alias that a caller gave by hand."""

_DESCRIBE: LiteralString = """
    select e.entity, e.name, e.type, coalesce(g.root, e.entity)
    from entity e left join entity_merge g on g.ns = %(ns)s and g.entity = e.entity
    where e.ns = %(ns)s and e.entity = any(%(entities)s::bigint[])
"""
# Does the same as `without_diacritics`.
_HAS_PART: LiteralString = r"""
    ns = %(ns)s and position(%(part)s::text in case
        when key ~ '^[ -~]*$' then key else translate(
            regexp_replace(normalize(key, NFD), '[\u0300-\u036f\u0591-\u05c7\u064b-\u065f]', '', 'g'), 'øłđħı', 'oldhi')
    end) > 0
"""
_NAMED: LiteralString = f"""
    select string_agg(int8send(entity), '')
    from (select entity from entity where {_HAS_PART} union select entity from entity_alias where {_HAS_PART}) as named
"""
_TYPED: LiteralString = """
    select string_agg(int8send(entity), '') from entity where ns = %(ns)s and type = any(%(types)s::text[])
"""
_MERGED: LiteralString = """
    select g.entity, e.name, g.merge, g.merged_at
    from entity_merge g join entity e on e.ns = %(ns)s and e.entity = g.entity
    where g.ns = %(ns)s and g.root = %(entity)s
    order by g.merged_at, g.merge
"""
_ALIASES: LiteralString = """
    select min(name), string_agg(int4send(doc), '')
    from entity_alias where ns = %(ns)s and entity = any(%(entities)s::bigint[])
    group by key order by key limit %(limit)s
"""
_ROW_LOCK: LiteralString = "no key update"
_LOCK: LiteralString = """
    select entity from entity where ns = %(ns)s and entity = any(%(entities)s::bigint[]) order by entity for key share
"""
_MERGE: LiteralString = """
    with moved as (
        update entity_merge set root = %(target)s where ns = %(ns)s and root = %(entity)s
    )
    insert into entity_merge (ns, entity, target, root, merge) values (%(ns)s, %(entity)s, %(target)s, %(target)s,
        %(merge)s)
"""
_SEPARATE: LiteralString = "delete from entity_merge where ns = %(ns)s and merge = %(merge)s returning entity, target"
_NEW_ROOT: LiteralString = """
    with recursive below as (
        select g.entity from entity_merge g where g.ns = %(ns)s and g.target = %(entity)s
        union all
        select g.entity from below join entity_merge g on g.ns = %(ns)s and g.target = below.entity
    )
    update entity_merge set root = %(entity)s where ns = %(ns)s and entity in (select entity from below)
"""
_ADD_ALIASES: LiteralString = """
    insert into entity_alias (ns, key, entity, doc, name)
    select %(ns)s, key, %(entity)s, -1, name from unnest(%(keys)s::text[], %(names)s::text[]) as a (key, name)
    on conflict (ns, key, entity, doc) do update set name = excluded.name
"""
_REMOVE_ALIASES: LiteralString = """
    delete from entity_alias
    where ns = %(ns)s and entity = any(%(entities)s::bigint[]) and doc = -1 and key = any(%(keys)s::text[])
    returning key, entity
"""

_KEYS_BY_HAND: LiteralString = """
    select distinct key from entity_alias
    where ns = %(ns)s and entity = any(%(entities)s::bigint[]) and doc = -1
"""
_SEPARATE_ALL: LiteralString = """
    delete from entity_merge
    where ns = %(ns)s and (entity = any(%(entities)s::bigint[]) or target = any(%(entities)s::bigint[]))
    returning entity, target
"""

_ALL_BY_HAND: LiteralString = """
    select e.key, a.name from entity_alias a join entity e on e.ns = %(ns)s and e.entity = a.entity
    where a.ns = %(ns)s and a.doc = -1 order by e.key, a.key
"""
_ALL_MERGES: LiteralString = """
    select e.key, t.key from entity_merge g
    join entity e on e.ns = %(ns)s and e.entity = g.entity join entity t on t.ns = %(ns)s and t.entity = g.target
    where g.ns = %(ns)s order by g.merged_at, g.merge
"""


class StoredEntity(NamedTuple):
    """An entity's number, name, type and root: the entity that it is shown as, itself unless it is merged."""

    entity: int
    name: str
    type: str
    root: int


class StoredMerge(NamedTuple):
    """An entity that is shown as another: its number and name, the merge's id and time."""

    entity: int
    name: str
    merge: str
    merged_at: datetime


async def describe(conn: Connection, ns: int, entities: Iterable[int]) -> dict[int, StoredEntity]:
    """The entities among these that exist, by number."""
    parameters = {"ns": ns, "entities": array_text(sorted(entities))}
    return {row[0]: StoredEntity(*row) for row in await fetch(conn, _DESCRIBE, parameters)}


async def named(conn: Connection, ns: int, part: str) -> NDArray[np.int64]:
    """The entities whose normalised name or alias contains `part`, ignoring accents, with merged ones; unordered."""
    [[sent]] = await fetch(conn, _NAMED, {"ns": ns, "part": without_diacritics(part)}, binary=True)
    return integers(sent, ">i8")


async def typed(conn: Connection, ns: int, types: Sequence[str]) -> NDArray[np.int64]:
    """The entities of some types, merged ones included; unordered."""
    [[sent]] = await fetch(conn, _TYPED, {"ns": ns, "types": list(types)}, binary=True)
    return integers(sent, ">i8")


async def merged_into(conn: Connection, ns: int, root: int) -> list[StoredMerge]:
    """The entities that are shown as this one, in order of time."""
    return [StoredMerge(*row) for row in await fetch(conn, _MERGED, {"ns": ns, "entity": root})]


async def aliases(
    conn: Connection, ns: int, entities: Collection[int], *, limit: int
) -> list[tuple[str, NDArray[np.int64]]]:
    """The aliases of some entities, one per normalised form, with the ordinals of their memories, or `BY_HAND`."""
    rows = await fetch(conn, _ALIASES, {"ns": ns, "entities": array_text(entities), "limit": limit}, binary=True)
    return [(name, integers(docs)) for name, docs in rows]


async def aliases_by_hand(conn: Connection, ns: int) -> list[tuple[str, str]]:
    """All aliases given by hand, as pairs of the entity's key and the alias."""
    return [(key, name) for key, name in await fetch(conn, _ALL_BY_HAND, {"ns": ns})]


async def merges(conn: Connection, ns: int) -> list[tuple[str, str]]:
    """The keys of all merged entities and of what they were merged into, in order of time."""
    return [(key, target) for key, target in await fetch(conn, _ALL_MERGES, {"ns": ns})]


async def merge(conn: Connection, ns: int, entity: int, target: int, merge_id: str) -> None:
    """Show an entity, and all that are merged into it, as another, in the caller's transaction.

    Raises:
        NotFound: one of them, or the namespace, does not exist.
        Conflict: they are already merged.
    """
    await namespaces.lock(conn, ns, _ROW_LOCK)
    wanted = {entity, target}
    found = await describe(conn, ns, wanted)
    if found.keys() == wanted and found[entity].root == found[target].root:
        raise Conflict("they are one entity already")
    if not (found.keys() == wanted == await _lock(conn, ns, wanted)):
        raise NotFound("one of the entities does not exist any more")
    merged, into = found[entity].root, found[target].root
    await conn.execute(_MERGE, {"ns": ns, "entity": merged, "target": into, "merge": merge_id})
    await changes.record(conn, ns, [changes.ENTITIES])


async def separate(conn: Connection, ns: int, merge_id: str) -> None:
    """Undo a merge, in the caller's transaction.

    Earlier and later merges stay. Raises NotFound if there is no merge with that id.
    """
    await namespaces.lock(conn, ns, _ROW_LOCK)
    rows = await fetch(conn, _SEPARATE, {"ns": ns, "merge": merge_id})
    if not rows:
        raise NotFound(f"there is no merge {merge_id!r}")
    [(entity, target)] = rows
    await conn.execute(_NEW_ROOT, {"ns": ns, "entity": entity})
    gone = await remove_unused(conn, ns, {entity, target})
    await changes.record(conn, ns, [changes.ENTITIES], described=gone)


async def change_aliases(
    conn: Connection, ns: int, root: int, *, added: Sequence[str], removed: Sequence[str], check_names: bool = True
) -> list[Alias]:
    """Add and remove an entity's aliases by hand, in the caller's transaction.

    Without `check_names` an alias may be the name of another entity, which keeps that name.

    Returns the removed aliases that no memory gives, by which texts still mention the entity.

    Raises:
        InvalidInput: an alias has no visible character.
        NotFound: there is no such entity, or an alias to remove was not given by hand.
        Conflict: an alias is the name of another entity.
    """
    await namespaces.lock(conn, ns, _ROW_LOCK)
    names = {key: name for key, name in _keys("add", added).items() if entity_id(key) != root}
    for other in (await describe(conn, ns, map(entity_id, names))).values() if check_names else ():
        if other.root != root:
            raise Conflict(f"{other.name!r} is another entity: merge the two")
    if root not in await _lock(conn, ns, {root}):
        raise NotFound("the entity does not exist any more")
    await conn.execute(
        _ADD_ALIASES, {"ns": ns, "entity": root, "keys": text_array([*names]), "names": text_array([*names.values()])}
    )
    family = {root, *(each.entity for each in await merged_into(conn, ns, root))}
    gone = _keys("remove", removed)
    taken = await _take_by_hand(conn, ns, family, gone)
    if missing := [name for key, name in gone.items() if key not in {alias.key for alias in taken}]:
        raise NotFound(f"the entity was not given the alias {missing[0]!r}; those that memories give go with these")
    without_name = await remove_unused(conn, ns, family) if taken else ()
    await changes.record(conn, ns, [changes.ENTITIES], described=without_name)
    return await not_given(conn, ns, taken, but=())


async def forget_by_hand(conn: Connection, ns: int, family: Collection[int]) -> list[Alias]:
    """Remove the aliases and merges of some entities made by hand, in the caller's transaction.

    Returns the aliases that no memory gives, by which texts may still mention the entities.
    """
    await namespaces.lock(conn, ns, _ROW_LOCK)
    parameters = {"ns": ns, "entities": array_text(family)}
    keys = [key for (key,) in await fetch(conn, _KEYS_BY_HAND, parameters)]
    taken = await _take_by_hand(conn, ns, family, keys)
    separated = await fetch(conn, _SEPARATE_ALL, parameters)
    for entity, _ in separated:
        await conn.execute(_NEW_ROOT, {"ns": ns, "entity": entity})
    if taken or separated:
        gone = await remove_unused(conn, ns, {*family, *chain.from_iterable(separated)})
        await changes.record(conn, ns, [changes.ENTITIES], described=gone)
    return await not_given(conn, ns, taken, but=())


async def _take_by_hand(conn: Connection, ns: int, family: Collection[int], keys: Collection[str]) -> list[Alias]:
    """Remove aliases of some entities given by hand, by their keys."""
    await take_aliases(conn, ns, keys)
    parameters = {"ns": ns, "entities": array_text(family), "keys": text_array([*keys])}
    return [Alias(*row) for row in await fetch(conn, _REMOVE_ALIASES, parameters)]


def _keys(field: str, names: Sequence[str]) -> Mapping[str, str]:
    """The names by their normal form."""
    keys = {normalize(name): name for name in names}
    if "" in keys:
        raise InvalidInput("must have a visible character", loc=(field, names.index(keys[""])))
    return keys


async def _lock(conn: Connection, ns: int, entities: Collection[int]) -> set[int]:
    return {entity for (entity,) in await fetch(conn, _LOCK, {"ns": ns, "entities": array_text(entities)})}
