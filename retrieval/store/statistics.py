"""Updates statistics and visibility maps after bulk writes, before autovacuum does."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import sql

from postgres.connection import Connection, fetch

_STALE = """
    select relname from pg_stat_user_tables
    where schemaname = current_schema() and n_mod_since_analyze > 500 + 0.2 * n_live_tup
    order by relname
"""

_VACUUM = sql.SQL("vacuum (analyze, index_cleanup off, skip_locked) {}")


async def stale(conn: Connection) -> list[str]:
    """The names of the tables that changed by a fifth since they were last analysed."""
    return [name for (name,) in await fetch(conn, _STALE)]


async def refresh(conn: Connection, tables: Sequence[str]) -> None:
    """Vacuum and analyse tables, except those that another process vacuums at this moment.

    `conn` is in autocommit mode and without a statement timeout, as a large table takes minutes. Index entries of dead
    rows are left to autovacuum, as cleaning the HNSW index takes long.
    """
    for table in tables:
        await conn.execute(_VACUUM.format(sql.Identifier(table)))
