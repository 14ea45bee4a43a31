"""Memories that mention an entity, or that a speaker said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

from psycopg import AsyncConnection

from graph.names import entity_id, normalize

# An entity is also meant by its aliases, and by what is merged with it.
_FAMILY: LiteralString = """
    with meant as (
        select %(entity)s::bigint as entity
        union select a.entity from entity_alias a where a.ns = %(ns)s and a.key = %(key)s::text
    ), shown as (
        select coalesce(e.root, meant.entity) as entity
        from meant left join entity_merge e on e.ns = %(ns)s and e.entity = meant.entity
    ), family as (
        select entity from shown
        union select e.entity from entity_merge e where e.ns = %(ns)s and e.root in (select entity from shown)
    )
"""
_MENTIONING: LiteralString = (
    _FAMILY
    + """
    select m.id, coalesce(m.speaker = %(speaker)s::text, false)
    from memory m
    where m.ns = %(ns)s and (m.speaker = %(speaker)s::text or m.doc = any(array(
        select t.doc from mention t where t.ns = %(ns)s and t.entity in (select entity from family)
    )))
    order by m.doc
"""
)


async def said_and_mentioned(
    conn: AsyncConnection[Any], ns: int, name: str, *, speaker: str | None
) -> tuple[Sequence[str], Sequence[str]]:
    """The ids of the memories of a speaker, and of all others that mention a name, both in the order of insertion."""
    rows = await (await conn.execute(_MENTIONING, {**_named(ns, name), "speaker": speaker})).fetchall()
    own = [memory_id for memory_id, is_own in rows if is_own]
    return own, [memory_id for memory_id, is_own in rows if not is_own]


async def family_of(conn: AsyncConnection[Any], ns: int, name: str) -> list[int]:
    """The entities that a name means: by itself, as an alias, and what is merged with these."""
    rows = await (await conn.execute(_FAMILY + "select entity from family", _named(ns, name))).fetchall()
    return [entity for (entity,) in rows]


def _named(ns: int, name: str) -> dict[str, Any]:
    """The parameters of `_FAMILY`."""
    key = normalize(name)
    return {"ns": ns, "key": key, "entity": entity_id(key)}
