"""Bulk: concurrent batches, results and equal ids in order, and resuming an import."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from retrieval.api import bulk
from retrieval.engine import Trivet
from tests.serving import problem_of, served

BULK = "/v1/namespaces/a/memories/bulk"
NDJSON = {"content-type": "application/x-ndjson"}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many chunks of few lines."""
    monkeypatch.setattr(bulk, "CHUNK_LINES", 4)


@pytest.fixture
async def client(database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with served(database_url, pool_size=8) as opened:
        yield opened


class Watched:
    """`Trivet.add`, counting concurrent calls, with a failure on demand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.most = self._now = self.calls = 0
        self.fail_at: int | None = None
        add = Trivet.add

        async def adding(engine: Trivet, *args: Any) -> Any:
            self.calls += 1
            if self.calls == self.fail_at:
                raise RuntimeError("out of luck")
            self._now += 1
            self.most = max(self.most, self._now)
            try:
                return await add(engine, *args)
            finally:
                self._now -= 1

        monkeypatch.setattr(Trivet, "add", adding)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


def lines(*memories: Mapping[str, object]) -> bytes:
    return b"".join(json.dumps(memory).encode() + b"\n" for memory in memories)


def results(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


async def test_a_few_chunks_at_a_time_answer_in_order(client: httpx.AsyncClient, watched: Watched) -> None:
    """No more than the limit; an id that comes again later wins, a session keeps the order of its lines."""
    memories = [{"id": f"m{at % 30}", "text": f"version {at}", "session_id": "s"} for at in range(60)]
    got = results(await client.post(BULK, content=lines(*memories), headers=NDJSON))
    assert [one["line"] for one in got] == list(range(1, 61))
    assert [one["status"] for one in got] == ["created"] * 30 + ["updated"] * 30
    assert 1 < watched.most <= bulk.CHUNKS_AT_ONCE
    listed = (await client.get("/v1/namespaces/a/memories", params={"limit": 100})).json()["memories"]
    assert {one["id"]: one["text"] for one in listed} == {f"m{at}": f"version {at + 30}" for at in range(30)}


async def test_the_first_chunk_goes_alone(client: httpx.AsyncClient, watched: Watched) -> None:
    """So that its failure is a problem with nothing stored."""
    watched.fail_at = 1
    memories = [{"id": f"m{at}", "text": "x"} for at in range(40)]
    problem_of(await client.post(BULK, content=lines(*memories), headers=NDJSON), 500)
    assert watched.calls == 1
    assert (await client.get("/v1/namespaces/a")).status_code == 404


async def test_a_failure_on_the_way_rejects_what_was_not_taken(client: httpx.AsyncClient, watched: Watched) -> None:
    """Each line says whether it is stored."""
    watched.fail_at = 3
    memories = [{"id": f"m{at}", "text": "x"} for at in range(40)]
    got = results(await client.post(BULK, content=lines(*memories), headers=NDJSON))
    assert [one["id"] for one in got] == [f"m{at}" for at in range(40)]
    assert [one["status"] for one in got[:12]] == ["created"] * 8 + ["rejected"] * 4
    assert got[-1]["status"] == "rejected"
    listed = (await client.get("/v1/namespaces/a/memories", params={"limit": 100})).json()["memories"]
    assert {one["id"] for one in listed} == {one["id"] for one in got if one["status"] == "created"}


async def run_import(database_url: str, *arguments: str, text: str | None = None) -> dict[str, Any]:
    """What `trivet import --json` prints."""
    command = [sys.executable, "-m", "retrieval.cli", "import", *arguments, "--json", "--database-url", database_url]
    done = await asyncio.to_thread(
        subprocess.run, command, input=text, stdout=subprocess.PIPE, text=True, check=True, timeout=300
    )
    return dict(json.loads(done.stdout))


async def test_an_import_is_taken_up_where_it_was(database_url: str, tmp_path: Path) -> None:
    """With or without ids: stored memories are left alone, a later line with the same id wins, equal lines stay two."""
    file = tmp_path / "history.jsonl"
    rows: list[dict[str, object]] = [{"text": f"note {at}"} for at in range(300)]
    rows += [{"text": "twice"}, {"text": "twice"}, {"id": "a", "text": "first"}, {"id": "a", "text": "second"}]
    file.write_bytes(lines(*rows[:260]))
    assert (await run_import(database_url, str(file)))["counts"] == {"created": 260}
    file.write_bytes(lines(*rows))
    assert (await run_import(database_url, str(file)))["counts"] == {"unchanged": 260, "created": 43, "updated": 1}
    await run_import(database_url, str(file))
    with psycopg.connect(database_url) as db:
        assert db.execute("select count(*), count(distinct text) from memory").fetchone() == (303, 302)
        assert db.execute("select text from memory where id = 'a'").fetchone() == ("second",)


async def test_rows_without_ids_on_standard_input_are_those_of_the_run_before(database_url: str) -> None:
    """As in a file: another run completes an interrupted one."""
    for status in ("created", "unchanged"):
        found = await run_import(database_url, "-", text='{"text": "hello"}\n')
        assert found["counts"] == {status: 1}
