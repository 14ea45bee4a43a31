"""`examine`: its findings in a healthy installation, and for each possible fault."""

from __future__ import annotations

import asyncio
import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from postgres.connection import Connection, fetch
from retrieval import doctor
from retrieval.doctor import check_database, check_models, examine
from retrieval.settings import Settings
from retrieval.store.embedded.tuning import ServerSettings, advice
from retrieval.store.pool import connect
from retrieval.types.state import Finding
from tests.serving import settings_for

SECRET = "hunter2-of-the-database"
MIB = 1024 * 1024


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


async def test_a_sound_database_is_found_sound(database_url: str) -> None:
    findings = await examine(settings_for(database_url))
    found = [finding for finding in findings if not finding.name.startswith("model")]
    assert all(finding.ok for finding in found), found
    assert [finding.name for finding in found] == [
        "Python",
        "database",
        "PostgreSQL",
        "pgvector",
        "migrations",
        "vector index",
        "settings",
        "clock",
    ]


async def test_a_database_that_is_not_migrated(empty_database_url: str) -> None:
    found = by_name(await examine(settings_for(empty_database_url)))
    assert [name for name, finding in found.items() if not finding.ok] == ["pgvector", "migrations"]
    assert "a superuser first runs `create extension vector`" in found["pgvector"].detail
    assert "vector index" not in found, "a migration makes it"
    assert "start the server, or run `trivet migrate`" in found["migrations"].detail


async def test_a_server_that_migrations_refuse(empty_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrieval.store.migrate.LEAST_SERVER_VERSION", 190_000)
    found = by_name(await examine(settings_for(empty_database_url)))["PostgreSQL"]
    assert not found.ok
    assert "PostgreSQL 18 is too old" in found.detail


async def test_what_else_is_asked_for_needs_a_migrated_database(database_url: str, empty_database_url: str) -> None:
    """The files of indexes are not looked at where there are no tables."""

    async def check(_: Connection) -> list[Finding]:
        return [Finding("something else", False, "is wrong")]

    for url, is_asked in ((database_url, True), (empty_database_url, False)):
        found = by_name(await examine(settings_for(url), check))
        assert ("something else" in found) is is_asked


async def test_a_missing_vector_index(database_url: str) -> None:
    with psycopg.connect(database_url) as db:
        db.execute("drop index memory_embedding")
    async with await connect(database_url) as connection:
        found = by_name(await check_database(connection))
    assert not found["vector index"].ok


async def test_what_a_server_should_be_set_to(database_url: str) -> None:
    """The tests' server has neither autovacuum nor fsync; a default server has little memory."""
    found = by_name(await examine(settings_for(database_url)))["settings"]
    assert found.ok
    assert "autovacuum is off" in found.detail
    assert "fsync is off" in found.detail
    as_it_comes = ServerSettings(128 * MIB, 64 * MIB, 1_024 * MIB, 4.0, True, True, 1_200 * MIB)
    assert [said.split(" is ")[0] for said in advice(as_it_comes)] == [
        "shared_buffers",
        "maintenance_work_mem",
        "max_wal_size",
        "random_page_cost",
    ]
    assert "set 2400 MB" in advice(as_it_comes)[0]
    assert "set 1500 MB" in advice(as_it_comes)[1]
    assert advice(ServerSettings(4_096 * MIB, 2_048 * MIB, 4_096 * MIB, 1.1, True, True, 1_200 * MIB)) == []


async def test_a_lock_that_others_wait_for(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The holder is named, not who waits before others, and no check waits for it, too."""
    monkeypatch.setattr(doctor, "MOST_LOCKED_S", 0.0)
    async with (
        await connect(database_url) as db,
        await connect(database_url) as first,
        await connect(database_url) as last,
    ):
        with psycopg.connect(f"{database_url}&application_name=clerk") as holder:
            holder.execute("lock table memory, namespace")
            pid = holder.info.backend_pid
            waiting = [asyncio.create_task(each.execute("select from memory")) for each in (first, last)]
            waits = "select count(*) = 2 from pg_locks where relation = 'memory'::regclass and not granted"
            while await fetch(db, waits) != [(True,)]:
                pass
            [found] = [finding for finding in await check_database(db) if not finding.ok]
        await asyncio.gather(*waiting)
    assert found.name == "locks"
    assert f"a lock that the session {pid} of postgres (clerk) holds" in found.detail


async def test_a_changed_migration(database_url: str) -> None:
    with psycopg.connect(database_url) as db:
        db.execute("update trivet_migration set checksum = 'x' where version = 1")
    found = by_name(await examine(settings_for(database_url)))
    assert not found["migrations"].ok
    assert "checksum" in found["migrations"].detail


async def test_an_unreachable_database_tells_no_password() -> None:
    findings = await examine(Settings(database_url=f"postgresql://ann:{SECRET}@127.0.0.1:1/notes", api_key=SECRET))
    assert findings[-1].name == "database"
    assert not findings[-1].ok
    assert SECRET not in str(findings)


async def test_an_unfit_data_folder(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("")
    found = by_name(await examine(Settings(data_dir=tmp_path)))
    assert found["disk"].ok
    assert not found["database"].ok
    assert "not empty" in found["database"].detail


def test_models_are_compared_with_their_checksums(tmp_path: Path) -> None:
    assert [finding.ok for finding in check_models(tmp_path)] == [False]
    for name in ("right.onnx", "wrong.onnx"):
        (tmp_path / name).write_text(name)
    right = hashlib.sha256(b"right.onnx").hexdigest()
    (tmp_path / "SHA256SUMS").write_text(f"{right}  right.onnx\n{right}  wrong.onnx\n{right}  missing.onnx\n")
    assert [(finding.name, finding.ok) for finding in check_models(tmp_path)] == [
        ("model right.onnx", True),
        ("model wrong.onnx", False),
        ("model missing.onnx", False),
    ]


@pytest.mark.parametrize(("seconds", "ok"), [(0, True), (-4, True), (60, False), (-60, False)])
async def test_a_clock_that_is_off(database_url: str, monkeypatch: pytest.MonkeyPatch, seconds: int, ok: bool) -> None:
    class Shifted(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]  # only called with UTC
            return datetime.now(UTC) + timedelta(seconds=seconds)

    monkeypatch.setattr(doctor, "datetime", Shifted)
    async with await connect(database_url) as connection:
        found = by_name(await check_database(connection))
    assert found["clock"].ok is ok
