"""Updates statistics and visibility maps after bulk writes, before autovacuum does."""

from __future__ import annotations

from psycopg import sql

from postgres.connection import Connection, fetch

_STALE = """
    select relname from pg_stat_user_tables
    where schemaname = current_schema() and n_mod_since_analyze > 500 + 0.2 * n_live_tup
    order by relname
"""


async def refresh(conn: Connection) -> list[str]:
    """Vacuum and analyse tables that changed by a fifth since the last time; returns their names.

    Index entries of dead rows are left to autovacuum, as cleaning the HNSW index takes long.
    """
    tables = [name for (name,) in await fetch(conn, _STALE)]
    for table in tables:
        await conn.execute(sql.SQL("vacuum (analyze, index_cleanup off) {}").format(sql.Identifier(table)))
    return tables
