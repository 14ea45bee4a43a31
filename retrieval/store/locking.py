"""Stored memories as seen by a writer, and locks held until the transaction ends."""

from __future__ import annotations

from binascii import crc32
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import LiteralString, NamedTuple

from postgres.arrays import array_text, text_array
from postgres.connection import Connection, fetch
from retrieval.store.visibility import Condition

MOST_LOCKS = 128
"""Most ids or sessions that a writer locks one by one; of more ids it locks this many hash buckets, of sessions all.

PostgreSQL's lock table has room for 64 locks per allowed connection, shared by all, and a statement fails when it is
full.
"""

# The class number is arbitrary and separates these locks from other advisory locks. Rows come in the order of the
# array, and so do the locks.
_LOCK_NAMES: LiteralString = """
    select case when alone then pg_advisory_xact_lock(8323, key) else pg_advisory_xact_lock_shared(8323, key) end
    from unnest(%(keys)s::integer[], %(alone)s::boolean[]) as lock (key, alone)
"""

# Does the same as `store.sessions.session_of`.
_SESSION: LiteralString = """
    case when m.session_id is null and m.kind = 'chunk' then E'\\x1f' || m.document_id else m.session_id end
"""

SUPERSEDED: LiteralString = """
    array(select x.old from supersession x where x.ns = m.ns and x.doc = m.doc order by x.place)
"""
"""The ids that a memory supersedes."""

# `offset 0` makes PostgreSQL look up superseding memories by index: planned while the table was empty, a join would
# read all of it for each row.
SUPERSEDED_BY: LiteralString = """
    array(
        select s.id from supersession x
            cross join lateral (select s.id from memory s where s.ns = x.ns and s.doc = x.doc offset 0) as s
        where x.ns = m.ns and x.old = m.id order by s.id
    )
"""
"""The ids that supersede a memory."""

# No join with `turn`: planned while the table was empty, it reads the whole namespace.
_VERSIONS: LiteralString = (
    "select m.id, m.doc, m.fingerprint, m.created_at, " + _SESSION + ", " + SUPERSEDED
    + """, (select t.place from turn t where t.ns = m.ns and t.doc = m.doc)
    from memory m where m.ns = %(ns)s
    """
)  # fmt: skip

_LOCKED: LiteralString = " order by m.id for update of m"

_LOCK_CHAINS = "select pg_advisory_xact_lock(8323, %(key)s)"

_IS_SUPERSEDED = "select exists (select from supersession where ns = %(ns)s and old = any(%(ids)s))"

# `offset 0` makes each round use the index: a new table has no statistics, and would be joined as a whole.
_CHAINS = """
    with recursive chain (id, old) as (
        select m.id, x.old from memory m join supersession x on x.ns = m.ns and x.doc = m.doc
        where m.ns = %(ns)s and m.id = any(%(ids)s)
        union
        select next.id, next.old from chain cross join lateral (
            select m.id, x.old from memory m join supersession x on x.ns = m.ns and x.doc = m.doc
            where m.ns = %(ns)s and m.id = chain.old offset 0
        ) as next
    )
    select id, array_agg(old) from chain group by id
"""


class MemoryVersion(NamedTuple):
    """What a writer needs to know of a stored memory.

    Attributes:
        fingerprint: the hash of what was sent.
        superseded_ids: the ids that it supersedes.
        place: a turn's place in its session.
    """

    id: str
    doc: int
    fingerprint: bytes
    created_at: datetime
    session_id: str | None
    superseded_ids: list[str]
    place: int | None = None


async def versions(conn: Connection, ns: int, condition: Condition | None) -> Mapping[str, MemoryVersion]:
    """The versions of some memories, by id."""
    return {version.id: version for version in await _read(conn, ns, condition)}


async def lock(conn: Connection, ns: int, condition: Condition | None) -> Sequence[MemoryVersion]:
    """The versions of some memories, whose rows stay locked until the transaction ends."""
    return await _read(conn, ns, condition, _LOCKED)


async def _read(
    conn: Connection, ns: int, condition: Condition | None, ending: LiteralString = ""
) -> Sequence[MemoryVersion]:
    if condition is None:
        return ()
    statement = _VERSIONS + " and (" + condition.sql + ")" + ending
    return [MemoryVersion(*row) for row in await fetch(conn, statement, {"ns": ns, **condition.parameters})]


async def lock_names(
    conn: Connection, ns: int, *, sessions: Collection[str], written: Collection[str], superseded: Collection[str]
) -> None:
    """Block writers of these sessions and of memories that concern these ids; at most one call per transaction.

    A memory and those that supersede it are not written concurrently: rows that do not exist yet cannot be locked, and
    if one transaction writes a memory and another adds or removes a memory that supersedes it, neither would see the
    other's change. A transaction at READ COMMITTED that waits here sees, in its later statements, what the other
    committed.

    `written` are the ids to be written, except newly generated ones that no one else knows; `superseded` are those that
    the memories to be written or removed supersede, or superseded before.
    """
    if sessions or written or superseded:
        locks = [*_session_locks(ns, sessions).items(), *_id_locks(ns, written, superseded).items()]
        wanted = dict(sorted(locks))  # if two have the same key, the exclusive one
        await conn.execute(_LOCK_NAMES, {"keys": array_text(wanted), "alone": array_text(wanted.values())})


def _key(ns: int, kind: str, name: object = None) -> int:
    """A lock's key; a hash collision only makes writers wait for each other."""
    return crc32(repr((ns, kind, name)).encode()) - 2**31


def _session_locks(ns: int, sessions: Collection[str]) -> dict[int, bool]:
    """The keys of locks on sessions, and whether each lock is exclusive."""
    all_sessions = _key(ns, "sessions")
    if len(sessions) > MOST_LOCKS:
        return {all_sessions: True}
    return {all_sessions: False} | {_key(ns, "session", session): True for session in sessions}


def _id_locks(ns: int, written: Collection[str], superseded: Collection[str]) -> dict[int, bool]:
    """The keys of locks on ids, and whether each lock is exclusive.

    Written ids take shared locks, by id or by bucket, so superseded ids are locked both ways.
    """

    def by_id(memory_id: str) -> int:
        return _key(ns, "id", memory_id)

    def by_bucket(memory_id: str) -> int:
        return _key(ns, "bucket", crc32(memory_id.encode()) % MOST_LOCKS)

    if len(superseded) > MOST_LOCKS / 2:
        return {_key(ns, "all"): True}
    lock = by_bucket if len(written) > MOST_LOCKS else by_id
    together = {_key(ns, "all"), *map(lock, written)}
    alone = {*map(by_id, superseded), *map(by_bucket, superseded)}
    return dict.fromkeys(together, False) | dict.fromkeys(alone, True)


async def chains(
    conn: Connection, ns: int, ids: Collection[str], superseded: Collection[str]
) -> Mapping[str, list[str]]:
    """Stored supersessions with which new ones could close a cycle: the superseded ids by id.

    The chains do not change until the end of the transaction, which holds the locks of `lock_names`. `ids` will
    supersede `superseded`; if no stored memory supersedes any of `ids`, no cycle is possible.
    """
    [[is_superseded]] = await fetch(conn, _IS_SUPERSEDED, {"ns": ns, "ids": text_array([*ids])})
    if not is_superseded:
        return {}
    await conn.execute(_LOCK_CHAINS, {"key": _key(ns, "chains")})
    return dict(await fetch(conn, _CHAINS, {"ns": ns, "ids": text_array([*superseded])}))
