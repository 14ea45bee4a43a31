"""Group commit: small batches of one namespace that would wait for each other are written in one transaction.

A transaction costs almost the same for one memory as for ten: some fifteen statements and a flush to disk. While one is
running, further small batches queue up, and the next transaction takes as many as fit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from postgres.connection import Connection
from retrieval.ingest import transaction
from retrieval.ingest.transaction import WriteResult
from retrieval.store.locking import MemoryVersion
from retrieval.store.memories import NewMemory
from retrieval.store.namespaces import Namespace
from retrieval.store.pool import Pool
from retrieval.tasks import run_to_completion

MOST_MEMORIES = 64
"""Most memories per shared transaction; batches larger than half of that get their own and run concurrently."""


@dataclass(eq=False, kw_only=True, slots=True)
class WriteBatch:
    """One caller's write, all or nothing.

    Attributes:
        before: stored versions of the memories that existed.
        expected: fingerprints that stored memories must still have.
        written: the result of its transaction, or its error.
    """

    analysed: Sequence[NewMemory]
    before: Sequence[MemoryVersion]
    expected: Mapping[str, bytes]
    written: asyncio.Future[WriteResult] = field(default_factory=asyncio.Future)


@dataclass(slots=True)
class _Queue:
    """The small batches of a namespace: one transaction at a time, the others wait in order."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: dict[WriteBatch, None] = field(default_factory=dict)


class GroupCommit:
    """Writes batches; each raises only what `transaction.store` raises for that batch alone."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._queues: dict[tuple[int, int], _Queue] = {}

    async def store(self, namespace: Namespace, batch: WriteBatch) -> WriteResult:
        """Write a batch, together with others if it is small."""
        if len(batch.analysed) > MOST_MEMORIES // 2:
            await self._write(namespace, [batch])
            return batch.written.result()
        key = (namespace.ns, namespace.generation)
        queue = self._queues.setdefault(key, _Queue())
        queue.waiting[batch] = None
        try:
            async with queue.lock:
                if not batch.written.done():
                    group = _fitting(batch, queue.waiting)
                    writing = self._write(namespace, group)
                    # If cancelled with its caller, the others could not tell whether they were written.
                    await (run_to_completion(writing) if len(group) > 1 else writing)
            return batch.written.result()
        finally:
            del queue.waiting[batch]
            if not queue.waiting:
                del self._queues[key]

    async def _write(self, namespace: Namespace, group: Sequence[WriteBatch]) -> None:
        """Write batches in one transaction; if that fails, write each alone, so that one does not fail the others.

        Not without a connection: each would wait for one as long as all did together.
        """
        conn: Connection | None = None
        try:
            async with self._pool.connection() as conn:
                written = await transaction.store(
                    conn,
                    namespace,
                    [item for batch in group for item in batch.analysed],
                    before=[version for batch in group for version in batch.before],
                    expected={memory_id: known for batch in group for memory_id, known in batch.expected.items()},
                )
            for batch in group:
                batch.written.set_result(written)
        except Exception as exc:
            may_repeat = conn is not None and not conn.closed  # after a lost connection it may have been committed
            for batch in group:
                if len(group) > 1 and may_repeat:
                    await self._write(namespace, [batch])
                else:
                    batch.written.set_exception(exc)
                    batch.written.exception()  # marks it as retrieved, in case its caller is gone


def _fitting(batch: WriteBatch, waiting: Mapping[WriteBatch, None]) -> list[WriteBatch]:
    """The batch and the waiting ones that can share its transaction: unique ids, at most `MOST_MEMORIES`."""
    group = [batch]
    ids = {item.id for item in batch.analysed}
    for other in waiting:
        other_ids = {item.id for item in other.analysed}
        if not other.written.done() and len(ids) + len(other_ids) <= MOST_MEMORIES and ids.isdisjoint(other_ids):
            group.append(other)
            ids |= other_ids
    return group
