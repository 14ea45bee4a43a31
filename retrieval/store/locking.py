"""Memories as a writer finds them: what is there, and rows locked until the transaction ends."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from psycopg import AsyncConnection

from graph.arrays import text_array
from retrieval.store.visibility import MATCHES, eligibility
from retrieval.types import Filters

_VERSIONS = "select id, fingerprint, session_id, supersedes from memory where ns = %(ns)s and id = any(%(ids)s)"

_LOCKED = """
    select m.id, m.doc, m.fingerprint, m.session_id, t.place
    from memory m left join turn t on t.ns = m.ns and t.doc = m.doc
    where m.ns = %(ns)s
"""

_LOCK = _LOCKED + " and m.id = any(%(ids)s) order by m.id for update of m"

_LOCK_MATCHING = _LOCKED + " and " + MATCHES + " order by m.id for update of m"

_SESSIONS_MATCHING = (
    "select distinct m.session_id from memory m where m.ns = %(ns)s and m.session_id is not null and " + MATCHES
)


class Version(NamedTuple):
    """What a writer must know of a stored memory: the hash of what was sent, its session, whom it supersedes."""

    fingerprint: bytes
    session_id: str | None
    supersedes: str | None


class LockedMemory(NamedTuple):
    """A row held until the transaction ends; `place` is that of a turn in its session."""

    id: str
    doc: int
    fingerprint: bytes
    session_id: str | None
    place: int | None


async def versions(conn: AsyncConnection[Any], ns: int, ids: Sequence[str]) -> Mapping[str, Version]:
    """The version of each id that exists."""
    if not ids:
        return {}
    cursor = await conn.execute(_VERSIONS, {"ns": ns, "ids": text_array(ids)})
    return {memory_id: Version(*version) for memory_id, *version in await cursor.fetchall()}


async def lock(conn: AsyncConnection[Any], ns: int, ids: Collection[str]) -> Sequence[LockedMemory]:
    """The rows of the ids that exist, locked until the transaction ends."""
    if not ids:
        return ()
    cursor = await conn.execute(_LOCK, {"ns": ns, "ids": text_array([*ids])})
    return [LockedMemory(*row) for row in await cursor.fetchall()]


async def lock_matching(conn: AsyncConnection[Any], ns: int, filters: Filters) -> Sequence[LockedMemory]:
    """All memories that meet the filters, locked until the transaction ends."""
    cursor = await conn.execute(_LOCK_MATCHING, {**eligibility(filters), "ns": ns})
    return [LockedMemory(*row) for row in await cursor.fetchall()]


async def sessions_matching(conn: AsyncConnection[Any], ns: int, filters: Filters) -> Sequence[str]:
    """The sessions of all memories that meet the filters."""
    cursor = await conn.execute(_SESSIONS_MATCHING, {**eligibility(filters), "ns": ns})
    return [session for (session,) in await cursor.fetchall()]
