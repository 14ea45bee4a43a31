"""What can be wrong with an installation, looked at piece by piece."""

from __future__ import annotations

import hashlib
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import LiteralString

import psycopg

from retrieval.errors import StoreError
from retrieval.models_dir import models_dir
from retrieval.settings import Settings
from retrieval.store.advice import advice, seen
from retrieval.store.embedded import running
from retrieval.store.migrate import LEAST_SERVER_VERSION, LEAST_VECTOR_VERSION, pending, vector_version
from retrieval.store.pool import Connection, connect, describe

LEAST_PYTHON = (3, 11)
LEAST_FREE_BYTES = 1_000_000_000
MOST_CLOCK_DIFFERENCE_S = 5.0

_EXTENSION: LiteralString = "select extversion from pg_extension where extname = 'vector'"
_INDEX: LiteralString = """
    select c.relname, i.indisvalid from pg_index i join pg_class c on c.oid = i.indexrelid
        join pg_am a on a.oid = c.relam
    where i.indrelid = to_regclass('memory') and a.amname = 'hnsw'
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: what, whether it is right, and what was seen."""

    name: str
    ok: bool
    detail: str


async def examine(settings: Settings) -> list[Finding]:
    """Look at everything that the server needs, in the order in which it needs it.

    The embedded database is started if it is not running, and stopped again. What cannot be looked at,
    for want of a database, is left out. No detail tells a password or key.
    """
    findings = [_python(), *check_models(models_dir())]
    if settings.uses_embedded:
        findings.append(_free_space(settings.data_dir))
    server: AbstractAsyncContextManager[str] = (
        running(settings.data_dir) if settings.uses_embedded else nullcontext(settings.database_url)
    )
    try:
        async with server as url, await connect(url) as db:
            findings.append(Finding("database", True, describe(url)))
            findings += await check_database(db)
    except (StoreError, psycopg.Error) as exc:
        findings.append(Finding("database", False, str(exc).strip()))
    return findings


def check_models(folder: Path) -> Iterator[Finding]:
    """Compare each file that `SHA256SUMS` names with its checksum.

    Args:
        folder: holds the models and `SHA256SUMS`, lines of "checksum  name".
    """
    sums = folder / "SHA256SUMS"
    if not sums.is_file():
        yield Finding("models", False, f"{sums} is missing")
        return
    for line in sums.read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        expected, _, name = line.partition(" ")
        file = folder / name.strip().removeprefix("*")
        if not file.is_file():
            yield Finding(f"model {file.name}", False, f"{file} is missing")
            continue
        with file.open("rb") as content:
            matches = hashlib.file_digest(content, "sha256").hexdigest() == expected
        yield Finding(f"model {file.name}", matches, "checksum is right" if matches else f"{file} has another checksum")


async def check_database(db: Connection) -> list[Finding]:
    """Look at the server's version, pgvector, the migrations, the vector index, the settings and the clock."""
    version = db.info.server_version
    findings = [Finding("PostgreSQL", version >= LEAST_SERVER_VERSION, f"{version // 10_000}.{version % 10_000}")]
    extension = await (await db.execute(_EXTENSION)).fetchone()
    findings.append(
        Finding("pgvector", vector_version(extension[0]) >= LEAST_VECTOR_VERSION, extension[0])
        if extension
        else Finding("pgvector", False, "the extension is not created: run `trivet migrate`")
    )
    findings.append(await _migrations(db))
    findings.append(_index(await (await db.execute(_INDEX)).fetchall()))
    # Advice only: whatever they are, Trivet works.
    findings.append(Finding("settings", True, "; ".join(advice(await seen(db))) or "fit"))
    row = await (await db.execute("select clock_timestamp()")).fetchone()
    if row:
        findings.append(_clock(datetime.now(UTC), row[0]))
    return findings


async def _migrations(db: Connection) -> Finding:
    try:
        versions = await pending(db)
    except StoreError as exc:
        return Finding("migrations", False, str(exc))
    if versions:
        return Finding("migrations", False, f"{len(versions)} to apply: run `trivet migrate`")
    return Finding("migrations", True, "all applied")


def _index(rows: Iterable[tuple[str, bool]]) -> Finding:
    """The finding on the HNSW indexes of the embeddings, given as (name, valid)."""
    indexes = dict(rows)
    if not indexes:
        return Finding("vector index", False, "there is no HNSW index on memory: run `trivet migrate`")
    if invalid := [name for name, valid in indexes.items() if not valid]:
        return Finding("vector index", False, f"{invalid[0]} is not valid: reindex it")
    return Finding("vector index", True, ", ".join(indexes))


def _clock(here: datetime, there: datetime) -> Finding:
    difference_s = abs((here - there).total_seconds())
    return Finding("clock", difference_s <= MOST_CLOCK_DIFFERENCE_S, f"{difference_s:.1f} s from the database's")


def _python() -> Finding:
    return Finding("Python", sys.version_info >= LEAST_PYTHON, f"{platform.python_version()} on {platform.platform()}")


def _free_space(data_dir: Path) -> Finding:
    """Room on the disk of the data folder, or of the nearest folder above it that exists."""
    existing = next(folder for folder in (data_dir.absolute(), *data_dir.absolute().parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    return Finding("disk", free >= LEAST_FREE_BYTES, f"{free / 1e9:.1f} GB free for {data_dir}")
