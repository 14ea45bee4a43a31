"""A lost database is a 503, not a crash, and once it is back the same server answers again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from retrieval.errors import Collided, InvalidInput, StoreUnavailable
from retrieval.store.embedded.instance import EmbeddedPostgres
from retrieval.store.pool import LOCK_TIMEOUT_MS, STATEMENT_TIMEOUT_MS, Pool
from tests.processes import PATIENCE_S
from tests.serving import problem_of, served

NAMESPACE = "/v1/namespaces/a"
REQUESTS: list[tuple[str, str, object]] = [
    ("GET", "/v1/namespaces", None),
    ("GET", NAMESPACE, None),
    ("PUT", NAMESPACE, {}),
    ("DELETE", f"{NAMESPACE}?confirm=a", None),
    ("GET", f"{NAMESPACE}/memories", None),
    ("POST", f"{NAMESPACE}/memories", {"memories": [{"id": "new", "text": "Not stored."}]}),
    ("GET", f"{NAMESPACE}/memories/m1", None),
    ("PATCH", f"{NAMESPACE}/memories/m1", {"tags": ["x"]}),
    ("DELETE", f"{NAMESPACE}/memories/m1", None),
    ("POST", f"{NAMESPACE}/memories/delete", {"filters": {"tags_any": ["x"]}}),
    ("POST", f"{NAMESPACE}/search", {"query": "Who moved to Porto?"}),
    ("POST", f"{NAMESPACE}/context", {"query": "Who moved to Porto?"}),
    ("GET", "/health/ready", None),
]


@pytest.fixture
def postgres(data_dir: Path) -> Iterator[EmbeddedPostgres]:
    """The test's own server, to be stopped."""
    server = EmbeddedPostgres(data_dir, settings={"fsync": "off"})
    try:
        server.start()
        yield server
    finally:
        server.stop()


