"""Looks up the entities that a query may mention: by exact name, by alias, or by a word of the name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import starmap
from typing import Any, LiteralString

from psycopg import AsyncConnection

from graph.extraction import extract
from graph.names import entity_id
from graph.resolution import NOTHING, EntityCandidate, EntityMatches, acronyms_of
from graph.spellings import Spellings, spellings
from postgres.arrays import array_text
from postgres.prepared import PreparedStatement

_UNIT_SEPARATOR = "\x1f"  # not part of any key; one string is adapted many times faster than a list

_LOOK_UP = PreparedStatement("""
    select e.entity, e.key, e.name, e.type, 'exact', array[e.key], 0
    from entity e
    where e.ns = %(ns)s and e.entity = any(%(entities)s::bigint[])
        and not exists (select from entity_merge g where g.ns = %(ns)s and g.entity = e.entity)
    union all
    select e.entity, e.key, e.name, e.type, 'alias', a.keys, 0
    from (
        select coalesce(g.root, named.entity) as entity, array_agg(distinct named.key) as keys
        from (
            select entity, key from entity_alias
            where ns = %(ns)s and key = any(string_to_array(%(keys)s, chr(31)))
            union all
            select e.entity, e.key from entity_merge g join entity e on e.ns = %(ns)s and e.entity = g.entity
            where g.ns = %(ns)s and g.entity = any(%(entities)s::bigint[])
        ) as named left join entity_merge g on g.ns = %(ns)s and g.entity = named.entity
        group by 1
    ) as a join entity e on e.ns = %(ns)s and e.entity = a.entity
    union all
    select e.entity, e.key, e.name, e.type, 'similar', s.tokens, s.bearers
    from (
        select entity, array_agg(token) as tokens, min(bearers) as bearers from (
            select q.token, t.entity, count(*) over (partition by q.token) as bearers
            from unnest(string_to_array(%(tokens)s, chr(31))) as q (token)
            cross join lateral (
                select distinct coalesce(g.root, w.entity) as entity
                from (
                    select entity from entity_token where ns = %(ns)s and token = q.token order by entity limit 64
                ) as w left join entity_merge g on g.ns = %(ns)s and g.entity = w.entity
            ) as t
        ) as word
        where entity <> all(%(entities)s::bigint[]) group by entity order by count(*) desc, entity limit 16
    ) as s join entity e on e.ns = %(ns)s and e.entity = s.entity
    union all
    (select r.entity, e.key, r.name, e.type, 'rival', array[q.token], 0
     from unnest(string_to_array(%(rivals)s, chr(31))) as q (token)
     cross join lateral (
        select entity from entity_token where ns = %(ns)s and token = q.token order by entity limit 16
     ) as t join entity e on e.ns = %(ns)s and e.entity = t.entity and split_part(e.key, ' ', 1) = q.token
     left join entity_merge g on g.ns = %(ns)s and g.entity = e.entity
     join entity r on r.ns = %(ns)s and r.entity = coalesce(g.root, e.entity)
     limit 32)
""")
"""A merged entity is found as its root; its name counts as an alias of that."""

_COMPLETE: LiteralString = """
    with begun as (
        select q.prefix, t.token, t.entity
        from unnest(%(prefixes)s::text[], %(prefix_ends)s::text[]) as q (prefix, after)
        cross join lateral (
            select token, entity from entity_token
            where ns = %(ns)s and token > q.prefix collate "C" and token < q.after collate "C"
            order by token, entity limit 64
        ) as t
    ), reached as (
        select q.acronym, q.letter, q.letters, t.entity, count(*) over (partition by q.acronym, q.letter) as fits
        from unnest(%(acronyms)s::text[], %(letters)s::text[], %(letter_ends)s::text[], %(counts)s::integer[])
            as q (acronym, letter, after, letters)
        cross join lateral (
            select entity from entity_token
            where ns = %(ns)s and token >= q.letter collate "C" and token < q.after collate "C" limit %(reach)s
        ) as t
    ), met as (
        select entity, acronym from reached group by entity, acronym, letters
        having count(distinct letter) = letters and max(fits) < %(reach)s limit 256
    ), found as (
        (select b.entity, 'prefix' as how, b.prefix as word from begun b
         join entity e on e.ns = %(ns)s and e.entity = b.entity and split_part(e.key, ' ', 1) = b.token
         where b.prefix in (select prefix from begun group by prefix having count(distinct token) = 1)
         limit 16)
        union all
        select m.entity, 'acronym', m.acronym from met m
        join entity e on e.ns = %(ns)s and e.entity = m.entity and left(e.key, 1) = left(m.acronym, 1)
    )
    select r.entity, e.key, r.name, e.type, f.how, array[f.word], 0
    from found f join entity e on e.ns = %(ns)s and e.entity = f.entity
    left join entity_merge g on g.ns = %(ns)s and g.entity = e.entity
    join entity r on r.ns = %(ns)s and r.entity = coalesce(g.root, e.entity)
"""

MAX_KEPT_CHARS = 200
"""Longest query whose reading is cached; longer ones are pasted text and rarely repeat."""

_REACH = 300
"""Most names read per letter of an acronym; if more start with the letter, the acronym is not expanded."""


async def look_up(conn: AsyncConnection[Any], ns: int, query: str) -> EntityMatches:
    """Look up the entities that a query may mention, in one or two statements; `resolve` picks those it means.

    The second statement completes an unknown capitalised word ("Caro") if a single name begins with it, and finds the
    only expansion of an acronym. Which entities are the same is decided per query, but for those that a caller merged.
    """
    asked = _read(query) if len(query) > MAX_KEPT_CHARS else _kept(query)
    if asked is None:
        return NOTHING
    spelled, params = asked
    found = list(starmap(EntityCandidate, await _LOOK_UP.rows(conn, {"ns": ns, **params})))
    known = {part for row in found if row.how != "rival" for key in row.matched for part in key.split()}
    prefixes = [prefix for prefix in spelled.prefixes if prefix not in known]
    acronyms = acronyms_of(spelled, found)
    if prefixes or acronyms:
        found += await _complete(conn, ns, prefixes, acronyms)
    return EntityMatches(spelled, found)


def _read(query: str) -> tuple[Spellings, dict[str, Any]] | None:
    """The possible names in a query and the parameters of the lookup except the namespace; None if there are none."""
    spelled = spellings(query, extract(query))
    if not spelled.spans:
        return None
    return spelled, {
        "entities": array_text(map(entity_id, spelled.spans)),
        "keys": _UNIT_SEPARATOR.join(spelled.spans),
        "tokens": _UNIT_SEPARATOR.join(spelled.words),
        "rivals": _UNIT_SEPARATOR.join(sorted(spelled.rivals)),
    }


_kept = lru_cache(maxsize=256)(_read)


async def _complete(
    conn: AsyncConnection[Any], ns: int, prefixes: Sequence[str], acronyms: Iterable[str]
) -> list[EntityCandidate]:
    letters = [(acronym, letter, len(set(acronym))) for acronym in acronyms for letter in sorted(set(acronym))]
    params = {
        "ns": ns,
        "prefixes": list(prefixes),
        "prefix_ends": [prefix + "\U0010ffff" for prefix in prefixes],
        "acronyms": [acronym for acronym, _, _ in letters],
        "letters": [letter for _, letter, _ in letters],
        "letter_ends": [letter + "\U0010ffff" for _, letter, _ in letters],
        "counts": [count for _, _, count in letters],
        "reach": _REACH,
    }
    rows = await (await conn.execute(_COMPLETE, params)).fetchall()
    return [EntityCandidate(*row) for row in rows]
