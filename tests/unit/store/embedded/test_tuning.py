"""The memory that PostgreSQL is given a share of."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from retrieval.store.embedded import tuning

MIB = 1024 * 1024


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
    membership: str, limits: dict[str, object], buffers_mib: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a container, whose mount is its own, and of a service: as a quarter of the machine it would be killed."""
    (tmp_path / "membership").write_text(f"{membership}\n")
    for name, limit in limits.items():
        file = tmp_path / "groups" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{limit}\n")
    monkeypatch.setattr(tuning, "_MEMBERSHIP", f"{tmp_path}/membership")
    monkeypatch.setattr(tuning, "_CONTROL_GROUPS", f"{tmp_path}/groups")
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"total": 4_096 * MIB}))
    assert tuning.tuned_settings()["shared_buffers"] == f"{buffers_mib or 1_024}MB"
