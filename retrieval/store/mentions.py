"""Memories that mention an entity, or that are by a speaker."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import LiteralString

from graph.names import HAN_KANA, HANGUL, SOUTH_EAST_ASIAN, entity_id, is_unspaced, normalize, singular_key
from postgres.arrays import array_text
from postgres.connection import Connection, fetch

# A name also means entities with it as an alias, and entities merged with these.
_FAMILY: LiteralString = """
    with meant as (
        select %(entity)s::bigint as entity
        union select a.entity from entity_alias a where a.ns = %(ns)s and a.key = %(key)s::text
    ), shown as (
        select coalesce(e.root, meant.entity) as entity
        from meant left join entity_merge e on e.ns = %(ns)s and e.entity = meant.entity
    )
    select entity from shown
    union select e.entity from entity_merge e where e.ns = %(ns)s and e.root in (select entity from shown)
"""
_KEYS: LiteralString = """
    select e.key from entity e where e.ns = %(ns)s and e.entity = any(%(family)s::bigint[])
    union select a.key from entity_alias a where a.ns = %(ns)s and a.entity = any(%(family)s::bigint[])
"""
# Texts are searched, too: the graph has "han" for "Hans", and nothing for "May Chen", which may not be a name.
_MENTIONING: LiteralString = """
    select m.id, coalesce(m.speaker = %(speaker)s::text, false)
    from memory m cross join lateral normalize(concat_ws(' ', m.title, m.text), nfkc) as written
    where m.ns = %(ns)s and (m.speaker = %(speaker)s::text
        or m.doc = any(array(
            select t.doc from mention t where t.ns = %(ns)s and t.entity = any(%(family)s::bigint[])
        ))
        or written ~* %(phrases)s::text
        or (written ~* %(word)s::text and m.doc = any(array(
            select t.doc from mention t where t.ns = %(ns)s and t.entity = %(singular)s::bigint
        ))))
    order by m.doc
"""

_EDGE = rf"(?:\W|[{HAN_KANA}{HANGUL}{SOUTH_EAST_ASIAN}]|^|$)"
"""What a name touches: Chinese, too, as in 我和Ann Lee去."""


async def family_of(conn: Connection, ns: int, name: str) -> list[int]:
    """The entities that a name stands for, as name or alias, and all merged with these."""
    key = normalize(name)
    return [entity for (entity,) in await fetch(conn, _FAMILY, {"ns": ns, "key": key, "entity": entity_id(key)})]


async def said_and_mentioned(
    conn: Connection, ns: int, name: str, *, family: Collection[int], speaker: str | None
) -> tuple[Sequence[str], Sequence[str]]:
    """The ids of a speaker's memories, and of all others that mention the name, both in order of insertion.

    `family` are the entities that the name stands for.
    """
    key, meant = normalize(name), {"ns": ns, "family": array_text(family)}
    keys = {key, *(other for (other,) in await fetch(conn, _KEYS, meant))}
    written = {
        "phrases": _written([each for each in keys if " " in each or is_unspaced(each)]),
        "word": _written([key]),
        "singular": entity_id(singular_key(key)),
    }
    rows = await fetch(conn, _MENTIONING, {**meant, **written, "speaker": speaker})
    own = [memory_id for memory_id, is_own in rows if is_own]
    return own, [memory_id for memory_id, is_own in rows if not is_own]


def _written(keys: Collection[str]) -> str | None:
    """A PostgreSQL regular expression that matches names in texts, given their keys; None without names."""
    return "|".join(map(_pattern, sorted(keys))) or None


def _pattern(key: str) -> str:
    parts = list(map(re.escape, key.split()))
    if is_unspaced(key.replace(" ", "")):
        return r"\W*".join(parts)
    return _EDGE + r"\W+".join(parts) + _EDGE
