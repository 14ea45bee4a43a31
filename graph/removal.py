"""Removes memories from the graph, and entities that are no longer mentioned.

See `graph/store.py` for the locks.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, LiteralString

from psycopg import AsyncConnection

from postgres.arrays import array_text

_REMOVE_LINKS: LiteralString = """
    with unmentioned as (
        delete from mention where ns = %(ns)s and doc = any(%(docs)s::integer[]) returning entity
    ), unrelated as (
        delete from relation where ns = %(ns)s and doc = any(%(docs)s::integer[]) returning source, target
    ), unnamed as (
        delete from entity_alias where ns = %(ns)s and doc = any(%(docs)s::integer[])
    )
    select entity from unmentioned union select source from unrelated union select target from unrelated
"""
_UNUSED: LiteralString = """
    select e.entity from unnest(%(entities)s::bigint[]) as e (entity)
    where not exists (select from mention m where m.ns = %(ns)s and m.entity = e.entity)
      and not exists (select from relation r where r.ns = %(ns)s and r.source = e.entity)
      and not exists (select from relation r where r.ns = %(ns)s and r.target = e.entity)
"""
_LOCK_UNUSED: LiteralString = """
    select entity from entity where ns = %(ns)s and entity = any(%(entities)s::bigint[]) order by entity
    for update skip locked
"""
_REMOVE_ENTITIES: LiteralString = """
    with gone as (
        delete from entity e where e.ns = %(ns)s and e.entity = any(%(entities)s::bigint[])
          and not exists (select from mention m where m.ns = %(ns)s and m.entity = e.entity)
          and not exists (select from relation r where r.ns = %(ns)s and r.source = e.entity)
          and not exists (select from relation r where r.ns = %(ns)s and r.target = e.entity)
        returning e.entity
    ), unnamed as (
        delete from entity_alias where ns = %(ns)s and entity = any(array(select entity from gone))
    ), unlinked as (
        delete from entity_token where ns = %(ns)s and entity = any(array(select entity from gone))
    )
    select entity from gone
"""


async def unlink(conn: AsyncConnection[Any], ns: int, docs: Collection[int]) -> list[int]:
    """Delete the mentions, relations and aliases of some memories; return the entities they linked."""
    rows = await conn.execute(_REMOVE_LINKS, {"ns": ns, "docs": array_text(sorted(docs))})
    return [entity for (entity,) in await rows.fetchall()]


async def remove_unused(conn: AsyncConnection[Any], ns: int, touched: Collection[int]) -> None:
    """Delete those of the entities (locked by the caller) that have no mention and no relation left."""
    unused = await _ids(conn, _UNUSED, ns, touched)
    unused = await _ids(conn, _LOCK_UNUSED, ns, unused)
    # Only a statement that starts after the locks are held sees mentions committed before that.
    await _ids(conn, _REMOVE_ENTITIES, ns, unused)


async def _ids(conn: AsyncConnection[Any], sql: LiteralString, ns: int, entities: Collection[int]) -> list[int]:
    if not entities:
        return []
    rows = await conn.execute(sql, {"ns": ns, "entities": array_text(sorted(entities))})
    return [entity for (entity,) in await rows.fetchall()]
