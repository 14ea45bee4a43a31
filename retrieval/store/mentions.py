"""Memories that mention an entity, or that a speaker said."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, LiteralString

from psycopg import AsyncConnection

from graph.names import entity_id, normalize, singular_key

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
_KEYS: LiteralString = (
    _FAMILY
    + """
    select e.key from entity e where e.ns = %(ns)s and e.entity in (select entity from family)
    union select a.key from entity_alias a where a.ns = %(ns)s and a.entity in (select entity from family)
"""
)
# A text mentions "han" where it says "Hans", and nothing where it says "May Chen", which may be no name: it is read.
_MENTIONING: LiteralString = (
    _FAMILY
    + """
    select m.id, coalesce(m.speaker = %(speaker)s::text, false)
    from memory m
    where m.ns = %(ns)s and (m.speaker = %(speaker)s::text
        or m.doc = any(array(
            select t.doc from mention t where t.ns = %(ns)s and t.entity in (select entity from family)
        ))
        or concat_ws(' ', m.title, m.text) ~* %(phrases)s::text
        or (concat_ws(' ', m.title, m.text) ~* %(word)s::text and m.doc = any(array(
            select t.doc from mention t where t.ns = %(ns)s and t.entity = %(singular)s::bigint
        ))))
    order by m.doc
"""
)


async def said_and_mentioned(
    conn: AsyncConnection[Any], ns: int, name: str, *, speaker: str | None
) -> tuple[Sequence[str], Sequence[str]]:
    """The ids of the memories of a speaker, and of all others that mention a name, both in the order of insertion."""
    named = _named(ns, name)
    keys = {named["key"], *(key for (key,) in await (await conn.execute(_KEYS, named)).fetchall())}
    written = {
        "phrases": _written([key for key in keys if " " in key]),
        "word": _written([named["key"]]),
        "singular": entity_id(singular_key(named["key"])),
    }
    rows = await (await conn.execute(_MENTIONING, {**named, **written, "speaker": speaker})).fetchall()
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


def _written(keys: Collection[str]) -> str | None:
    """A regular expression of PostgreSQL for names as texts write them, by their keys; None for no names."""
    names = "|".join(r"\W+".join(map(re.escape, key.split())) for key in sorted(keys))
    return rf"(?<!\w)(?:{names})(?!\w)" if names else None
