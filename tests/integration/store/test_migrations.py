"""Migrations: from empty, repeated, concurrent, and with histories that do not match."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from msgspec import structs
from psycopg.types.json import Jsonb

from postgres.connection import Connection
from retrieval.embedding.onnx import DIMENSIONS
from retrieval.errors import MigrationError, StoreError, StoreUnavailable
from retrieval.ingest.service import Ingest
from retrieval.profiles.profile import DEFAULT, Models
from retrieval.store.migrate import _LOCK, AppliedMigration, Migration, bundled, migrate, outstanding, pending
from retrieval.store.pool import connect, open_pool
from retrieval.types.memory import MemoryInput, MemoryPatch
from tests.processes import PATIENCE_S
from tests.turns import check_turns, hashed, own_vector, sessions_of, stored_turns

FIRST = Migration(version=1, name="first", sql="create table a (x integer); create table b (x integer)")
SECOND = Migration(version=2, name="second", sql="alter table a add y integer")


def applied(*migrations: Migration) -> list[AppliedMigration]:
    return [AppliedMigration(version=m.version, name=m.name, checksum=m.checksum) for m in migrations]


def tables(url: str) -> set[str]:
    with psycopg.connect(url) as db:
        rows = db.execute("select tablename from pg_tables where schemaname = 'public'").fetchall()
        return {row[0] for row in rows}


async def test_an_empty_database_gets_them_all_and_a_second_run_none(empty_database_url: str) -> None:
    versions = [migration.version for migration in bundled()]
    assert await pending(empty_database_url) == versions
    assert tables(empty_database_url) == set(), "asking changes nothing"
    assert await migrate(empty_database_url) == versions
    assert {"namespace", "memory", "turn", "bm25_tail", "entity", "mention", "feedback", "trivet_migration"} <= tables(
        empty_database_url
    )
    assert await pending(empty_database_url) == []
    assert await migrate(empty_database_url) == []


async def test_what_is_recorded(empty_database_url: str) -> None:
    await migrate(empty_database_url, series=[FIRST, SECOND])
    with psycopg.connect(empty_database_url) as db:
        rows = db.execute("select version, name, checksum from trivet_migration order by version").fetchall()
    assert rows == [(1, "first", FIRST.checksum), (2, "second", SECOND.checksum)]


def test_the_columns_hold_vectors_as_long_as_the_embedders(database_url: str) -> None:
    with psycopg.connect(database_url) as db:
        statement = "select distinct atttypmod from pg_attribute where atttypid = 'halfvec'::regtype and attnum > 0"
        columns = "and attrelid in ('memory'::regclass, 'turn'::regclass)"
        assert db.execute(f"{statement} {columns}").fetchall() == [(DIMENSIONS,)]


async def test_an_older_database_with_rows_is_brought_up(empty_database_url: str) -> None:
    assert await migrate(empty_database_url, series=[FIRST]) == [1]
    with psycopg.connect(empty_database_url) as db:
        db.execute("insert into a values (7)")
    assert await migrate(empty_database_url, series=[FIRST, SECOND]) == [2]
    with psycopg.connect(empty_database_url) as db:
        assert db.execute("select x, y from a").fetchall() == [(7, None)]


TURNS = [  # id, session, position, minute, in the order of insertion
    ("late", "by time", None, 30),
    ("early", "by time", None, 10),
    ("same time", "by time", None, 30),
    ("b", "by position", 7, 1),
    ("a", "by position", 7, 2),
    ("é", "by position", 7, 3),
    ("Z", "by position", 7, 4),
    ("first", "by position", 0, 9),
    ("alone", "lonely", None, 1),
    ("fact", None, None, 1),
]

_MEMORY = """
    insert into memory (ns, doc, id, kind, text, session_id, position, created_at, tags, metadata, entities,
        relations, fingerprint, length, embedding)
    values (%(ns)s, %(doc)s, %(id)s, 'message', %(id)s, %(session_id)s, %(position)s,
        timestamptz '2024-01-01 00:00Z' + %(minute)s * interval '1 minute', '{}', '{}', '[]', '[]', '', 1,
        %(embedding)s::halfvec)
