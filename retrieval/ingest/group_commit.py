"""Group commit: small batches of one namespace that would wait for each other are written in one transaction.

A transaction costs almost the same for one memory as for ten: some fifteen statements and a flush to disk. While one is
running, further small batches queue up, and the next transaction takes as many as fit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import psycopg

from retrieval.errors import StoreUnavailable
from retrieval.ingest import transaction
from retrieval.ingest.transaction import Written
from retrieval.store.locking import MemoryVersion
from retrieval.store.memories import NewMemory
from retrieval.store.namespaces import Namespace
from retrieval.store.pool import Pool
from retrieval.tasks import to_the_end

MOST_MEMORIES = 64
"""Most memories per shared transaction; batches larger than half of it have their own and run concurrently."""


@dataclass(eq=False, kw_only=True, slots=True)
class WriteBatch:
    """One caller's write, all or nothing.

    Attributes:
        before: those of the memories that there were.
        expected: fingerprints that stored memories must still have.
        unshareable: whether it must have its own transaction because a shared one failed.
        in_doubt: whether the connection was lost in a transaction that may have been committed.
    """

    analysed: Sequence[NewMemory]
    before: Sequence[MemoryVersion]
    expected: Mapping[str, bytes]
    written: Written | None = None
    unshareable: bool = False
    in_doubt: bool = False


@dataclass(slots=True)
class _Queue:
    """The small batches of a namespace: one transaction at a time, the others wait in order."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: dict[WriteBatch, None] = field(default_factory=dict)


class GroupCommit:
    """Writes batches; for each, raises what `transaction.store` raises for it alone."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._queues: dict[tuple[int, str, int], _Queue] = {}

    async def store(self, namespace: Namespace, batch: WriteBatch) -> Written:
        """Write a batch, with others where it is small."""
        if len(batch.analysed) > MOST_MEMORIES // 2:
            return await self._write(namespace, [batch])
        # The embedder may change until there are memories, the generation whenever they get new vectors.
        key = (namespace.ns, namespace.settings.embedder, namespace.generation)
        queue = self._queues.setdefault(key, _Queue())
        queue.waiting[batch] = None
        try:
            async with queue.turn:
                if batch.in_doubt:
                    raise StoreUnavailable("the connection to the database was lost")
                if batch.written is None:
                    return await self._write_with_others(namespace, batch, queue)
                return batch.written
        finally:
            del queue.waiting[batch]
            if not queue.waiting:
                del self._queues[key]

    async def _write_with_others(self, namespace: Namespace, batch: WriteBatch, queue: _Queue) -> Written:
        """Write a batch and those that fit; if that fails, this one alone and the others in their own turn.

        A caller that goes away meanwhile does not end it: nobody could tell whether the others had been written.
        """
        group = _fitting(batch, queue.waiting)
        if len(group) > 1:
            try:
                return await to_the_end(self._write(namespace, group))
            except Exception:  # the batch that caused it fails again alone, and the others do not
                if batch.in_doubt:
                    raise
                for member in group:
                    member.unshareable = True
        return await self._write(namespace, [batch])

    async def _write(self, namespace: Namespace, group: Sequence[WriteBatch]) -> Written:
        async with self._pool.connection() as conn:
            try:
                written = await transaction.store(
                    conn,
                    namespace,
                    [item for batch in group for item in batch.analysed],
                    before=[version for batch in group for version in batch.before],
                    expected={memory_id: known for batch in group for memory_id, known in batch.expected.items()},
                )
            except psycopg.Error:
                for batch in group:
                    batch.in_doubt = conn.closed
                raise
        for batch in group:
            batch.written = written
        return written


def _fitting(batch: WriteBatch, waiting: Mapping[WriteBatch, None]) -> list[WriteBatch]:
    """The batch and the waiting ones that can share its transaction: unique ids, at most `MOST_MEMORIES`."""
    group = [batch]
    ids = {item.id for item in batch.analysed}
    for other in waiting:
        if other is batch or other.written or other.in_doubt or other.unshareable or batch.unshareable:
            continue
        other_ids = {item.id for item in other.analysed}
        if len(ids) + len(other_ids) <= MOST_MEMORIES and ids.isdisjoint(other_ids):
            group.append(other)
            ids |= other_ids
    return group
