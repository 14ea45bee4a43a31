"""Checks of an installation."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import LiteralString

import psycopg

from postgres.connection import Connection, fetch
from retrieval.embedding.embedders import embedder_fault, remote_embedder
from retrieval.errors import EmbeddingFailed, MigrationError, StoreError
from retrieval.installation import CHECKSUMS, REMEDY, checksums, fault_of, models_dir
from retrieval.settings import Settings
from retrieval.store import namespaces
from retrieval.store.embedded.instance import running
from retrieval.store.embedded.tuning import advice, server_settings
from retrieval.store.migrate import LEAST_VECTOR_VERSION, check_server, pending, vector_version
from retrieval.store.pool import check_session, connect, describe
from retrieval.types.namespace import DEFAULT_EMBEDDER, EmbedderName
from retrieval.types.state import Finding

LEAST_PYTHON = (3, 11)
LEAST_FREE_BYTES = 1_000_000_000
MOST_CLOCK_DIFFERENCE_S = 5.0
MOST_LOCKED_S = 3.0

_EXTENSION: LiteralString = "select extversion from pg_extension where extname = 'vector'"
_NO_EXTENSION = (
    "the extension is not created: run `trivet migrate`; where its role may not create it, "
    "a superuser first runs `create extension vector` in this database"
)
_INDEX: LiteralString = """
    select c.relname, i.indisvalid from pg_index i join pg_class c on c.oid = i.indexrelid
        join pg_am a on a.oid = c.relam
    where i.indrelid = to_regclass('memory') and a.amname = 'hnsw'
"""
# Without those that wait themselves; of a session of another role, only this may be seen.
_HOLDERS: LiteralString = """
    select holder.pid, coalesce(holder.usename::text, 'PostgreSQL itself'), holder.application_name,
        extract(epoch from clock_timestamp() - min(waiting.waitstart))::int
    from pg_locks waiting
        join pg_stat_activity waiter on waiter.pid = waiting.pid and waiter.datname = current_database()
        cross join unnest(pg_blocking_pids(waiting.pid)) blocker
        join pg_stat_activity holder on holder.pid = blocker
    where waiting.waitstart < clock_timestamp() - make_interval(secs => %(most_s)s)
        and not exists (select from pg_locks own where own.pid = holder.pid and not own.granted)
    group by holder.pid, holder.usename, holder.application_name order by holder.pid
"""

Check = Callable[[Connection], Awaitable[Sequence[Finding]]]
"""A further check of a database whose schema is this program's."""


async def examine(settings: Settings, *checks: Check) -> list[Finding]:
    """Check everything the server needs, in the order it needs it, then run `checks`.

    The embedded database is started if it is not running, and stopped afterwards. Checks that need a database are
    skipped if there is none. No detail contains a password or key.
    """
    findings = [_python(), *check_models(models_dir())]
    if settings.sends_texts:
        findings.append(await _provider(settings))
    if settings.uses_embedded:
        findings.append(_free_space(settings.data_dir))
    server: AbstractAsyncContextManager[str] = (
        running(settings.data_dir) if settings.uses_embedded else nullcontext(settings.database_url)
    )
    try:
        async with server as url, await connect(url) as db:
            await check_session(db, url)
            findings.append(Finding("database", True, describe(url)))
            findings += (found := await check_database(db, settings.embedder))
            is_migrated = any(finding.ok for finding in found if finding.name == "migrations")
            for check in checks if is_migrated else ():
                findings += await check(db)
    except (StoreError, psycopg.Error) as exc:
        findings.append(Finding("database", False, str(exc).strip()))
    return findings


def check_models(folder: Path) -> Iterator[Finding]:
    """Compare the files of a folder with the checksums in its `SHA256SUMS`, lines of "checksum  name"."""
    expected = checksums(folder)
    if not expected:
        yield Finding("models", False, f"{folder / CHECKSUMS} is missing or empty; {REMEDY}")
    for name, checksum in expected.items():
        fault = fault_of(folder / name, checksum)
        yield Finding(f"model {name}", fault is None, f"{fault}; {REMEDY}" if fault else "checksum is right")