async def test_a_database_that_goes_and_comes_back(
    postgres: EmbeddedPostgres, subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503 for everything that needs it meanwhile, long before waiting for a busy pool would time out."""
    monkeypatch.setattr("retrieval.store.pool.WAIT_TIMEOUT_S", 3_600.0)
    url = await asyncio.to_thread(postgres.start)
    memory = {"id": "m1", "text": "My sister Ines moved to Porto."}
    async with served(url) as client:
        assert (await client.post(f"{NAMESPACE}/memories", json={"memories": [memory]})).status_code == 201
        await asyncio.to_thread(postgres.stop)
        async with asyncio.timeout(PATIENCE_S):
            answers = await asyncio.gather(*(client.request(way, path, json=body) for way, path, body in REQUESTS))
        for (way, path, _), answer in zip(REQUESTS, answers, strict=True):
            with subtests.test(way=way, path=path):
                problem_of(answer, 503)
        bulk = await client.post(
            f"{NAMESPACE}/memories/bulk", content=b'{"text": "x"}', headers={"content-type": "application/x-ndjson"}
        )
        problem_of(bulk, 503)
        assert (await client.get("/health/live")).status_code == 200
        assert await asyncio.to_thread(postgres.start) == url
        search = await _first_answer(client)
        assert [found["id"] for found in search["results"]] == ["m1"]
        assert search["degraded"] == []
        assert (await client.get(f"{NAMESPACE}/memories")).json()["next_cursor"] is None
        assert (await client.get("/health/ready")).status_code == 200


async def _first_answer(client: httpx.AsyncClient) -> dict[str, list[dict[str, object]]]:
    """The first complete answer after the database is back, which must come soon."""
    deadline = time.monotonic() + 120
    while True:
        answer = await client.post(f"{NAMESPACE}/search", json={"query": "Who moved to Porto?"})
        if answer.status_code == 200 and not answer.json()["degraded"]:
            found: dict[str, list[dict[str, object]]] = answer.json()
            return found
        assert time.monotonic() < deadline, answer.text


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("select pg_terminate_backend(pg_backend_pid())", StoreUnavailable),
        ("select pg_sleep(600)", StoreUnavailable),
        ("select '\\ud800'::json, chr(0)", InvalidInput),
        ("select 2147483647::int4 + 1::int4", InvalidInput),
        ("select repeat('[', 200000)::jsonb", InvalidInput),
        (
            "do 'begin create temp table t (x text unique) on commit drop; "
            "insert into t select string_agg(md5(n::text), '''') from generate_series(1, 200) as n; end'",
            InvalidInput,
        ),
        ("do 'begin raise sqlstate ''54000'' using hint = ''Execute a database-wide VACUUM.''; end'", StoreUnavailable),
        ("do 'begin set transaction read only; create table t (i int4); end'", StoreUnavailable),
        ("do 'begin raise sqlstate ''40P01''; end'", Collided),
        ("do 'begin raise sqlstate ''23505''; end'", Collided),
        ("do 'begin raise sqlstate ''XX000''; end'", StoreUnavailable),
        ("select * from nowhere", psycopg.errors.UndefinedTable),
    ],
)
async def test_what_the_driver_raises_becomes_ours(pool: Pool, statement: str, expected: type[Exception]) -> None:
    """Each by its SQLSTATE; our own defects stay as they are, and the pool keeps working."""

    async def execute() -> None:
        async with pool.connection() as conn:
            if "pg_sleep" in statement:
                await conn.execute("set statement_timeout = 200")
            await conn.execute(statement.encode())

    with pytest.raises(expected):
        await execute()
    async with pool.connection() as conn:
        assert await (await conn.execute("select 1")).fetchone() == (1,)


async def test_nobody_waits_long_for_a_lock(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a statement may take: as many that wait as there are connections would be a server that is down."""
    assert LOCK_TIMEOUT_MS < STATEMENT_TIMEOUT_MS, "or the error would not say that it was a lock"
    monkeypatch.setattr("retrieval.store.pool.LOCK_TIMEOUT_MS", 300)
    monkeypatch.setattr("retrieval.store.pool.STATEMENT_TIMEOUT_MS", 3_600_000)
    async with served(database_url) as client, asyncio.timeout(PATIENCE_S):
        memory = {"id": "m1", "text": "My sister Ines moved to Porto."}
        await client.post(f"{NAMESPACE}/memories", json={"memories": [memory]})
        with psycopg.connect(database_url) as other:
            other.execute("select from memory for update")
            answer = await client.delete(f"{NAMESPACE}/memories/m1")
            assert "due to lock timeout" in str(problem_of(answer, 503)["detail"])
            other.execute("lock table memory")
            problem_of(await client.get(f"{NAMESPACE}/export"), 503)
        assert (await client.delete(f"{NAMESPACE}/memories/m1")).status_code == 204


@pytest.fixture
def clerk(database_url: str) -> Iterator[str]:
    """The database's URL for a role that may do all that Trivet does."""
    rights = (
        "create role clerk login; grant create on schema public to clerk; "
        "grant all on all tables in schema public to clerk; grant all on all sequences in schema public to clerk"
    )
    with psycopg.connect(database_url, autocommit=True) as db:
        db.execute(rights.encode())
        yield database_url.replace("postgres@", "clerk@")
        db.execute("drop owned by clerk; drop role clerk")


async def test_a_right_that_was_taken_away_is_told(database_url: str, clerk: str) -> None:
    """Not as a defect of ours; later all is well."""
    async with served(clerk) as client:
        with psycopg.connect(database_url, autocommit=True) as db:
            db.execute("revoke select on trivet_migration, namespace from clerk")
            for path in ("/health/ready", "/v1/namespaces"):
                assert "permission denied" in str(problem_of(await client.get(path), 503)["detail"])
            db.execute("grant select on trivet_migration, namespace to clerk")
        assert (await client.get("/health/ready")).status_code == 200


async def test_a_server_that_has_its_connections_is_ready_where_there_are_no_more(
    database_url: str, clerk: str
) -> None:
    async with served(clerk) as client:
        with psycopg.connect(database_url, autocommit=True) as db:
            db.execute("alter role clerk connection limit 4")
        assert (await client.get("/health/ready")).status_code == 200
