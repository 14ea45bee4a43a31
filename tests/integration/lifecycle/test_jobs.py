"""Records of long-running jobs: progress, outcome, and a lost process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from click.testing import Result

from retrieval.api.app import create_app
from retrieval.embedding.cache import CachedEmbedder
from retrieval.engine import Trivet
from retrieval.errors import Conflict
from retrieval.lifecycle import jobs
from retrieval.lifecycle.jobs import Jobs, Progress
from retrieval.store.pool import Pool
from retrieval.types.job import Job
from retrieval.types.memory import MemoryInput
from tests.command import trivet as command
from tests.lock_waits import has_to_wait
from tests.processes import PATIENCE_S
from tests.serving import client_of, settings_for

NOTES = [MemoryInput(id=f"m{at}", text=f"Note {at}.") for at in range(40)]


@pytest.fixture
async def records(trivet: Trivet) -> Jobs:
    """The records of an engine whose namespaces `a` and `b` have memories."""
    for name in "ab":
        await trivet.add(name, NOTES)
    return trivet.jobs


@pytest.fixture
def beating(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs update so often that every one leaves a record."""
    monkeypatch.setattr(jobs, "BEAT_S", 0.001)


async def until_recorded(records: Jobs, namespace: str, *, done: int) -> Job:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if (found := await records.recent(namespace)) and found[0].done == done:
                return found[0]
            await asyncio.sleep(0.01)


@pytest.mark.usefixtures("beating")
async def test_a_job_says_how_far_it_is_and_that_it_is_done(records: Jobs) -> None:
    async with records.following(Progress(kind="import", namespace="a", total=40)) as progress:
        progress.done = 7
        job = await until_recorded(records, "a", done=7)
        assert (job.kind, job.state, job.total, job.finished_at) == ("import", "running", 40, None)
        progress.done = 40
    [job] = await records.recent("a")
    assert (job.state, job.done, job.error) == ("done", 40, None)
    assert job.finished_at is not None
    assert job.started_at < job.finished_at
    assert await records.recent("b") == []
    assert await records.recent() == [job]


@pytest.mark.usefixtures("beating")
@pytest.mark.parametrize(
    ("failure", "state", "error"),
    [
        (Conflict("It is otherwise."), "failed", "It is otherwise."),
        (RuntimeError("postgresql://secret"), "failed", "RuntimeError"),
        (asyncio.CancelledError(), "interrupted", None),
    ],
)
async def test_how_a_job_ended_badly(records: Jobs, failure: BaseException, state: str, error: str | None) -> None:
    async def work() -> None:
        async with records.following(Progress(kind="import", namespace="a")) as progress:
            progress.done = 7
            await until_recorded(records, "a", done=7)
            raise failure

    with pytest.raises(type(failure)):
        await work()
    [job] = await records.recent("a")
    assert (job.state, job.done, job.error) == (state, 7, error)


@pytest.mark.usefixtures("beating")
async def test_a_job_that_ends_while_its_record_is_created_is_done(
    records: Jobs, pool: Pool, database_url: str
) -> None:
    may_end = asyncio.Event()

    async def work() -> None:
        async with records.following(Progress(kind="import", namespace="a")):
            await may_end.wait()

    async with pool.connection() as conn:
        async with conn.transaction():
            await conn.execute("select from namespace where name = 'a' for update")
            working = asyncio.create_task(work())
            await has_to_wait(working, database_url)
            may_end.set()
            await asyncio.sleep(0)
        await working
    assert [job.state for job in await records.recent("a")] == ["done"]


async def test_short_work_leaves_no_record(records: Jobs) -> None:
    async with records.following(Progress(kind="import", namespace="a")):
        pass
    assert await records.recent() == []


