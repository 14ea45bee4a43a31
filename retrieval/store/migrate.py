"""Migrates a database to the schema of this version: numbered SQL files, forward only."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from typing import LiteralString, NamedTuple

import psycopg
from psycopg.errors import DuplicateTable

from postgres.connection import Connection, fetch
from retrieval.errors import MigrationError
from retrieval.store.pool import check_session, connect, describe, one_line, translated

LEAST_SERVER_VERSION = 160_000
"""PostgreSQL 16, as libpq numbers it."""

LEAST_VECTOR_VERSION = (0, 8)
"""pgvector's first version with iterative index scans."""

_LOCK = 5_472_697_665_742_001
"""Key of the advisory lock that serialises migrations."""

_FILE_NAME = re.compile(r"(\d{4})_(\w+)\.sql")

# Timeouts of the role or database are meant for requests; another process may be migrating for minutes.
_NO_LOCK_TIMEOUT: LiteralString = "set lock_timeout = 0"

_CREATE_TABLE: LiteralString = """
    create table if not exists trivet_migration (
        version     integer primary key,
        name        text not null,
        checksum    text not null,          -- sha256 of the file
        applied_at  timestamptz not null default now()
    )
"""
_RECORD: LiteralString = """
    insert into trivet_migration (version, name, checksum) values (%(version)s, %(name)s, %(checksum)s)
"""
_APPLIED: LiteralString = "select version, name, checksum from trivet_migration order by version"
_ELSEWHERE: LiteralString = """
    select nspname, current_schema() from pg_class join pg_namespace on pg_namespace.oid = relnamespace
    where pg_class.oid = to_regclass('trivet_migration') and nspname <> current_schema()
"""
_VECTOR_VERSIONS: LiteralString = """
    select coalesce(installed_version, default_version), (
        select nspname from pg_extension join pg_namespace on pg_namespace.oid = extnamespace
        where extname = name and to_regtype('halfvec') is null
    )
    from pg_available_extensions where name = 'vector'
"""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Migration:
    """One migration file."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the SQL, in hexadecimal."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


class AppliedMigration(NamedTuple):
    """One row of `trivet_migration`."""

    version: int
    name: str
    checksum: str


def bundled(folder: Traversable | None = None) -> list[Migration]:
    """The migrations of this version, ascending: files `NNNN_name.sql` of a folder, by default the package's own.

    Raises MigrationError if a file is misnamed, or a number is missing or used twice.

    >>> bundled()[0].name
    'initial'
    """
    folder = folder or resources.files(__package__) / "sql" / "migrations"
    found = []
    for file in sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name):
        match = _FILE_NAME.fullmatch(file.name)
        if match is None:
            raise MigrationError(f"migration file {file.name!r} is not named NNNN_name.sql")
        found.append(Migration(version=int(match[1]), name=match[2], sql=file.read_text(encoding="utf-8")))
    for expected, migration in enumerate(found, start=1):
        if migration.version != expected:
            raise MigrationError(f"migration {expected} is missing or there twice (found {migration.version})")
    return found


def outstanding(series: Sequence[Migration], applied: Sequence[AppliedMigration]) -> list[Migration]:
    """The migrations that are not yet applied.

    Raises MigrationError if the database's history is not a prefix of `series`: it is newer than the code, has a gap,
    or an applied file has changed since.
    """
    for position, row in enumerate(applied):
        if row.version > len(series):
            raise MigrationError(
                f"the database was migrated by a newer Trivet (migration {row.version} {row.name!r}; "
                f"this one knows {len(series)}): upgrade Trivet"
            )
        known = series[position]
        if row.version != known.version:
            raise MigrationError(f"the database has migration {row.version} but not {known.version}")
        if row.checksum != known.checksum:
            raise MigrationError(
                f"the checksum of migration {known.version} {known.name!r} is not the one that was applied to this "
                "database: the file changed"
            )
    return list(series[len(applied) :])


async def migrate(url: str, *, series: Sequence[Migration] | None = None) -> list[int]:
    """Apply outstanding migrations, each in its own transaction; returns their versions, ascending.

    Only one process migrates a database at a time; others wait and then find nothing to do. `series` are by default the
    migrations of this version.

    Raises:
        StoreUnavailable: the database cannot be reached, or goes away meanwhile.
        StoreError: a pooler makes connections share a session.
        MigrationError: the server is too old or has no pgvector, the database is not in UTF-8, its history does not
            match (see `outstanding`), new tables would go into another schema than those that are there, or a migration
            failed; earlier ones stay applied.
    """
    series = bundled() if series is None else series
    with translated():
        async with await connect(url) as db:
            await check_server(db)
            await check_session(db, url)
            await db.execute(_NO_LOCK_TIMEOUT)
            await db.execute("select pg_advisory_lock(%(key)s)", {"key": _LOCK})  # until the connection closes
            try:
                todo = outstanding(series, await _applied(db))
                if todo:  # otherwise the database may be read-only
                    await _check_schema(db)
                for migration in todo:
                    await _apply(db, migration)
                    log.info("applied migration %04d %s", migration.version, migration.name)
            except psycopg.Error as exc:
                raise MigrationError(f"cannot migrate the database {describe(url)}: {one_line(exc)}") from exc
            return [migration.version for migration in todo]


async def pending(database: str | Connection) -> list[int]:
    """The versions not yet applied to a database, given by libpq URL or connection; read-only.

    Raises StoreUnavailable if it cannot be reached, MigrationError if its history does not match, see `outstanding`.
    """
    if isinstance(database, str):
        async with await connect(database) as db:
            return await pending(db)
    return [migration.version for migration in outstanding(bundled(), await _applied(database))]


async def _apply(db: Connection, migration: Migration) -> None:
    async with db.transaction():
        await db.execute(_CREATE_TABLE)
        try:
            await db.execute(migration.sql.encode(), prepare=False)
        except psycopg.Error as exc:
            remedy = "; give Trivet a schema of its own and put it first in the search path"
            raise MigrationError(
                f"migration {migration.version} {migration.name!r} failed: {one_line(exc)}"
                + (remedy if isinstance(exc, DuplicateTable) else "")
            ) from exc
        await db.execute(
            _RECORD, {"version": migration.version, "name": migration.name, "checksum": migration.checksum}
        )


async def _applied(db: Connection) -> list[AppliedMigration]:
    [(exists,)] = await fetch(db, "select to_regclass('trivet_migration') is not null")
    return [AppliedMigration(*row) for row in await fetch(db, _APPLIED)] if exists else []


async def _check_schema(db: Connection) -> None:
    """Raise MigrationError if new tables would go into another schema than those that are there."""
    for schema, first in await fetch(db, _ELSEWHERE):
        raise MigrationError(
            f"Trivet's tables are in the schema {schema!r}, but new ones would go into {first!r}: put {schema!r} first "
            "in the search path or, if nothing is stored there, drop its table trivet_migration to begin anew"
        )


async def check_server(db: Connection) -> None:
    """Raise MigrationError unless the server is new enough and has pgvector, and the database is in UTF-8.

    If pgvector's extension has been created, its schema must be in the search path.
    """
    version = db.info.server_version
    if version < LEAST_SERVER_VERSION:
        raise MigrationError(f"PostgreSQL {version // 10_000} is too old: Trivet needs 16 or newer")
    if (encoding := db.info.parameter_status("server_encoding")) != "UTF8":
        raise MigrationError(
            f"the database's encoding is {encoding}, which cannot hold every text: "
            "create it with encoding 'UTF8' template template0"
        )
    rows = await fetch(db, _VECTOR_VERSIONS)
    if not rows:
        raise MigrationError("this PostgreSQL server has no extension 'vector': install pgvector 0.8 or newer")
    [(extension, schema)] = rows
    if vector_version(extension) < LEAST_VECTOR_VERSION:
        raise MigrationError(f"pgvector {extension} is too old: Trivet needs 0.8 (alter extension vector update)")
    if schema is not None:
        raise MigrationError(f"pgvector is in the schema {schema!r}, which the search path lacks")


def vector_version(text: str) -> tuple[int, ...]:
    """Parse pgvector's version.

    >>> vector_version("0.8.1")
    (0, 8, 1)
    """
    return tuple(int(part) for part in re.findall(r"\d+", text))
