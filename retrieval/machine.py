"""Memory and processors available to this process: containers and services limit them by cgroups, v1 or v2."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from math import ceil
from pathlib import Path

import psutil

_MEMBERSHIP, _CONTROL_GROUPS = "/proc/self/cgroup", "/sys/fs/cgroup"

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  # what is created in it gets a unique name


def memory_bytes() -> int:
    """This machine's memory, or the limit of this process."""
    limits = _limits("memory", "memory.max", "memory.limit_in_bytes")
    return min([psutil.virtual_memory().total, *(int(limit) for [limit] in limits if limit.isdigit())])


def shared_memory_bytes() -> int:
    """How much is free in the folder of shared memory: 0 where there is none, or none to write to."""
    return shutil.disk_usage(SHARED_MEMORY).free if os.access(SHARED_MEMORY, os.W_OK) else 0


def processors() -> int:
    """How many processors this process can keep busy: its CPU affinity or its CPU quota, rounded up."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    shares = _limits("cpu", "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")
    return min([allowed, *(ceil(int(quota) / int(period)) for quota, period in shares if quota.isdigit())])


def _limits(controller: str, *names: str) -> Iterator[list[str]]:
    """The contents of these files in this process's cgroups and all their parents; a container sees only the root."""
    membership = Path(_MEMBERSHIP)
    for line in membership.read_text().splitlines() if membership.is_file() else ():
        _, controllers, own = line.split(":", 2)
        if not controllers or controller in controllers.split(","):
            group = Path(_CONTROL_GROUPS + (controllers and f"/{controller}") + own)
            for files in ([folder / name for name in names] for folder in (group, *group.parents)):
                if words := [word for file in files if file.is_file() for word in file.read_text().split()]:
                    yield words
