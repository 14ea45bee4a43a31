"""The query log: one row per search, in namespaces that enable it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString

import msgspec
from psycopg.types.json import Jsonb

from postgres.connection import Connection, fetch
from retrieval.types.journal import LoggedQuery, ScoredId
from retrieval.types.namespace import NamespaceSettings, QueryLogSettings

# Each insert deletes the row beyond the limit, and a few more to catch up after concurrent writers. `number` is a
# scalar subquery because the planner may turn a join into a scan of the table while it is new and has no statistics.
# The commit is asynchronous: a database crash may lose the last entries but nothing else.
NUMBERED: LiteralString = """
    with held as (
        select ns from namespace
        where ns = %(ns)s and set_config('synchronous_commit', 'off', true) = 'off' for key share
    ), numbered as (
        insert into journal as j (ns, queries) select ns, 1 from held
        on conflict (ns) do update set queries = j.queries + 1 returning j.queries as number
    ), outlived as (
        delete from query_log where ns = %(ns)s
            and number > (select number from numbered) - %(most)s - 64
            and number <= (select number from numbered) - %(most)s
    )
"""
"""The beginning of a statement that inserts a row with the next number of its namespace."""

_RECORD: LiteralString = (
    NUMBERED
    + """
    insert into query_log (ns, number, id, at, query, query_chars, query_hash, mode, profile, intent, ids, scores,
        filters, as_of, query_timestamp, total_ms)
    select %(ns)s, number, %(id)s, %(at)s, %(query)s, %(query_chars)s, %(query_hash)s, %(mode)s, %(profile)s,
        %(intent)s, %(ids)s::text[], %(scores)s::real[], %(filters)s::jsonb, %(as_of)s, %(query_timestamp)s,
        %(total_ms)s
    from numbered
"""
)

# The update changes nothing; it makes `returning` work if another writer inserted the row first.
_KEY: LiteralString = """
    insert into journal as j (ns) select ns from namespace where ns = %(ns)s for key share
    on conflict (ns) do update set key = j.key returning key
"""

# In the order of `LoggedQuery`'s fields after the number, with `results` split into ids and scores.
_COLUMNS: LiteralString = """
    number, id, at, query, query_chars, query_hash, mode, profile, intent, ids, scores, filters, as_of,
    query_timestamp, total_ms
"""

_PAGE: LiteralString = (
    "select " + _COLUMNS + " from query_log where ns = %(ns)s and number > %(after)s order by number limit %(limit)s"
)

_FIND: LiteralString = "select " + _COLUMNS + " from query_log where ns = %(ns)s and id = %(id)s"

_DELETE: LiteralString = """
    delete from query_log where ns = %(ns)s and (%(ids)s::text[] is null or id = any(%(ids)s::text[]))
"""

_REDACT: LiteralString = """
    update query_log set query = null, query_hash = null, filters = null
    where ns = %(ns)s and id = any(%(ids)s::text[])
        and (query is not null or query_hash is not null or filters is not null)
"""

_OLDEST: LiteralString = """
    select n.ns, n.settings, j.queries, oldest.number, oldest.at
    from journal j
        join namespace n on n.ns = j.ns
        cross join lateral (select number, at from query_log q where q.ns = j.ns order by number limit 1) as oldest
"""

_TRIM: LiteralString = """
    delete from query_log where ns = %(ns)s and (number <= %(number)s or at < %(since)s::timestamptz)
"""


async def record(conn: Connection, ns: int, entry: LoggedQuery, settings: QueryLogSettings) -> None:
    """Insert one entry, after redaction, and delete those beyond the limit; `conn` is in autocommit mode.

    Does nothing if the namespace is gone.
    """
    results = entry.results
    parameters = {
        **{name: getattr(entry, name) for name in LoggedQuery.__struct_fields__ if name not in ("results", "filters")},
        "ns": ns,
        "most": settings.max_entries,
        "ids": None if results is None else [result.id for result in results],
        "scores": None if results is None else [result.score for result in results],
        "filters": None if entry.filters is None else Jsonb(msgspec.to_builtins(entry.filters)),
    }
    await conn.execute(_RECORD, parameters)


async def key(conn: Connection, ns: int) -> bytes | None:
    """The key of the namespace's hashes, created on first use; None if the namespace is gone."""
    rows = await fetch(conn, _KEY, {"ns": ns})
    return rows[0][0] if rows else None


async def read(
    conn: Connection, ns: int, *, after: int = 0, limit: int | None = None
) -> Sequence[tuple[int, LoggedQuery]]:
    """Entries with numbers above `after`, oldest first, as (number in the namespace, entry)."""
    return [_numbered(row) for row in await fetch(conn, _PAGE, {"ns": ns, "after": after, "limit": limit})]


async def find(conn: Connection, ns: int, search_id: str) -> LoggedQuery | None:
    """The entry of one search; None if there is none."""
    rows = await fetch(conn, _FIND, {"ns": ns, "id": search_id})
    return _numbered(rows[0])[1] if rows else None


async def delete(conn: Connection, ns: int, *, ids: Sequence[str] | None = None) -> int:
    """Delete the entries of these searches, or all; returns the number deleted."""
    return (await conn.execute(_DELETE, {"ns": ns, "ids": None if ids is None else list(ids)})).rowcount


async def redact(conn: Connection, ns: int, ids: Sequence[str]) -> int:
    """Remove query text, hash and filters from the entries of these searches; returns the number changed."""
    return (await conn.execute(_REDACT, {"ns": ns, "ids": list(ids)})).rowcount


async def trim(conn: Connection) -> int:
    """Delete entries beyond the age and number that the namespaces' settings allow; returns the number deleted.

    Entries of a namespace that has since disabled its log fall under the default settings.
    """
    deleted = 0
    for ns, settings, last, number, at in await fetch(conn, _OLDEST):
        allowed = msgspec.convert(settings, NamespaceSettings).query_log or QueryLogSettings()
        days, now = allowed.max_age_days, datetime.now(UTC)
        since = None if days is None else now - timedelta(days=days)
        # One from when the clock was ahead does not say how old those after it are.
        if number <= last - allowed.max_entries or (since is not None and not since <= at <= now):
            bounds = {"ns": ns, "number": last - allowed.max_entries, "since": since}
            deleted += (await conn.execute(_TRIM, bounds)).rowcount
    return deleted


def _numbered(row: Sequence[Any]) -> tuple[int, LoggedQuery]:
    """Decode a row of `_COLUMNS`."""
    number, *before, ids, scores, filters, as_of, query_timestamp, total_ms = row
    results = None if ids is None else [ScoredId(id=i, score=s) for i, s in zip(ids, scores, strict=True)]
    values = *before, results, filters, as_of, query_timestamp, total_ms
    return number, msgspec.convert(dict(zip(LoggedQuery.__struct_fields__, values, strict=True)), LoggedQuery)
