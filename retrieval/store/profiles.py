"""Rows of profiles, and of their promotions, shadows and models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, LiteralString, NamedTuple

from psycopg.types.json import Jsonb

from postgres.connection import Connection, fetch

# A database that is restored and then changed may count to the same number again.
_CHANGES = "select concat_ws(' ', counter, xmin, pg_postmaster_start_time()) from profile_change"

_LOCK_AND_NOTIFY = "update profile_change set counter = counter + 1"

_LIVE = """
    select l.name, l.version, p.parameters, s.version, c.parameters, s.share
    from (select distinct on (name) name, version from profile_promotion order by name, id desc) l
        join profile p using (name, version)
        left join profile_shadow s on s.name = l.name
        left join profile c on c.name = s.name and c.version = s.version
"""

_SUMMARIES = """
    select p.name, count(*),
        (select l.version from profile_promotion l where l.name = p.name order by l.id desc limit 1),
        min(s.version), min(s.share)
    from profile p left join profile_shadow s on s.name = p.name
    where %(name)s::text is null or p.name = %(name)s group by p.name order by p.name
"""

_VERSIONS = """
    select name, version, parameters, origin, note, report, created_at from profile
    where name = %(name)s and (%(version)s::integer is null or version = %(version)s) order by version desc
"""

_INSERT = """
    insert into profile (name, version, parameters, origin, note, report)
    values (%(name)s, %(version)s, %(parameters)s, %(origin)s, %(note)s, %(report)s)
"""

_REPORT = "update profile set report = %(report)s where name = %(name)s and version = %(version)s"

_HISTORY = """
    select version, by, at from profile_promotion where name = %(name)s order by id desc limit %(limit)s
"""

_PROMOTE = """
    insert into profile_promotion (name, version, by, before)
    select %(name)s, %(version)s, %(by)s, max(id) from profile_promotion where name = %(name)s
"""

_ROLL_BACK = """
    insert into profile_promotion (name, version, by, before)
    select %(name)s, b.version, 'rollback', b.before
    from profile_promotion newest join profile_promotion b on b.id = newest.before
    where newest.id = (select max(id) from profile_promotion where name = %(name)s)
    returning version
"""

_SET_SHADOW = """
    insert into profile_shadow (name, version, share) values (%(name)s, %(version)s, %(share)s)
    on conflict (name) do update set version = excluded.version, share = excluded.share
"""

_CLEAR_SHADOW = """
    delete from profile_shadow where name = %(name)s and (%(version)s::integer is null or version = %(version)s)
"""

_PUT_MODEL = """
    insert into model (sha256, kind, content) values (%(sha256)s, %(kind)s, %(content)s) on conflict do nothing
"""

_MODEL = "select content from model where sha256 = %(sha256)s and kind = %(kind)s"

HISTORY = 100
"""Most promotions returned."""


class LiveRow(NamedTuple):
    """A live version with its shadow, in the order of the statement's columns."""

    name: str
    version: int
    parameters: dict[str, Any]
    shadow_version: int | None
    shadow_parameters: dict[str, Any] | None
    share: float | None


class SummaryRow(NamedTuple):
    """A profile name: its number of versions, its live version, its shadow."""

    name: str
    versions: int
    live: int | None
    shadow_version: int | None
    share: float | None


class VersionRow(NamedTuple):
    """A version of a profile."""

    name: str
    version: int
    parameters: dict[str, Any]
    origin: str
    note: str
    report: dict[str, Any] | None
    created_at: datetime


class PromotionRow(NamedTuple):
    """A version that became live."""

    version: int
    by: str
    at: datetime


@asynccontextmanager
async def writing(conn: Connection) -> AsyncIterator[None]:
    """A transaction that excludes other processes' changes to profiles and notifies them of this one."""
    async with conn.transaction():
        await conn.execute(_LOCK_AND_NOTIFY)
        yield


async def changes(conn: Connection) -> str:
    """Differs after each change to profiles."""
    [(state,)] = await fetch(conn, _CHANGES)
    return str(state)


async def live(conn: Connection) -> Sequence[LiveRow]:
    """The live version of every name that has one."""
    return [LiveRow(*row) for row in await fetch(conn, _LIVE)]


async def summaries(conn: Connection, name: str | None = None) -> Sequence[SummaryRow]:
    """All names, sorted, or only `name`."""
    return [SummaryRow(*row) for row in await fetch(conn, _SUMMARIES, {"name": name})]


async def versions(conn: Connection, name: str, version: int | None = None) -> Sequence[VersionRow]:
    """The versions of a name, newest first, or only `version`."""
    return [VersionRow(*row) for row in await fetch(conn, _VERSIONS, {"name": name, "version": version})]


async def insert(
    conn: Connection,
    name: str,
    version: int,
    parameters: dict[str, Any],
    *,
    origin: str,
    note: str,
    report: dict[str, Any] | None = None,
) -> None:
    """Insert a version; requires `writing`."""
    row = {"name": name, "version": version, "origin": origin, "note": note}
    stored = None if report is None else Jsonb(report)
    await conn.execute(_INSERT, {**row, "parameters": Jsonb(parameters), "report": stored})


async def attach_report(conn: Connection, name: str, version: int, report: dict[str, Any]) -> None:
    """Attach a report to a version."""
    await conn.execute(_REPORT, {"name": name, "version": version, "report": Jsonb(report)})


async def history(conn: Connection, name: str, *, limit: int = HISTORY) -> Sequence[PromotionRow]:
    """The promotions of a name, newest first."""
    return [PromotionRow(*row) for row in await fetch(conn, _HISTORY, {"name": name, "limit": limit})]


async def promote(conn: Connection, name: str, version: int, *, by: LiteralString) -> None:
    """Make a version live; requires `writing`. It stops being a shadow."""
    await conn.execute(_PROMOTE, {"name": name, "version": version, "by": by})
    await conn.execute(_CLEAR_SHADOW, {"name": name, "version": version})


async def roll_back(conn: Connection, name: str) -> int | None:
    """Make the previously live version live again; requires `writing`. Returns its number, None if there was none."""
    rows = await fetch(conn, _ROLL_BACK, {"name": name})
    if not rows:
        return None
    [(version,)] = rows
    await conn.execute(_CLEAR_SHADOW, {"name": name, "version": version})
    return int(version)


async def set_shadow(conn: Connection, name: str, version: int, share: float) -> None:
    """Make a version the shadow of the live one for a share of its queries; requires `writing`."""
    await conn.execute(_SET_SHADOW, {"name": name, "version": version, "share": share})


async def clear_shadow(conn: Connection, name: str) -> None:
    """Remove the shadow; requires `writing`."""
    await conn.execute(_CLEAR_SHADOW, {"name": name, "version": None})


async def put_model(conn: Connection, kind: str, sha256: str, content: bytes) -> None:
    """Store a model unless it exists."""
    await conn.execute(_PUT_MODEL, {"sha256": sha256, "kind": kind, "content": content})


async def model(conn: Connection, kind: str, sha256: str) -> bytes | None:
    """The content of a model of that kind; None if there is none."""
    rows = await fetch(conn, _MODEL, {"sha256": sha256, "kind": kind})
    return bytes(rows[0][0]) if rows else None