async def test_a_job_whose_process_died_is_interrupted_and_hinders_no_other(
    records: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    await records.start(Progress(kind="reembed", namespace="a"))
    await records.start(Progress(kind="reembed", namespace="b"))
    with pytest.raises(Conflict, match="'a' is being given new vectors already"):
        await records.start(Progress(kind="reembed", namespace="a"))
    monkeypatch.setattr(jobs, "STALE_S", 0.0)
    assert {job.state for job in await records.recent()} == {"interrupted"}
    assert all(job.finished_at for job in await records.recent())
    await records.start(Progress(kind="reembed", namespace="a"))
    monkeypatch.undo()
    assert [(job.namespace, job.state) for job in await records.recent()] == [
        ("a", "running"),
        ("b", "running"),
        ("a", "interrupted"),
    ]


async def test_a_job_from_before_the_clock_was_set_back_hinders_no_other(records: Jobs, pool: Pool) -> None:
    await records.start(Progress(kind="reembed", namespace="a"))
    async with pool.connection() as conn:
        await conn.execute("update job set updated_at = now() + interval '1 hour'")
    assert [job.state for job in await records.recent()] == ["interrupted"]
    await records.start(Progress(kind="reembed", namespace="a"))
    assert [job.state for job in await records.recent()] == ["running", "interrupted"]


async def test_old_records_are_forgotten_and_those_of_a_namespace_go_with_it(
    trivet: Trivet, records: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "KEPT", 3)
    for name in ("b", *"aaaaaa"):
        progress = Progress(kind="import", namespace=name)
        await records.start(progress)
        async with records.following(progress):
            pass
    monkeypatch.setattr(jobs, "KEPT", 9)
    assert [job.namespace for job in await records.recent()] == [*"aaa", "b"]
    await trivet.delete_namespace("a")
    assert [job.namespace for job in await records.recent()] == ["b"]


@pytest.fixture
async def client(trivet: Trivet, database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    """Of a server with this engine."""
    async with client_of(create_app(settings_for(database_url), trivet)) as opened:
        yield opened


@pytest.mark.usefixtures("beating", "records")
async def test_reembedding_over_http(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    may_go_on, embed = asyncio.Event(), CachedEmbedder.embed_documents

    async def slowly(self: CachedEmbedder, texts: list[str]) -> object:
        await may_go_on.wait()
        return await embed(self, texts)

    monkeypatch.setattr(CachedEmbedder, "embed_documents", slowly)
    answer = await client.post("/v1/namespaces/a/reembed", json={})
    assert answer.status_code == 202
    assert (await client.post("/v1/namespaces/a/reembed", json={})).status_code == 409
    assert (await client.post("/v1/namespaces/absent/reembed", json={})).status_code == 404
    assert (await client.post("/v1/namespaces/a/reembed", json={"embedder": "other"})).status_code == 422
    [job] = (await client.get("/v1/jobs", params={"namespace": "a"})).json()["jobs"]
    assert (job["id"], job["kind"], job["state"]) == (answer.json()["id"], "reembed", "running")
    may_go_on.set()
    async with asyncio.timeout(PATIENCE_S):
        while job["state"] == "running":
            await asyncio.sleep(0.01)
            [job] = (await client.get("/v1/jobs")).json()["jobs"]
    assert (job["state"], job["done"], job["total"]) == ("done", 40, 40)


@pytest.mark.usefixtures("beating")
async def test_a_bulk_write_is_a_job(client: httpx.AsyncClient, trivet: Trivet) -> None:
    lines = "".join(f'{{"id":"m{at}","text":"Note {at}."}}\n' for at in range(300))
    answer = await client.post(
        "/v1/namespaces/bulk/memories/bulk", content=lines, headers={"content-type": "application/x-ndjson"}
    )
    assert answer.status_code == 200
    [job] = await trivet.jobs.recent("bulk")
    assert (job.kind, job.state, job.done, job.total) == ("import", "done", 300, None)


@pytest.mark.usefixtures("beating")
def test_commands_leave_records(database_url: str) -> None:
    lines = "".join(f'{{"id":"m{at}","text":"Note {at}."}}\n' for at in range(300))
    command(database_url, "import", "-n", "a", "-", stdin=lines)
    done: Result = command(database_url, "reembed", "-n", "a")
    assert "300 memories of 'a' have new vectors by all-MiniLM-L6-v2" in done.output
    assert '"memories": 300' in command(database_url, "reembed", "-n", "a", "--json").output
    assert "no namespace 'absent'" in command(database_url, "reembed", "-n", "absent", status=1).output

    async def recorded() -> list[tuple[str, str, int]]:
        async with Trivet.open(settings_for(database_url, pool_size=2)) as engine:
            return [(job.kind, job.state, job.done) for job in await engine.jobs.recent("a")]

    assert asyncio.run(recorded()) == [("reembed", "done", 300)] * 2 + [("import", "done", 300)]
