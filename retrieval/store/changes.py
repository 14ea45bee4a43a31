"""Log of changed memories, from which server processes update their in-memory indexes.

A PostgreSQL snapshot determines for every transaction whether it is visible. A reader that loaded a namespace in one
snapshot and asks for the changes of transactions that are visible now but were not then misses none, whatever the
order of their commits. Three things could break this, and are checked with each query:

- A transaction number is reused: a crash loses transactions whose WAL was not flushed, and a promoted standby or a
  restored backup lacks the last ones. So a snapshot is valid for one incarnation of the database.
- A change is trimmed before it was read: the database's clock may jump, a process may be suspended. So the database
  records the last transaction whose changes were trimmed.
- A standby's snapshots do not list the transactions in progress on its primary. There the status of each transaction
  is looked up instead.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import LiteralString, NamedTuple

from postgres.arrays import array_text
from postgres.connection import Connection
from postgres.prepared import BoundStatement, Parameters, PreparedStatement

KEPT_S = 3_600
"""How long changes are kept, in seconds."""

KEPT_FOR_FILES_S = 7 * 86_400
"""How long changes that an index file needs to be brought up to date are kept, in seconds."""

ENTITIES = -1
"""Recorded instead of an ordinal: entities were merged or renamed, or memories now mention others."""

# Changes with a different server or a restart; with a crash of one process, after which PostgreSQL restarts without a
# new postmaster but discards its statistics; with a promotion; with a table restored from a dump.
_INCARNATION: LiteralString = """
    concat_ws(' ', pg_postmaster_start_time(), pg_stat_get_bgwriter_stat_reset_time(), pg_is_in_recovery(),
        pg_relation_filepath('memory_change'))
