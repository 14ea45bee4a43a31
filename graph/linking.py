"""Reads the names that a query may contain, and completes beginnings of names and acronyms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString

from graph.extraction import TOKENIZED_TYPES, extract
from graph.resolution import EntityCandidate, acronyms_of
from graph.spellings import Spellings, both_ends, spellings
from postgres.connection import Connection, fetch

_REACH = 300
"""Most names read per letter of an acronym; if more start with the letter, the acronym is not expanded."""

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
        having count(distinct letter) = letters and max(fits) < %(reach)s order by entity, acronym limit 256
    ), found as (
        (select b.entity, 'prefix' as how, b.prefix as word from begun b
         join entity e on e.ns = %(ns)s and e.entity = b.entity and split_part(e.key, ' ', 1) = b.token
         where b.prefix in (select prefix from begun group by prefix having count(distinct token) = 1)
         order by b.entity limit 16)
        union all
        select m.entity, 'acronym', m.acronym from met m
        join entity e on e.ns = %(ns)s and e.entity = m.entity and left(e.key, 1) = left(m.acronym, 1)
    )
    select r.entity, e.key, r.name, e.type <> all(%(tokenized)s::text[]), f.how, array[f.word], 0
    from found f join entity e on e.ns = %(ns)s and e.entity = f.entity
    left join entity_merge g on g.ns = %(ns)s and g.entity = e.entity
    join entity r on r.ns = %(ns)s and r.entity = coalesce(g.root, e.entity)
"""


def possible_names(query: str) -> Spellings:
    """The names that a query may contain, read at both ends of a long one; empty if there are none."""
    words = query.split()
    read = query if (ends := both_ends(words)) is words else " ".join(ends)
    return spellings(read, extract(read))


def matched_words(found: Sequence[EntityCandidate]) -> set[str]:
    """The words by which entities were found."""
    return {part for row in found for key in row.matched for part in key.split()}


def to_complete(spelled: Spellings, found: Sequence[EntityCandidate]) -> tuple[list[str], list[str]]:
    """The names in a query that may begin a longer one, and its acronyms, unless already found."""
    known = matched_words(found)
    return [prefix for prefix in spelled.prefixes if prefix not in known], acronyms_of(spelled, found)


async def complete(
    conn: Connection, ns: int, prefixes: Sequence[str], acronyms: Sequence[str]
) -> list[EntityCandidate]:
    """The only name that begins with an unknown capitalised word ("Caro"), and the expansions of acronyms."""
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
        "tokenized": sorted(TOKENIZED_TYPES),
    }
    return [EntityCandidate(*row) for row in await fetch(conn, _COMPLETE, params)]
