"""Advice on the settings of a PostgreSQL server that Trivet does not run itself."""

from __future__ import annotations

from typing import Any, LiteralString, NamedTuple

from psycopg import AsyncConnection

_MIB = 1024 * 1024

_SETTINGS: LiteralString = """
    select pg_size_bytes(current_setting('shared_buffers')), pg_size_bytes(current_setting('maintenance_work_mem')),
        pg_size_bytes(current_setting('max_wal_size')), current_setting('random_page_cost')::double precision,
        current_setting('autovacuum')::boolean, current_setting('fsync')::boolean,
        coalesce(pg_relation_size(to_regclass('memory_embedding')), 0)
"""


class ServerSettings(NamedTuple):
    """Settings of a server in bytes, and the size of its vector index."""

    shared_buffers: int
    maintenance_work_mem: int
    max_wal_size: int
    random_page_cost: float
    autovacuum: bool
    fsync: bool
    index_bytes: int


async def server_settings(conn: AsyncConnection[Any]) -> ServerSettings:
    """Read the settings of the server that `conn` is connected to."""
    [row] = await (await conn.execute(_SETTINGS)).fetchall()
    return ServerSettings(*row)


def advice(server: ServerSettings) -> list[str]:
    """Recommended changes, most important first; one sentence each.

    >>> advice(ServerSettings(2**30, 2**29, 2**32, 4.0, True, True, 0))
    ['random_page_cost is 4: on solid-state disks set 1.1']
    """
    index_mib = -(-server.index_bytes // _MIB)
    least_buffers = max(512, 2 * index_mib)
    least_build = max(256, index_mib + index_mib // 4)
    tips = []
    if not server.fsync:
        tips.append("fsync is off: a crash of the machine can destroy the database")
    if not server.autovacuum:
        tips.append("autovacuum is off: deleted memories stay in the tables and plans grow stale")
    if server.shared_buffers < least_buffers * _MIB:
        tips.append(
            f"shared_buffers is {server.shared_buffers // _MIB} MB: set {least_buffers} MB or a quarter of the "
            f"machine's memory (the vector index has {index_mib} MB)"
        )
    if server.maintenance_work_mem < least_build * _MIB:
        tips.append(
            f"maintenance_work_mem is {server.maintenance_work_mem // _MIB} MB: set {least_build} MB, or a rebuild of "
            "the vector index takes many times as long"
        )
    if server.max_wal_size < 2_048 * _MIB:
        tips.append(f"max_wal_size is {server.max_wal_size // _MIB} MB: set 4096 MB, so that bulk writes log less")
    if server.random_page_cost > 2:
        tips.append(f"random_page_cost is {server.random_page_cost:g}: on solid-state disks set 1.1")
    return tips
