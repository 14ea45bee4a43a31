"""The database's clock jumps ahead, so that changes are discarded that a server process has not read."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from retrieval.store import changes
from tests.faults.servers import Server, Servers
from tests.integration.index.test_registry import Process, assert_right, memory

_CLOCK = Path(__file__).with_name("clock.c")
_FLAGS = ("-shared", "-fPIC", "-nostdlib")  # the functions it calls are in the process that loads it


@pytest.fixture(autouse=True)
def ahead(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file whose size is the number of seconds by which all servers' clocks in a test are ahead."""
    library, ahead = servers.folder / "clock.so", servers.folder / "ahead"
    compiler = shutil.which("cc") or pytest.skip("no C compiler on the path")
    subprocess.run((compiler, *_FLAGS, _CLOCK, "-o", library), check=True)
    library.chmod(0o755)
    ahead.touch(0o644)
    monkeypatch.setenv("CLOCK_AHEAD", str(ahead))
    monkeypatch.setenv("LD_PRELOAD", str(library))
    return ahead


async def test_what_is_forgotten_too_early_is_not_missed(process: Process, ahead: Path, primary: Server) -> None:
    await process.ingest.add("n", [memory("a")])
    assert await process.ids("boats") == {"a"}
    await process.ingest.add("n", [memory("b")])
    async with process.pool.connection() as conn:
        await changes.trim(conn)
        assert primary.one("select count(*) from memory_change") == 2
        os.truncate(ahead, 2 * changes.KEPT_S)
        await changes.trim(conn)
    assert primary.one("select count(*) from memory_change") == 0
    assert await process.ids("boats") == {"a", "b"}
    await assert_right(process)
