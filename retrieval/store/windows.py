"""The turns around a turn, for the legs that score it in its context."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, LiteralString, NamedTuple

from psycopg import AsyncConnection

from graph.arrays import array_text

_AROUND: LiteralString = """
    select t.doc,
        array(
            select b.doc from turn b
            where b.ns = %(ns)s and b.session_id = t.session_id and (b.place, b.id) < (t.place, t.id)
                and (%(as_of)s::timestamptz is null or exists (
                    select from memory m where m.ns = b.ns and m.doc = b.doc and m.created_at <= %(as_of)s))
            order by b.place desc, b.id desc limit %(reach)s
        ),
        array(
            select a.doc from turn a
            where a.ns = %(ns)s and a.session_id = t.session_id and (a.place, a.id) > (t.place, t.id)
                and (%(as_of)s::timestamptz is null or exists (
                    select from memory m where m.ns = a.ns and m.doc = a.doc and m.created_at <= %(as_of)s))
            order by a.place, a.id limit %(reach)s
        )
    from turn t where t.ns = %(ns)s and t.doc = any(%(docs)s::integer[])
"""


class Window(NamedTuple):
    """A turn and those around it in its session, all as ordinals; nearest first on each side."""

    doc: int
    before: Sequence[int]
    after: Sequence[int]


async def around(
    conn: AsyncConnection[Any], ns: int, docs: Iterable[int], *, reach: int, as_of: datetime | None
) -> list[Window]:
    """Up to `reach` turns on each side of each of these memories that is a turn, in one statement.

    With `as_of`, of the turns that were there then.
    """
    parameters = {"ns": ns, "docs": array_text(docs), "reach": reach, "as_of": as_of}
    return [Window(*row) for row in await (await conn.execute(_AROUND, parameters, binary=True)).fetchall()]
