"""Small batches of one namespace that wait for each other anyway are written in one transaction.

A transaction costs almost the same for one memory as for ten: some fifteen statements and a flush to the disk. While
one is under way, further small batches gather, and whoever is next takes them along.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from retrieval import writes
from retrieval.store.namespaces import Namespace
from retrieval.store.pool import Pool
from retrieval.writes import Analysed

MOST_MEMORIES = 64
"""Of one shared transaction; batches of more than half of it have one of their own, beside the others."""


@dataclass(eq=False, kw_only=True, slots=True)
class WriteBatch:
    """What one caller wants written, all or nothing.

    Attributes:
        analysed: the memories, no id twice.
        sessions: those of the memories, and those that they were in.
        superseded: ids of those that the memories supersede, and that they superseded before.
        replaced: once it is written, the ids that were there before.
        alone: whether it must not share a transaction, since one that it shared has failed.
    """

    analysed: Sequence[Analysed]
    sessions: frozenset[str]
    superseded: frozenset[str]
    replaced: frozenset[str] | None = None
    alone: bool = False


@dataclass(slots=True)
class _Lane:
    """The small batches of a namespace: one transaction at a time, the others wait in order."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: dict[WriteBatch, None] = field(default_factory=dict)


class SharedWrites:
    """Writes batches; raises for each what `writes.store` raises for it alone."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._lanes: dict[int, _Lane] = {}

    async def store(self, namespace: Namespace, batch: WriteBatch, *, expected: Mapping[str, bytes]) -> frozenset[str]:
        """Write a batch; the ids that were there before. One with expectations has its own transaction."""
        if expected or len(batch.analysed) > MOST_MEMORIES // 2:
            return await self._write(namespace, [batch], expected)
        lane = self._lanes.setdefault(namespace.ns, _Lane())
        lane.waiting[batch] = None
        try:
            async with lane.turn:
                if batch.replaced is None:
                    await self._write_with_others(namespace, batch, lane)
        finally:
            del lane.waiting[batch]
            if not lane.waiting:
                del self._lanes[namespace.ns]
        return batch.replaced or frozenset()

    async def _write_with_others(self, namespace: Namespace, batch: WriteBatch, lane: _Lane) -> None:
        """Write a batch and those that fit; should that fail, this one alone, and the others when it is their turn."""
        group = _fitting(batch, lane.waiting)
        if len(group) > 1:
            try:
                replaced = await self._write(namespace, group, {})
            except Exception:  # whichever batch it came from meets it again alone, and the others do not
                for one in group:
                    one.alone = True
            else:
                for one in group:
                    one.replaced = replaced
                return
        batch.replaced = await self._write(namespace, [batch], {})

    async def _write(
        self, namespace: Namespace, group: Sequence[WriteBatch], expected: Mapping[str, bytes]
    ) -> frozenset[str]:
        async with self._pool.connection() as conn:
            return await writes.store(
                conn,
                namespace,
                [item for batch in group for item in batch.analysed],
                sessions=frozenset().union(*(batch.sessions for batch in group)),
                superseded=frozenset().union(*(batch.superseded for batch in group)),
                expected=expected,
            )


def _fitting(batch: WriteBatch, waiting: Mapping[WriteBatch, None]) -> list[WriteBatch]:
    """The batch with those waiting that can be written together with it: no id twice, not too many."""
    group = [batch]
    ids = {item.draft.id for item in batch.analysed}
    for other in waiting:
        if other is batch or other.replaced is not None or other.alone or batch.alone:
            continue
        others = {item.draft.id for item in other.analysed}
        if len(ids) + len(others) <= MOST_MEMORIES and ids.isdisjoint(others):
            group.append(other)
            ids |= others
    return group
