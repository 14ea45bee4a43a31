"""Trivet and its PostgreSQL respect the limits of a container or a service."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from retrieval import machine
from retrieval.store.embedded import tuning

MIB = 1024 * 1024

Groups = Callable[[str, dict[str, object]], None]


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Groups:
    """Makes control groups: those that this process is in, and their files."""

    def make(membership: str, files: dict[str, object]) -> None:
        (tmp_path / "membership").write_text(f"{membership}\n")
        for name, content in files.items():
            file = tmp_path / "groups" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{content}\n")
        monkeypatch.setattr(machine, "_MEMBERSHIP", f"{tmp_path}/membership")
        monkeypatch.setattr(machine, "_CONTROL_GROUPS", f"{tmp_path}/groups")

    return make


@pytest.mark.parametrize(
    ("membership", "limits", "buffers_mib"),
    [
        ("0::/", {"memory.max": 1_024 * MIB}, 256),
        ("0::/", {"memory/memory.limit_in_bytes": 1_024 * MIB}, None),
        ("0::/system.slice/trivet.service", {"system.slice/trivet.service/memory.max": 512 * MIB}, 128),
        ("0::/a/b", {"a/memory.max": 512 * MIB, "a/b/memory.max": "max"}, 128),
        ("5:cpu:/x\n4:memory:/trivet\n0::/", {"memory/trivet/memory.limit_in_bytes": 512 * MIB}, 128),
        ("4:memory:/docker/of:the-host", {"memory/memory.limit_in_bytes": 512 * MIB}, 128),
        ("0::/", {}, None),
    ],
)
def test_a_limit_of_memory_is_kept(
    membership: str,
    limits: dict[str, object],
    buffers_mib: int | None,
    groups: Groups,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a container, with its own mount, and of a service: with a quarter of the machine it would be killed."""
    groups(membership, limits)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"total": 4_096 * MIB}))
    assert tuning.tuned_settings()["shared_buffers"] == f"{buffers_mib or 1_024}MB"


@pytest.mark.parametrize(
    ("membership", "files", "processors"),
    [
        ("0::/", {"cpu.max": "200000 100000"}, 2),
        ("0::/", {"cpu.max": "150000 100000"}, 2),
        ("0::/", {"cpu.max": "10000 100000"}, 1),
        ("0::/", {"cpu.max": "max 100000"}, 16),
        ("0::/", {"cpu.max": "9900000 100000"}, 16),
        ("0::/a/b", {"a/cpu.max": "300000 100000", "a/b/cpu.max": "max 100000"}, 3),
        (
            "4:cpu,cpuacct:/docker/of-the-host",
            {"cpu/cpu.cfs_quota_us": 400_000, "cpu/cpu.cfs_period_us": 100_000},
            4,
        ),
        ("1:cpu:/", {"cpu/cpu.cfs_quota_us": -1, "cpu/cpu.cfs_period_us": 100_000}, 16),
        ("0::/", {}, 16),
    ],
)
def test_no_more_threads_than_a_share_of_the_processors_keeps_busy(
    membership: str, files: dict[str, object], processors: int, groups: Groups, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More would use up the quota at the start of each tenth of a second, and all would stop until the next."""
    groups(membership, files)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {*range(16)}, raising=False)
    monkeypatch.setattr(machine, "SHARED_MEMORY", Path("/none"))  # a small one allows no workers
    assert machine.processors() == processors
    assert tuning.tuned_settings()["max_parallel_maintenance_workers"] == str(min(4, processors - 1))


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="Linux alone keeps a process to some processors")
def test_a_process_that_is_kept_to_one_processor_counts_one() -> None:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert machine.processors() == 1
    finally:
        os.sched_setaffinity(0, allowed)
