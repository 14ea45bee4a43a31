"""Settings of PostgreSQL that fit the machine and the workload: those of the embedded server, and advice for others."""

from __future__ import annotations

import sys
from typing import LiteralString, NamedTuple

from postgres.connection import Connection, fetch
from retrieval.machine import memory_bytes, processors, shared_memory_bytes

_MIB = 1024 * 1024

_LEAST_SHARED_MEMORY = 16 * _MIB
"""What the server's processes use of it, several times over."""

_SETTINGS: LiteralString = """
    select pg_size_bytes(current_setting('shared_buffers')), pg_size_bytes(current_setting('maintenance_work_mem')),
        pg_size_bytes(current_setting('max_wal_size')), current_setting('random_page_cost')::double precision,
        current_setting('autovacuum')::boolean, current_setting('fsync')::boolean,
        coalesce(pg_relation_size(to_regclass('memory_embedding')), 0)
"""


def tuned_settings() -> dict[str, str]:
    """Server settings for this machine; measurements in docs/decisions/0009-vector-at-scale.md."""
    memory_mib = memory_bytes() // _MIB
    maintenance_mib = max(64, min(memory_mib // 8, 2_048))
    shared_bytes = shared_memory_bytes()
    # Shared memory is too small for parallel builds in many containers.
    workers = 0 if 0 < shared_bytes < 2 * maintenance_mib * _MIB else min(4, processors() - 1)
    return {
        "shared_buffers": f"{max(64, min(memory_mib // 4, 8_192))}MB",
        "effective_cache_size": f"{max(128, memory_mib // 2)}MB",
        # The vector index is built in memory up to this size, 1.2 kB per vector; beyond, the build is many times
        # slower.
        "maintenance_work_mem": f"{maintenance_mib}MB",
        "autovacuum_work_mem": "64MB",
        "max_parallel_maintenance_workers": str(workers),
        # Some containers have no /dev/shm to write to, or a tiny one.
        "dynamic_shared_memory_type": (
            "sysv" if sys.platform == "linux" and shared_bytes < _LEAST_SHARED_MEMORY else "posix"
        ),
        "work_mem": "16MB",
        "max_connections": "100",
        "synchronous_commit": "on",
        # Inserting into the vector index changes tens of pages, and the first change of a page after a checkpoint logs
        # it whole, so checkpoints are rare.
        "max_wal_size": "4GB",
        "min_wal_size": "256MB",
        "checkpoint_timeout": "15min",
        "wal_compression": "off",
        "random_page_cost": "1.1",
        "max_parallel_workers_per_gather": "0",
        "jit": "off",
        # When a child crashes, the server ends and a watching process restarts it. If PostgreSQL 18 restarts itself on
        # a full disk, it may end up without a startup process: alive, but refusing connections for good.
        "restart_after_crash": "off",
        "log_checkpoints": "off",
        "log_min_messages": "warning",
        "log_min_error_statement": "panic",
        "log_parameter_max_length": "0",
        "log_parameter_max_length_on_error": "0",
    }


class ServerSettings(NamedTuple):
    """Settings of a server in bytes, and the size of its vector index."""

    shared_buffers: int
    maintenance_work_mem: int
    max_wal_size: int
    random_page_cost: float
    autovacuum: bool
    fsync: bool
    index_bytes: int


async def server_settings(conn: Connection) -> ServerSettings:
    """Read the settings of the server that `conn` is connected to."""
    [row] = await fetch(conn, _SETTINGS)
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
