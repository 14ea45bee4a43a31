"""Which entities of the graph a query may speak of: by exact name, by alias, by part of a name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import starmap
from typing import Any, LiteralString

from psycopg import AsyncConnection

from graph.arrays import array_text
from graph.extraction import extract
from graph.names import entity_id
from graph.prepared import Prepared
from graph.resolution import NOTHING, Candidate, Named, acronyms_of
from graph.spellings import Spellings, spellings

_UNIT_SEPARATOR = "\x1f"  # no key holds it; one text is adapted many times faster than a list

_LOOK_UP = Prepared("""
    select entity, key, name, type, 'exact', array[key], 0
    from entity where ns = %(ns)s and entity = any(%(entities)s::bigint[])
    union all
    select e.entity, e.key, e.name, e.type, 'alias', a.keys, 0
    from (
        select entity, array_agg(distinct key) as keys
        from entity_alias where ns = %(ns)s and key = any(string_to_array(%(keys)s, chr(31))) group by entity
    ) as a join entity e on e.ns = %(ns)s and e.entity = a.entity
    union all
    select e.entity, e.key, e.name, e.type, 'similar', s.tokens, s.bearers
    from (
        select entity, array_agg(token) as tokens, min(bearers) as bearers from (
            select q.token, t.entity, count(*) over (partition by q.token) as bearers
            from unnest(string_to_array(%(tokens)s, chr(31))) as q (token)
            cross join lateral (
                select entity from entity_token where ns = %(ns)s and token = q.token order by entity limit 64
            ) as t
        ) as word
        where entity <> all(%(entities)s::bigint[]) group by entity order by count(*) desc, entity limit 16
    ) as s join entity e on e.ns = %(ns)s and e.entity = s.entity
    union all
    (select e.entity, e.key, e.name, e.type, 'rival', array[q.token], 0
     from unnest(string_to_array(%(rivals)s, chr(31))) as q (token)
     cross join lateral (
        select entity from entity_token where ns = %(ns)s and token = q.token order by entity limit 16
     ) as t join entity e on e.ns = %(ns)s and e.entity = t.entity and split_part(e.key, ' ', 1) = q.token
     limit 32)
""")

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
    select e.entity, e.key, e.name, e.type, f.how, array[f.word], 0
    from found f join entity e on e.ns = %(ns)s and e.entity = f.entity
"""

MAX_KEPT_CHARS = 200
"""Of a query that is remembered as it was read; what is longer is pasted, and hardly ever twice."""

_REACH = 300
"""Names that are looked through per letter of an acronym; where more begin so, nothing is expanded."""


async def look_up(conn: AsyncConnection[Any], ns: int, query: str) -> Named:
    """What a query may name of what a namespace has, in one statement or two; `resolve` says what it means.

    The second one completes a capitalised word that nothing has ("Caro") if just one name begins
    so, and finds the only expansion of an acronym. Stored entities stay apart: which of them are
    the same is decided for each query, from what the namespace has by then.
    """
    asked = _read(query) if len(query) > MAX_KEPT_CHARS else _kept(query)
    if asked is None:
        return NOTHING
    spelled, params = asked
    found = list(starmap(Candidate, await _LOOK_UP.rows(conn, {"ns": ns, **params})))
    known = {part for row in found if row.how != "rival" for key in row.matched for part in key.split()}
    prefixes = [prefix for prefix in spelled.prefixes if prefix not in known]
    acronyms = acronyms_of(spelled, found)
    if prefixes or acronyms:
        found += await _complete(conn, ns, prefixes, acronyms)
    return Named(spelled, found)


def _read(query: str) -> tuple[Spellings, dict[str, Any]] | None:
    """What a query may name, and the parameters of its look-up but for the namespace; None if it names nothing."""
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
) -> list[Candidate]:
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
    return [Candidate(*row) for row in rows]
