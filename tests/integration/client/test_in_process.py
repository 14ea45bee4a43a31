"""Trivet within this process."""

from __future__ import annotations

import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

import trivet
from retrieval.errors import SettingsError
from tests.processes import new_data_dir, postgres_in


def test_the_synchronous_one_is_used_from_several_threads(database_url: str) -> None:
    with trivet.open(database_url=database_url, namespace="ana") as memory:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda number: memory.add(f"Boat number {number} is blue."), range(20)))
        assert len(list(memory.get_all())) == 20
        assert memory.search("boat", top_k=20).degraded == []
        assert "Boat number 7" in memory.context("boat number 7", max_tokens=100).context
        with pytest.raises(trivet.InvalidInput, match="top"):
            memory.search("boat", top=3)
    with pytest.raises(RuntimeError):
        memory.search("boat")


async def test_the_asynchronous_one(database_url: str) -> None:
    async with trivet.aopen(database_url=database_url) as memory:
        await memory.add("The kettle is copper.", namespace="ana")
        assert [result.text async for result in memory.get_all(namespace="ana")] == ["The kettle is copper."]


def test_a_folder_keeps_what_was_added() -> None:
    """The embedded PostgreSQL runs as long as the block."""
    with new_data_dir() as folder:
        for expected in (["created"], ["unchanged"]):
            with trivet.open(data_dir=folder, namespace="ana") as memory:
                results = memory.add({"id": "m1", "text": "x"})
                assert [result.status for result in results] == expected
            assert postgres_in(folder) == []


def test_a_server_key_of_the_environment_is_not_asked_for(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVET_API_KEY", "a-key-of-the-server")
    with trivet.open(database_url=database_url, namespace="ana") as memory:
        assert memory.add("x")[0].status == "created"


def test_the_interpreter_stays_as_its_owner_set_it(database_url: str) -> None:
    before = (gc.get_threshold(), gc.get_freeze_count(), sys.getswitchinterval())
    with trivet.open(database_url=database_url):
        assert (gc.get_threshold(), gc.get_freeze_count(), sys.getswitchinterval()) == before


def test_what_cannot_be_opened(database_url: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="not both"), trivet.open(data_dir=tmp_path, database_url=database_url):
        pass
    gone = psycopg.conninfo.make_conninfo(database_url, dbname="nobody_made_it")
    with pytest.raises(trivet.TrivetError), trivet.open(database_url=gone):
        pass
