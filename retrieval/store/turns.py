"""The turn table: the order of chat turns, their neighbours and own embeddings.

Locks: who changes turns holds their sessions by `lock_sessions` until the transaction ends, taken before any
row of `memory` is locked. So neighbours stay as they were read, and rows of other turns of these sessions can
be updated in any order. A memory that turns out to be in a session that is not held must not be changed: it was
moved meanwhile, and the writer starts again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from typing import Any, LiteralString

from pgvector import HalfVector
from psycopg import AsyncConnection

from graph.arrays import array_text, text_array
from retrieval.sessions import Place, Turn

MOST_SESSION_LOCKS = 128
"""Sessions that a writer locks one by one; with more it locks all of the namespace.

PostgreSQL keeps room for 64 locks per connection it allows, shared by all, and fails when there is none left.
"""

# The number is arbitrary; it keeps these locks apart from other uses of advisory locks.
_LOCK_SOME: LiteralString = """
    select pg_advisory_xact_lock_shared(8322, %(ns)s), pg_advisory_xact_lock(key)
    from unnest(%(keys)s::bigint[]) as session (key)
"""
_LOCK_ALL: LiteralString = "select pg_advisory_xact_lock(8322, %(ns)s)"

# `except` also takes out what is around two places. An array, since a join may be planned as a scan of the
# namespace, see `_CHANGE`.
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

# One round trip for all; no row is in two of the parts. Both conditions on `t.doc` are needed: the join alone
# may be planned as a scan of the namespace, while the table is new and nothing is known of its size.
_CHANGE: LiteralString = """
    with removed as (
        delete from turn where ns = %(ns)s and doc = any(%(gone)s::integer[])
    ), added as (
        insert into turn (ns, doc, session_id, place, id, previous, next, own)
        select %(ns)s, doc, session_id, place, id, nullif(previous, -1), nullif(next, -1), own
        from unnest(%(new_docs)s::integer[], %(sessions)s::text[], %(places)s::bigint[], %(ids)s::text[],
            %(new_previous)s::integer[], %(new_next)s::integer[], %(owns)b::halfvec[])
            as new (doc, session_id, place, id, previous, next, own)
    )
    update turn t set previous = nullif(now.previous, -1), next = nullif(now.next, -1)
    from unnest(%(docs)s::integer[], %(previous)s::integer[], %(next)s::integer[]) as now (doc, previous, next)
    where t.ns = %(ns)s and t.doc = now.doc and t.doc = any(%(docs)s::integer[])
"""


async def lock_sessions(conn: AsyncConnection[Any], ns: int, sessions: Collection[str]) -> None:
    """Keep other writers from these sessions until the transaction ends; at most one call per transaction."""
    if len(sessions) > MOST_SESSION_LOCKS:
        await conn.execute(_LOCK_ALL, {"ns": ns})
    elif sessions:
        keys = sorted({_lock_key(ns, session) for session in sessions})
        await conn.execute(_LOCK_SOME, {"ns": ns, "keys": array_text(keys)})


def _lock_key(ns: int, session: str) -> int:
    """A 64-bit hash; two sessions of the same one only wait for each other."""
    digest = hashlib.blake2b(f"{ns}:{session}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


async def around(
    conn: AsyncConnection[Any], ns: int, places: Iterable[Place], *, gone: Collection[int] = ()
) -> list[Turn]:
    """The stored turns near some places: two before and at least two from each on, without those of `gone`."""
    wanted = sorted(set(places))
    if not wanted:
        return []
    parameters = {
        "ns": ns,
        "sessions": text_array([at.session_id for at in wanted]),
        "places": array_text(at.place for at in wanted),
        "ids": text_array([at.id for at in wanted]),
        "gone": array_text(gone),
    }
    rows = await (await conn.execute(_AROUND, parameters, binary=True)).fetchall()
    return [
        Turn(doc, Place(session_id, place, memory_id), own.to_numpy(), previous, next_)
        for doc, session_id, place, memory_id, own, previous, next_ in rows
    ]


async def change(
    conn: AsyncConnection[Any], ns: int, *, gone: Collection[int], added: Sequence[Turn], relinked: Sequence[Turn]
) -> None:
    """Delete rows by ordinal, write new ones, and store the neighbours that others have now."""
    if not (gone or added or relinked):
        return
    parameters = {
        "ns": ns,
        "gone": array_text(gone),
        "new_docs": array_text(turn.doc for turn in added),
        "sessions": text_array([turn.at.session_id for turn in added]),
        "places": array_text(turn.at.place for turn in added),
        "ids": text_array([turn.at.id for turn in added]),
        "new_previous": _pointers(turn.previous for turn in added),
        "new_next": _pointers(turn.next for turn in added),
        "owns": [HalfVector(turn.own) for turn in added],
        "docs": array_text(turn.doc for turn in relinked),
        "previous": _pointers(turn.previous for turn in relinked),
        "next": _pointers(turn.next for turn in relinked),
    }
    await conn.execute(_CHANGE, parameters)


def _pointers(docs: Iterable[int | None]) -> str:
    return array_text(-1 if doc is None else doc for doc in docs)
