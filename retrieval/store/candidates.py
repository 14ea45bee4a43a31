"""Memories as the BM25 leg weighs them, and turns with those around them in their session."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, LiteralString, NamedTuple

from psycopg import AsyncConnection

from graph.arrays import array_text
from retrieval.store.visibility import ELIGIBLE, VISIBLE

SHORT_CHARS = 160
"""A turn up to this long that ends with a question mark only asks."""

_COLUMNS: LiteralString = (
    """m.id, m.speaker, m.session_id is not null as is_turn, m.length,
        length(m.text) <= %(short)s and right(rtrim(m.text, E' \\n\\r\\t'), 1) in ('?', '\uff1f') as asks, """
    + VISIBLE
    + """ as visible, """
    + ELIGIBLE
    + """ as eligible
"""
)

_NOT_HIDDEN: LiteralString = (
    """
    and not exists (
        select from memory m where m.ns = %(ns)s and m.doc = near.doc
            and (m.expires_at is not null or m.superseded_at is not null) and not ("""
    + VISIBLE
    + """)
    ) and (%(as_of)s::timestamptz is null or exists (
        select from memory m where m.ns = %(ns)s and m.doc = near.doc and m.created_at <= %(as_of)s::timestamptz
    ))
"""
)
"""Over a turn `near`: the query may see it. The first part is answered by the small index on such memories."""

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
                select near.doc from turn near
                where near.ns = %(ns)s and near.session_id = t.session_id and (near.place, near.id) < (t.place, t.id)
                    """
    + _NOT_HIDDEN
    + """
                order by near.place desc, near.id desc limit %(reach)s
            ) as before,
            array(
                select near.doc from turn near
                where near.ns = %(ns)s and near.session_id = t.session_id and (near.place, near.id) > (t.place, t.id)
                    """
    + _NOT_HIDDEN
    + """
                order by near.place, near.id limit %(reach)s
            ) as after
        from turn t where t.ns = %(ns)s and t.doc = any(%(docs)s::integer[])
    ), beside as (
        select distinct near.doc
        from around cross join lateral unnest(before[:%(beside)s] || after[:%(beside)s]) as near (doc)
        where near.doc <> all(%(docs)s::integer[])
    )
    select doc, before, after, null as id, null as speaker, null as is_turn, null as length, null as asks,
        null as visible, null as eligible
    from around
    union all
    select m.doc, null, null, """
    + _COLUMNS
    + """
    from beside join memory m on m.ns = %(ns)s and m.doc = beside.doc
"""
)


class Candidate(NamedTuple):
    """What a leg needs of a memory to weigh it.

    `length` is its number of terms, `asks` whether it only asks, `visible` whether the query may see it at all,
    `eligible` whether it also meets the filters.
    """

    doc: int
    id: str
    speaker: str | None
    is_turn: bool
    length: int
    asks: bool
    visible: bool
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
        params: those of `eligibility`; windows hold the turns that are visible, whether or not they meet the filters.
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
