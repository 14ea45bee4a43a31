"""Records of long-running jobs, with progress and outcome, which all processes can read."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

from postgres.connection import fetch
from retrieval.errors import Collided, Conflict, StoreError, TrivetError
from retrieval.ids import uuid7
from retrieval.store.pool import Pool
from retrieval.tasks import run_to_completion
from retrieval.types.job import Job, JobKind, JobState

log = logging.getLogger(__name__)

BEAT_S = 2.0
"""Seconds between a running job's progress updates; a job that ends before the first one leaves no record."""

STALE_S = 20.0
"""Seconds without an update after which a running job counts as lost with its process."""

KEPT = 100
"""Records kept per namespace."""

_LOCK = "select ns from namespace where name = %(namespace)s for key share"

# Either way: a process may have died before the database's clock was set back.
_IS_STALE = "abs(extract(epoch from now() - updated_at)) > %(stale_s)s"

_INTERRUPT = f"""
    update job set state = 'interrupted', finished_at = updated_at
    where ns = %(ns)s and state = 'running' and {_IS_STALE}
"""

_START = """
    insert into job (ns, id, kind, done, total, started_at)
    values (%(ns)s, %(id)s, %(kind)s, %(done)s, %(total)s, %(started_at)s)
"""

_TRIM = """
    delete from job where ns = %(ns)s and state <> 'running'
        and id <= (select id from job where ns = %(ns)s order by id desc offset %(kept)s limit 1)
"""

_WRITE = """
    update job set state = %(state)s, done = %(done)s, total = %(total)s, error = %(error)s, updated_at = now(),
        finished_at = %(finished_at)s
    where ns = %(ns)s and id = %(id)s
"""

# In the order of `Job`'s fields.
_LIST = f"""
    select j.id, j.kind, n.name,
        case when is_stale then 'interrupted' else j.state end, j.done, j.total, j.started_at, j.updated_at,
        case when is_stale then j.updated_at else j.finished_at end, j.error
    from job j join namespace n on j.ns = n.ns
        cross join lateral (
            select j.state = 'running' and {_IS_STALE} as is_stale
        ) as beat
    where n.name = coalesce(%(namespace)s::text, n.name)
    order by j.state = 'running' and not is_stale desc, j.id desc limit %(limit)s
"""


@dataclass(kw_only=True, slots=True)
class Progress:
    """A job of this process; the worker updates its progress, and its state if it fails without an exception.

    Attributes:
        ns: the namespace's number; None until there is a record.
    """

    kind: JobKind
    namespace: str
    total: int | None = None
    done: int = 0
    state: JobState = "running"
    error: str | None = None
    id: str = field(default_factory=uuid7)
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    finished_at: datetime | None = None
    ns: int | None = None


class Jobs:
    """Reads the records of all jobs, and writes those of this process."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._unwritten = deque[Progress]()

    async def recent(self, namespace: str | None = None) -> list[Job]:
        """Running jobs, then the others, newest first; of one namespace or all."""
        async with self._pool.connection() as conn:
            rows = await fetch(conn, _LIST, {"namespace": namespace, "stale_s": STALE_S, "limit": KEPT})
        return [Job(**dict(zip(Job.__struct_fields__, row, strict=True))) for row in rows]

    async def start(self, progress: Progress) -> None:
        """Record the start of a job; raises Conflict for a second reembedding of the namespace."""
        try:
            async with self._pool.connection() as conn, conn.transaction():
                found = await fetch(conn, _LOCK, {"namespace": progress.namespace})
                if not found:  # the job's first write creates it
                    return
                [(ns,)] = found
                await conn.execute(_INTERRUPT, {"ns": ns, "stale_s": STALE_S})
                await conn.execute(_START, asdict(progress) | {"ns": ns})
                await conn.execute(_TRIM, {"ns": ns, "kept": KEPT})
            progress.ns = ns
        except Collided as exc:
            raise Conflict(f"namespace {progress.namespace!r} is being given new vectors already") from exc

    @asynccontextmanager
    async def following(self, progress: Progress) -> AsyncIterator[Progress]:
        """Record the progress and outcome of the work in this block."""
        ended = asyncio.Event()
        beating = asyncio.create_task(self._beat(progress, ended))
        try:
            yield progress
        except Exception as exc:
            # Other exceptions' messages are only for the log.
            progress.state, progress.error = "failed", str(exc) if isinstance(exc, TrivetError) else type(exc).__name__
            raise
        except BaseException:
            progress.state = "interrupted"
            raise
        finally:
            if progress.state == "running":
                progress.state = "done"
            progress.finished_at = datetime.now(UTC)
            ended.set()
            await run_to_completion(self._end(progress, beating))

    async def write_outcomes(self) -> None:
        """Write the outcomes of jobs that ended while the database was away."""
        for _ in range(len(self._unwritten)):
            await self._write_outcome(self._unwritten.popleft())

    async def _end(self, progress: Progress, beating: asyncio.Task[None]) -> None:
        await asyncio.wait([beating])  # it may be creating the record
        if progress.ns is not None:
            await self._write_outcome(progress)

    async def _write_outcome(self, progress: Progress) -> None:
        if not await self._write(progress):
            self._unwritten.append(progress)

    async def _beat(self, progress: Progress, ended: asyncio.Event) -> None:
        while True:
            try:
                async with asyncio.timeout(BEAT_S):
                    await ended.wait()
                return
            except TimeoutError:
                await self._write(progress)

    async def _write(self, progress: Progress) -> bool:
        """Write a job's progress; returns whether that worked. A failure is only logged, so that the work goes on."""
        try:
            if progress.ns is None:
                await self.start(progress)
            else:
                async with self._pool.connection() as conn:
                    await conn.execute(_WRITE, asdict(progress))
        except (StoreError, Conflict) as exc:
            log.warning("the record of a job was not written: %s", exc)
            return False
        return True
