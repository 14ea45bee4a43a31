"""Memories as the BM25 leg weighs them, and turns with those around them in their session."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, LiteralString, NamedTuple

from psycopg import AsyncConnection

from graph.arrays import array_text
from retrieval.store.visibility import ELIGIBLE

SHORT_CHARS = 160
"""A turn up to this long that ends with a question mark only asks."""

_COLUMNS: LiteralString = (
    """m.id, m.speaker, m.session_id is not null as is_turn, m.length,
        length(m.text) <= %(short)s and right(rtrim(m.text), 1) = '?' as asks, """
    + ELIGIBLE
    + """ as eligible
"""
)

_WHICH: LiteralString = (
    "select m.doc, "
    + _COLUMNS
    + """
    from memory m where m.ns = %(ns)s and m.doc = any(%(docs)s::integer[])
"""
)

# One statement for both: what is around the turns, and the memories of those beside them.
_AROUND: LiteralString = (
    """
    with around as materialized (
        select t.doc,
            array(
                select b.doc from turn b
                where b.ns = %(ns)s and b.session_id = t.session_id and (b.place, b.id) < (t.place, t.id)
                    and (%(as_of)s::timestamptz is null or exists (
                        select from memory m where m.ns = %(ns)s and m.doc = b.doc and m.created_at <= %(as_of)s))
                order by b.place desc, b.id desc limit %(reach)s
            ) as before,
            array(
                select a.doc from turn a
                where a.ns = %(ns)s and a.session_id = t.session_id and (a.place, a.id) > (t.place, t.id)
                    and (%(as_of)s::timestamptz is null or exists (
                        select from memory m where m.ns = %(ns)s and m.doc = a.doc and m.created_at <= %(as_of)s))
                order by a.place, a.id limit %(reach)s
            ) as after
        from turn t where t.ns = %(ns)s and t.doc = any(%(docs)s::integer[])
    ), beside as (
        select distinct near.doc
        from around cross join lateral unnest(before[:%(beside)s] || after[:%(beside)s]) as near (doc)
        where near.doc <> all(%(docs)s::integer[])
    )
    select doc, before, after, null as id, null as speaker, null as is_turn, null as length, null as asks,
        null as eligible
    from around
    union all
    select m.doc, null, null, """
    + _COLUMNS
    + """
    from beside join memory m on m.ns = %(ns)s and m.doc = beside.doc
"""
)


class Candidate(NamedTuple):
    """What a leg needs of a memory to weigh it; `asks` is that of a turn, `length` its number of terms."""

    doc: int
    id: str
    speaker: str | None
    is_turn: bool
    length: int
    asks: bool
    eligible: bool


class Window(NamedTuple):
    """A turn and those around it in its session, all as ordinals; nearest first on each side."""

    doc: int
    before: Sequence[int]
    after: Sequence[int]


async def read(
    conn: AsyncConnection[Any], ns: int, docs: Collection[int], params: Mapping[str, Any]
) -> list[Candidate]:
    """The candidates of these ordinals; `params` are those of `eligibility`."""
    parameters = {**params, "ns": ns, "docs": array_text(docs), "short": SHORT_CHARS}
    return [Candidate(*row) for row in await (await conn.execute(_WHICH, parameters, binary=True)).fetchall()]


async def around(
    conn: AsyncConnection[Any], ns: int, docs: Collection[int], params: Mapping[str, Any], *, reach: int, beside: int
) -> tuple[list[Window], list[Candidate]]:
    """The windows of those of these memories that are turns, and the candidates nearest to them.

    Args:
        conn: any; nothing is written.
        ns: number of the namespace.
        docs: ordinals.
        params: those of `eligibility`; with `as_of`, windows hold the turns that were there then.
        reach: most turns of a window on each side.
        beside: how far from them a candidate may be; `docs` themselves are none.
    """
    parameters = {**params, "ns": ns, "docs": array_text(docs), "reach": reach, "beside": beside, "short": SHORT_CHARS}
    windows: list[Window] = []
    candidates: list[Candidate] = []
    for doc, before, after, *columns in await (await conn.execute(_AROUND, parameters, binary=True)).fetchall():
        if before is None:
            candidates.append(Candidate(doc, *columns))
        else:
            windows.append(Window(doc, before, after))
    return windows, candidates