async def check_database(db: Connection, embedder: EmbedderName = DEFAULT_EMBEDDER) -> list[Finding]:
    """Check the server, locks, pgvector, migrations, namespaces' embedders, vector index, settings and clock.

    `embedder` is that of the server's settings. Nothing after a lock that others wait for, as it might wait, too.
    """
    findings = [await _server(db)]
    if holders := await fetch(db, _HOLDERS, {"most_s": MOST_LOCKED_S}):
        return findings + [_lock(*holder) for holder in holders]
    extension = await fetch(db, _EXTENSION)
    findings += [Finding("pgvector", vector_version(each) >= LEAST_VECTOR_VERSION, each) for (each,) in extension]
    if not extension:
        findings.append(Finding("pgvector", False, _NO_EXTENSION))
    findings.append(migrations := await _migrations(db))
    if migrations.ok:
        findings += [_embedder(name, used_by, embedder) for name, used_by in (await namespaces.embedders(db)).items()]
        findings.append(_index(await fetch(db, _INDEX)))
    # Advice only: Trivet works with any settings.
    findings.append(Finding("settings", True, "; ".join(advice(await server_settings(db))) or "fit"))
    [(now,)] = await fetch(db, "select clock_timestamp()")
    difference_s = abs((datetime.now(UTC) - now).total_seconds())
    detail = f"{difference_s:.1f} s from the database's"
    return [*findings, Finding("clock", difference_s <= MOST_CLOCK_DIFFERENCE_S, detail)]


async def _server(db: Connection) -> Finding:
    version = db.info.server_version
    try:
        await check_server(db)
    except MigrationError as exc:
        return Finding("PostgreSQL", False, str(exc))
    return Finding("PostgreSQL", True, f"{version // 10_000}.{version % 10_000}")


def _lock(pid: int, role: str, application: str, seconds: int) -> Finding:
    """Name a session of the database that others wait for."""
    who = f"{role} ({application})" if application else role
    what = f"statements have waited {seconds} s for a lock that the session {pid} of {who} holds"
    return Finding("locks", False, f"{what}: end it with `select pg_terminate_backend({pid})` if it does not end")


async def _migrations(db: Connection) -> Finding:
    try:
        versions = await pending(db)
    except StoreError as exc:
        return Finding("migrations", False, str(exc))
    if versions:
        return Finding("migrations", False, f"{len(versions)} to apply: start the server, or run `trivet migrate`")
    return Finding("migrations", True, "all applied")


def _embedder(name: EmbedderName, used_by: Sequence[str], server: EmbedderName) -> Finding:
    """Check that the server has an embedder that some namespaces use."""
    fault = embedder_fault(name, server)
    used = f"of {', '.join(used_by)}{', ...' if len(used_by) == namespaces.MOST_NAMED else ''}"
    return Finding(f"embedder {name}", fault is None, f"{used}: {fault or 'available'}")


async def _provider(settings: Settings) -> Finding:
    """Check that the embedding provider embeds a word."""
    try:
        async with aclosing(remote_embedder(settings)) as embedder:
            await embedder.embed_query("trivet")
    except EmbeddingFailed as exc:
        return Finding("embedding provider", False, str(exc))
    return Finding("embedding provider", True, f"{settings.embedder} answers at {settings.embedding_url}")


def _index(rows: Iterable[tuple[str, bool]]) -> Finding:
    """Check the HNSW indexes of the embeddings, given as (name, valid)."""
    indexes = dict(rows)
    if not indexes:
        return Finding("vector index", False, "memory has no HNSW index: create it as 0014_reembedding.sql does")
    if invalid := [name for name, valid in indexes.items() if not valid]:
        return Finding("vector index", False, f"{invalid[0]} is not valid: reindex it")
    return Finding("vector index", True, ", ".join(indexes))


def _python() -> Finding:
    return Finding("Python", sys.version_info >= LEAST_PYTHON, f"{platform.python_version()} on {platform.platform()}")


def _free_space(data_dir: Path) -> Finding:
    """Free space on the disk of the data folder, or of its nearest existing parent."""
    existing = next(folder for folder in (data_dir.absolute(), *data_dir.absolute().parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    return Finding("disk", free >= LEAST_FREE_BYTES, f"{free / 1e9:.1f} GB free for {data_dir}")
