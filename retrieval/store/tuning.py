"""Settings of the embedded PostgreSQL that depend on the machine."""

from __future__ import annotations

from pathlib import Path

import psutil

_MIB = 1024 * 1024


def tuned_settings() -> dict[str, str]:
    """Server settings for this machine's memory: a quarter of it as buffers, at most 2 GiB."""
    memory_mib = _memory_bytes() // _MIB
    return {
        "shared_buffers": f"{max(64, min(memory_mib // 4, 2_048))}MB",
        "effective_cache_size": f"{max(128, memory_mib // 2)}MB",
        "maintenance_work_mem": f"{max(64, min(memory_mib // 16, 512))}MB",
        "work_mem": "16MB",
        "max_connections": "100",
        "synchronous_commit": "on",
        "max_wal_size": "2GB",
        "random_page_cost": "1.1",
        "max_parallel_workers_per_gather": "0",
        "jit": "off",
        "log_checkpoints": "off",
        "log_min_messages": "warning",
        "log_min_error_statement": "panic",
        "log_parameter_max_length": "0",
        "log_parameter_max_length_on_error": "0",
    }


def _memory_bytes() -> int:
    """This machine's memory, or what the container may use of it."""
    total: int = psutil.virtual_memory().total
    for limit_file in (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")):
        if limit_file.is_file() and (limit := limit_file.read_text().strip()).isdigit():
            return min(total, int(limit))
    return total
