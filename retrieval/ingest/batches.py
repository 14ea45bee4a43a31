"""Batching an endless stream of memories."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from typing import TypeVar

from retrieval.types.memory import MemoryInput
from retrieval.validation import Parsed


@dataclass(frozen=True, kw_only=True, slots=True)
class Incoming:
    """A memory to be stored, or the reason why it is invalid.

    Attributes:
        size: approximate bytes of input; limits the transactions.
        namespace: as named by the source, or None.
    """

    memory: Parsed
    size: int = 0
    namespace: str | None = None


AnyIncoming = TypeVar("AnyIncoming", bound=Incoming)


async def batches(
    incoming: AsyncIterable[AnyIncoming], *, most: int, most_bytes: int
) -> AsyncIterator[list[AnyIncoming]]:
    """Consecutive memories of one namespace, limited in number and size; no id twice, so that the later one wins."""
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
