"""Batches of memories that come one by one, without an end."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from typing import TypeVar

from retrieval.types.memory import MemoryInput
from retrieval.validation import Parsed


@dataclass(frozen=True, kw_only=True, slots=True)
class Incoming:
    """A memory on its way to the store, or why it cannot be one.

    Attributes:
        size: bytes of input, roughly; limits the transactions.
        namespace: the one that its source names; None if it names none.
    """

    memory: Parsed
    size: int = 0
    namespace: str | None = None


AnyIncoming = TypeVar("AnyIncoming", bound=Incoming)


async def batches(
    incoming: AsyncIterable[AnyIncoming], *, most: int, most_bytes: int
) -> AsyncIterator[list[AnyIncoming]]:
    """Neighbours of one namespace, of limited number and size; no id twice, so that the later one wins."""
    batch: list[AnyIncoming] = []
    ids: set[str] = set()
    size = 0
    async for each in incoming:
        memory_id = each.memory.id if isinstance(each.memory, MemoryInput) else None
        is_full = len(batch) == most or size + each.size > most_bytes
        if batch and (is_full or each.namespace != batch[0].namespace or memory_id in ids):
            yield batch
            batch, ids, size = [], set(), 0
        batch.append(each)
        size += each.size
        if memory_id is not None:
            ids.add(memory_id)
    if batch:
        yield batch