"""

_ALL_ENDED: LiteralString = "pg_snapshot_xmin(pg_current_snapshot())"
"""All transactions before this one have ended, also on a standby."""

SNAPSHOT: LiteralString = (
    _INCARNATION + ", pg_is_in_recovery(), case when pg_is_in_recovery() "
    "then concat(" + _ALL_ENDED + ", ':', " + _ALL_ENDED + ", ':') else pg_current_snapshot()::text end"
)
"""Columns of a `DatabaseSnapshot`, for the statement that reads the data; on a standby it is conservative."""

# A transaction that has ended by the time of this statement is visible to the next one, but not always to this one.
_NEXT_SNAPSHOT = PreparedStatement(
    "select " + _INCARNATION + """, pg_is_in_recovery(), case when pg_is_in_recovery() then (
        select concat(pg_snapshot_xmin(now), ':', pg_snapshot_xmax(now), ':', string_agg(xid::text, ',' order by xid))
        from (
            select pg_snapshot_xip(before)::text::bigint
            union all
            select generate_series(pg_snapshot_xmax(before)::text::bigint, pg_snapshot_xmax(now)::text::bigint - 1)
        ) as begun (xid)
        where pg_xact_status(xid::text::xid8) = 'in progress'
    ) else now::text end
    from pg_current_snapshot() as now cross join lateral coalesce(
        %(transactions)s::pg_snapshot, concat(pg_snapshot_xmin(now), ':', pg_snapshot_xmin(now), ':')::pg_snapshot
    ) as before
    """
)  # fmt: skip

ARE_KEPT: LiteralString = (
    """
    not exists (
        select from memory_change_trimmed t
        where t.xid >= pg_snapshot_xmin(%(transactions)s::pg_snapshot) and t.xid < """ + _ALL_ENDED + """
    )
    """
)  # fmt: skip
"""Condition: all changes since a snapshot of this database are still recorded."""

IS_CONTINUED: LiteralString = (
    _INCARNATION + """ = %(incarnation)s
        and pg_snapshot_xmax(pg_current_snapshot()) >= pg_snapshot_xmax(%(transactions)s::pg_snapshot) and """
    + ARE_KEPT
)  # fmt: skip
"""Column: whether data read as of a snapshot can be updated incrementally; for statements that fetch changes."""

# Transaction numbers above the snapshot's xmax come from the dump of another cluster. Two index scans, because a long
# open transaction keeps `xmin` low, and many changes may have been recorded since.
CHANGED: LiteralString = """array(
    select unnest(docs) from memory_change
    where ns = n.ns and xid >= pg_snapshot_xmax(%(transactions)s::pg_snapshot)
        and xid < pg_snapshot_xmax(pg_current_snapshot())
    union all
    select unnest(docs) from memory_change
    where ns = n.ns and xid = any(array(select pg_snapshot_xip(%(transactions)s::pg_snapshot)))
)"""
"""Column: ordinals of `namespace n` that changed since a snapshot, and `ENTITIES`, with duplicates."""

DESCRIBED = CHANGED.replace("unnest(docs)", "unnest(entities)")
"""Column: entities added, deleted or renamed since, with duplicates."""

_RECORD: LiteralString = (
    "insert into memory_change (ns, docs, entities) values (%(ns)s, %(docs)s::integer[], %(entities)s::bigint[])"
)

# Uses now(), as PostgreSQL would use no index or join for a condition on clock_timestamp().
_TRIM: LiteralString = (
    """
    with forgotten as (
        delete from memory_change c
        where at not between now() - make_interval(secs => %(kept_s)s) and now() + make_interval(secs => %(kept_s)s)
            and (xid < """ + _ALL_ENDED + """ or xid >= pg_snapshot_xmax(pg_current_snapshot()))
            and not exists (
                select from index_file f
                where f.ns = c.ns and c.xid >= pg_snapshot_xmin(f.transactions)
                    and c.at between now() - make_interval(secs => %(kept_for_files_s)s)
                        and now() + make_interval(secs => %(kept_for_files_s)s)
            )
        returning ns, xid
    ), outdated as (
        delete from index_file f using forgotten c where f.ns = c.ns and c.xid >= pg_snapshot_xmin(f.transactions)
    ), latest as (
        select max(xid) as xid from forgotten where xid < """ + _ALL_ENDED + """
    )
    update memory_change_trimmed t set xid = latest.xid from latest
    where latest.xid > t.xid or latest.xid is not null and t.xid >= """ + _ALL_ENDED
)  # fmt: skip


class DatabaseSnapshot(NamedTuple):
    """The state of a database up to which a reader has read.

    Attributes:
        incarnation: of the database; transaction numbers are meaningless in another.
        on_standby: whether it was read on a standby.
        transactions: PostgreSQL's snapshot; everything visible in it has been read, and possibly more.
    """

    incarnation: str
    on_standby: bool
    transactions: str

    @property
    def parameters(self) -> Parameters:
        """The parameters of `IS_CONTINUED` and `CHANGED`."""
        return {"incarnation": self.incarnation, "transactions": self.transactions}


def next_snapshot(before: DatabaseSnapshot | None = None) -> BoundStatement:
    """Query for a snapshot that is valid for the reads of later statements.

    On a standby, transactions are looked up from `before` on, a snapshot of the same incarnation.
    """
    return _NEXT_SNAPSHOT, {"transactions": before and before.transactions}


async def take_snapshot(conn: Connection) -> DatabaseSnapshot:
    """Take a snapshot that is valid for the reads of later statements."""
    statement, parameters = next_snapshot()
    return DatabaseSnapshot(*(await statement.rows(conn, parameters))[0])


@asynccontextmanager
async def one_snapshot(conn: Connection) -> AsyncIterator[None]:
    """A read-only transaction whose statements all see the same snapshot."""
    async with conn.transaction():
        await conn.execute("set transaction isolation level repeatable read, read only")
        yield


async def record(conn: Connection, ns: int, docs: Collection[int], *, described: Collection[int] = ()) -> None:
    """Record which memories were added, removed or changed, or `ENTITIES`, in the transaction that did it.

    `described` are entities added, deleted or renamed, except common phrases, see `graph.store.write`.
    """
    if docs:
        entities = array_text(sorted(described)) if described else None
        await conn.execute(_RECORD, {"ns": ns, "docs": array_text(sorted(docs)), "entities": entities})


async def trim(conn: Connection, *, kept_s: float = KEPT_S, kept_for_files_s: float = KEPT_FOR_FILES_S) -> None:
    """Delete changes older than `kept_s` and record the last transaction trimmed.

    Changes that an index file needs are kept for `kept_for_files_s`; after that the file is useless. Changes from when
    the clock was ahead by more than that count as old.

    Changes since the oldest transaction still open anywhere in the cluster are kept until it ends: an index that is
    being loaded in that transaction needs them.
    """
    await conn.execute(_TRIM, {"kept_s": kept_s, "kept_for_files_s": kept_for_files_s})