"""


async def test_turns_of_the_first_release_get_their_places_and_context(empty_database_url: str) -> None:
    assert await migrate(empty_database_url, series=bundled()[:1]) == [1]
    with psycopg.connect(empty_database_url) as db:
        db.execute("insert into namespace (name, next_doc) values ('n', 10)")
        for doc, (memory_id, session_id, position, minute) in enumerate(TURNS):
            row = {
                "ns": 1,
                "doc": doc,
                "id": memory_id,
                "session_id": session_id,
                "position": position,
                "minute": minute,
                "embedding": str(own_vector(memory_id).tolist()),
            }
            db.execute(_MEMORY, row)
        db.execute(_MEMORY, {**row, "ns": 2, "id": "elsewhere", "session_id": "by time"})
    assert (await migrate(empty_database_url))[0] == 2
    assert stored_turns(empty_database_url)["elsewhere"].previous is None, "of another namespace"
    with psycopg.connect(empty_database_url) as db:
        assert db.execute("select distinct traits from memory").fetchall() == [(0,)], "as of an empty text"
        db.execute("delete from turn where ns = 2")
        db.execute("delete from memory where ns = 2")
    turns = {memory_id: memory_id for memory_id, session_id, _, _ in TURNS if session_id}
    sessions = sessions_of(check_turns(empty_database_url, turns).values())
    assert [(turn.id, turn.place) for turn in sessions["by time"]] == [("early", 0), ("late", 1), ("same time", 2)]
    assert [turn.id for turn in sessions["by position"]] == ["first", "Z", "a", "b", "é"]
    async with open_pool(empty_database_url, 1) as pool:
        ingest = Ingest(pool, hashed())
        await ingest.add("n", [MemoryInput(id="next", text="next", session_id="by time")])
        await ingest.delete("n", "late")
    del turns["late"]
    check_turns(empty_database_url, turns | {"next": "next"})


async def test_a_memory_that_ended_before_it_began_can_be_changed(database_url: str) -> None:
    [migration] = [each for each in bundled() if each.name == "expired_at_once"]
    async with open_pool(database_url, 1) as pool:
        ingest = Ingest(pool, hashed())
        await ingest.add("n", [MemoryInput(id=memory_id, text=memory_id) for memory_id in ("lasting", "expired")])
        with psycopg.connect(database_url) as db:
            db.execute("update memory set expires_at = '2023-12-31Z' where id = 'expired'")
            db.execute("delete from memory_change")
            db.execute(migration.sql.encode())
            assert db.execute("select docs from memory_change").fetchall() == [([1],)], "for indexes kept in files"
        memory = await ingest.patch("n", "expired", MemoryPatch(tags=["changed"]))
    assert memory.created_at == memory.expires_at == datetime(2023, 12, 31, tzinfo=UTC)


async def test_profiles_that_name_a_renamed_model_have_its_new_name(empty_database_url: str) -> None:
    await migrate(empty_database_url, series=bundled()[:5])
    models = Models(weights="weights-permissive.onnx", rescorer="rescorer-permissive.onnx")
    with psycopg.connect(empty_database_url) as db:
        db.execute(
            "insert into profile (name, version, parameters, origin) values ('permissive', 1, %s, 'shipped')",
            [Jsonb(structs.replace(DEFAULT, models=models).parameters)],
        )
    await migrate(empty_database_url)
    with psycopg.connect(empty_database_url) as db:
        [(parameters,)] = db.execute("select parameters from profile").fetchall()
    assert parameters == DEFAULT.parameters


async def test_a_failing_migration_leaves_nothing_of_itself_and_all_before_it(empty_database_url: str) -> None:
    failing = Migration(version=2, name="failing", sql="create table c (x integer); select 1 / 0")
    with pytest.raises(MigrationError, match="migration 2 'failing' failed: division by zero"):
        await migrate(empty_database_url, series=[FIRST, failing])
    assert tables(empty_database_url) == {"a", "b", "trivet_migration"}
    assert await migrate(empty_database_url, series=[FIRST, SECOND]) == [2]


async def test_a_table_of_another_program_is_told_and_nothing_is_left_beside_it(empty_database_url: str) -> None:
    with psycopg.connect(empty_database_url) as db:
        db.execute("create table a (x integer)")
        db.execute("create schema own")
    with pytest.raises(MigrationError, match='relation "a" already exists; give Trivet a schema of its own'):
        await migrate(empty_database_url, series=[FIRST])
    assert tables(empty_database_url) == {"a"}
    own = psycopg.conninfo.make_conninfo(empty_database_url, options="-csearch_path=own,public")
    assert await migrate(own, series=[FIRST]) == [1]


async def test_tables_are_not_split_between_two_schemas(empty_database_url: str) -> None:
    await migrate(empty_database_url, series=[FIRST])
    with psycopg.connect(empty_database_url) as db:
        db.execute("create schema own")
    own = psycopg.conninfo.make_conninfo(empty_database_url, options="-csearch_path=own,public")
    assert await migrate(own, series=[FIRST]) == []
    with pytest.raises(MigrationError, match="tables are in the schema 'public', but new ones would go into 'own'"):
        await migrate(own, series=[FIRST, SECOND])
    with psycopg.connect(empty_database_url) as db:
        db.execute("drop table trivet_migration")
    assert await migrate(own, series=[FIRST, SECOND]) == [1, 2]
    assert tables(empty_database_url) == {"a", "b"}


async def test_concurrent_runs_apply_each_migration_once(empty_database_url: str) -> None:
    slow = Migration(version=1, name="slow", sql="select pg_sleep(0.2); create table a (x integer)")
    results = await asyncio.gather(*(migrate(empty_database_url, series=[slow, SECOND]) for _ in range(6)))
    assert sorted(results) == [[], [], [], [], [], [1, 2]]


def test_two_processes_apply_each_migration_once(empty_database_url: str) -> None:
    program = (
        "import asyncio, sys; from retrieval.store.migrate import migrate; print(asyncio.run(migrate(sys.argv[1])))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = (sys.executable, "-c", program, empty_database_url)
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    said = sorted(process.communicate(timeout=PATIENCE_S) for process in processes)
    assert said == [(f"{[migration.version for migration in bundled()]}\n", ""), ("[]\n", "")]


async def test_a_migration_of_another_process_is_waited_for_whatever_the_roles_timeouts(
    empty_database_url: str,
) -> None:
    with psycopg.connect(empty_database_url, autocommit=True) as db:
        for setting in ("statement_timeout", "lock_timeout"):
            db.execute(f"alter database {db.info.dbname} set {setting} = '1s'")  # enough for whatever waits for nobody
    slow = Migration(version=1, name="slow", sql="select pg_sleep(1.2); create table a (x integer)")
    results = await asyncio.gather(*(migrate(empty_database_url, series=[slow]) for _ in range(2)))
    assert sorted(results) == [[], [1]]


async def test_a_changed_file_is_an_error(empty_database_url: str) -> None:
    await migrate(empty_database_url, series=[FIRST])
    changed = Migration(version=1, name="first", sql=FIRST.sql + " ")
    with pytest.raises(MigrationError, match="the checksum of migration 1 'first' is not the one"):
        await migrate(empty_database_url, series=[changed])


async def test_a_database_of_a_newer_version_is_an_error(database_url: str) -> None:
    with psycopg.connect(database_url) as db:
        db.execute("insert into trivet_migration values (9999, 'future', 'x', now())")
    with pytest.raises(MigrationError, match="newer Trivet \\(migration 9999 'future'"):
        await pending(database_url)


def test_histories_that_fit() -> None:
    assert outstanding([FIRST, SECOND], []) == [FIRST, SECOND]
    assert outstanding([FIRST, SECOND], applied(FIRST)) == [SECOND]
    assert outstanding([FIRST, SECOND], applied(FIRST, SECOND)) == []


def test_a_history_with_a_gap_is_an_error() -> None:
    with pytest.raises(MigrationError, match="the database has migration 2 but not 1"):
        outstanding([FIRST, SECOND], applied(SECOND))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["0001_a.sql", "0003_b.sql"], "migration 2 is missing"),
        (["0002_a.sql"], "migration 1 is missing"),
        (["0001_a.sql", "0001_b.sql"], "migration 2 is missing or there twice"),
        (["1_a.sql"], "'1_a.sql' is not named NNNN_name.sql"),
    ],
)
def test_a_series_with_a_gap_is_an_error(tmp_path: Path, names: list[str], message: str) -> None:
    for name in names:
        (tmp_path / name).write_text("select 1")
    with pytest.raises(MigrationError, match=message):
        bundled(tmp_path)


def test_the_checksum_does_not_depend_on_line_ends(tmp_path: Path) -> None:
    (tmp_path / "0001_a.sql").write_bytes(b"select\n1")
    unix = bundled(tmp_path)[0].checksum
    (tmp_path / "0001_a.sql").write_bytes(b"select\r\n1")
    assert bundled(tmp_path)[0].checksum == unix


async def test_an_old_server_is_refused(empty_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrieval.store.migrate.LEAST_SERVER_VERSION", 190_000)
    with pytest.raises(MigrationError, match=r"PostgreSQL 18 is too old"):
        await migrate(empty_database_url)


async def test_an_old_pgvector_is_refused(empty_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrieval.store.migrate.LEAST_VECTOR_VERSION", (99, 0))
    with pytest.raises(MigrationError, match=r"pgvector 0\.\d+\.\d+ is too old"):
        await migrate(empty_database_url)
    assert tables(empty_database_url) == set()


async def test_a_server_without_pgvector_is_refused(empty_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without = "select default_version from pg_available_extensions where name = 'no such extension'"
    monkeypatch.setattr("retrieval.store.migrate._VECTOR_VERSIONS", without)
    with pytest.raises(MigrationError, match="has no extension 'vector'"):
        await migrate(empty_database_url)


async def test_a_pgvector_outside_the_search_path_is_told(empty_database_url: str) -> None:
    with psycopg.connect(empty_database_url) as db:
        db.execute("create schema extensions")
        db.execute("create extension vector schema extensions")
    with pytest.raises(MigrationError, match="pgvector is in the schema 'extensions'"):
        await migrate(empty_database_url)
    with_it = psycopg.conninfo.make_conninfo(empty_database_url, options="-csearch_path=public,extensions")
    assert await migrate(with_it) == [migration.version for migration in bundled()]


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
async def test_an_encoding_that_cannot_hold_every_text_is_refused(empty_database_url: str, encoding: str) -> None:
    name = f"encoded_{encoding.lower()}"
    options = f"encoding '{encoding}' template template0 locale_provider libc locale 'C'"
    with psycopg.connect(empty_database_url, autocommit=True) as db:
        db.execute(f"create database {name} {options}")
        try:
            url = psycopg.conninfo.make_conninfo(empty_database_url, dbname=name)
            with pytest.raises(MigrationError, match=f"encoding is {encoding}"):
                await migrate(url)
        finally:
            db.execute(f"drop database {name} with (force)")


async def test_a_connection_that_is_lost_meanwhile_is_told(empty_database_url: str) -> None:
    """Of one that waits until another process has migrated the database."""
    terminate = "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and not granted"
    async with await connect(empty_database_url) as other:
        await other.execute("select pg_advisory_lock(%s)", [_LOCK])
        waiting = asyncio.create_task(migrate(empty_database_url))
        while not await (await other.execute(terminate)).fetchall():  # noqa: ASYNC110 - nothing signals it
            await asyncio.sleep(0.01)
        with pytest.raises(StoreUnavailable, match="administrator command"):
            await waiting


async def test_a_user_without_rights_is_told(empty_database_url: str) -> None:
    with psycopg.connect(empty_database_url, autocommit=True) as db:
        db.execute("create role migration_reader login")
    try:
        with pytest.raises(MigrationError, match=r"cannot migrate the database .* permission denied"):
            await migrate(empty_database_url.replace("postgres@", "migration_reader@"))
    finally:
        with psycopg.connect(empty_database_url, autocommit=True) as db:
            db.execute("drop role migration_reader")


async def test_connections_that_share_a_session_are_refused(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a pooler in transaction mode: the lock would stay in a session that does not end."""
    session = await connect(empty_database_url)

    async def same(_url: str) -> Connection:
        return session

    for module in ("migrate", "pool"):
        monkeypatch.setattr(f"retrieval.store.{module}.connect", same)
    with pytest.raises(StoreError, match="gives one session to several connections"):
        await migrate(empty_database_url)
    assert tables(empty_database_url) == set()


async def test_no_server_is_an_error() -> None:
    with pytest.raises(StoreUnavailable):
        await migrate("postgresql://postgres:hunter2@127.0.0.1:1/trivet")
