"""The turn table: the order of chat turns, their neighbours and their own embeddings.

Locking: a writer that changes turns holds their sessions with `locking.lock_names` until the transaction ends, acquired
before any row of `memory` is locked. So neighbours stay as they were read, and rows of other turns of these sessions
can be updated in any order. A memory found to be in a session that is not held must not be changed: it was moved
concurrently, and the writer starts over.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import LiteralString

from pgvector import HalfVector

from postgres.arrays import array_text, text_array
from postgres.connection import Connection, fetch
from postgres.prepared import PreparedStatement
from retrieval.store.sessions import Place, Turn

# `except` also removes duplicates of turns near two places. An array, because the planner may turn a join into a scan
# of the namespace, see `_CHANGE`.
_AROUND: LiteralString = """
    select t.doc, t.session_id, t.place, t.id, t.own, t.previous, t.next
    from turn t where t.ns = %(ns)s and t.doc = any(array(
        select near.doc
        from unnest(%(sessions)s::text[], %(places)s::bigint[], %(ids)s::text[]) as at (session_id, place, id)
        cross join lateral (
            (select b.doc from turn b
             where b.ns = %(ns)s and b.session_id = at.session_id and (b.place, b.id) < (at.place, at.id collate "C")
             order by b.place desc, b.id desc limit 2)
            union all
            (select a.doc from turn a
             where a.ns = %(ns)s and a.session_id = at.session_id and (a.place, a.id) >= (at.place, at.id collate "C")
             order by a.place, a.id limit 3)
        ) as near
        except select gone.doc from unnest(%(gone)s::integer[]) as gone (doc)
    ))
"""

# One round trip for all; no row is in two of the parts. Both conditions on `t.doc` are needed: with the join alone the
# planner may scan the namespace while the table is new and has no statistics.
_CHANGE: LiteralString = """
    with removed as (
        delete from turn where ns = %(ns)s and doc = any(%(gone)s::integer[])
    ), added as (
        insert into turn (ns, doc, session_id, place, id, previous, next, own)
        select %(ns)s, *
        from unnest(%(new_docs)s::integer[], %(sessions)s::text[], %(places)s::bigint[], %(ids)s::text[],
            %(new_previous)s::integer[], %(new_next)s::integer[], %(owns)b::halfvec[])
    )
    update turn t set previous = now.previous, next = now.next
    from unnest(%(docs)s::integer[], %(previous)s::integer[], %(next)s::integer[]) as now (doc, previous, next)
    where t.ns = %(ns)s and t.doc = now.doc and t.doc = any(%(docs)s::integer[])
"""


PLACES = PreparedStatement("select doc, place from turn where ns = %(ns)s and doc = any(%(docs)s::integer[])")
"""The places of turns in their sessions; `docs` are ordinals."""


async def around(conn: Connection, ns: int, places: Iterable[Place], *, gone: Collection[int] = ()) -> list[Turn]:
    """The stored turns near some places: two before each and at least two from it on, except those in `gone`."""
    wanted = sorted(set(places))
    if not wanted:
        return []
    parameters = {
        "ns": ns,
        "sessions": text_array([place.session_id for place in wanted]),
        "places": array_text(place.place for place in wanted),
        "ids": text_array([place.id for place in wanted]),
        "gone": array_text(gone),
    }
    rows = await fetch(conn, _AROUND, parameters, binary=True)
    return [
        Turn(doc, Place(session_id, place, memory_id), own.to_numpy(), previous, next_)
        for doc, session_id, place, memory_id, own, previous, next_ in rows
    ]


async def change(
    conn: Connection, ns: int, *, gone: Collection[int], added: Sequence[Turn], relinked: Sequence[Turn]
) -> None:
    """Delete turns by ordinal, insert `added`, and update the neighbours of `relinked`."""
    if not (gone or added or relinked):
        return
    parameters = {
        "ns": ns,
        "gone": array_text(gone),
        "new_docs": array_text(turn.doc for turn in added),
        "sessions": text_array([turn.place.session_id for turn in added]),
        "places": array_text(turn.place.place for turn in added),
        "ids": text_array([turn.place.id for turn in added]),
        "new_previous": array_text(turn.previous for turn in added),
        "new_next": array_text(turn.next for turn in added),
        "owns": [HalfVector(turn.text_vector) for turn in added],
        "docs": array_text(turn.doc for turn in relinked),
        "previous": array_text(turn.previous for turn in relinked),
        "next": array_text(turn.next for turn in relinked),
    }
    await conn.execute(_CHANGE, parameters)
