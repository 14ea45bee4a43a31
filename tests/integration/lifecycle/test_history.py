"""What a memory superseded and what superseded it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from retrieval.engine import Trivet
from retrieval.errors import NotFound
from retrieval.types.memory import MemoryInput

DAY = datetime(2024, 3, 4, 9, tzinfo=UTC)


def _memory(id: str, day: int, supersedes: str | None = None) -> MemoryInput:
    return MemoryInput(id=id, text=f"It is {id}.", created_at=DAY + timedelta(days=day), supersedes=supersedes)


async def _history(trivet: Trivet, memory_id: str) -> list[str]:
    return [memory.id for memory in (await trivet.lifecycle.history("own", memory_id)).memories]


async def test_all_branches_are_in_it_by_time(trivet: Trivet) -> None:
    chain = [_memory("a", 0), _memory("b", 5, "a"), _memory("c", 3, "a"), _memory("d", 9, "b"), _memory("alone", 1)]
    await trivet.add("own", chain)
    await trivet.add("other", [_memory("e", 1, "a"), _memory("a", 0)])
    for memory_id in "abcd":
        assert await _history(trivet, memory_id) == ["a", "c", "b", "d"]
    assert await _history(trivet, "alone") == ["alone"]
    first = (await trivet.lifecycle.history("own", "d")).memories[0]
    assert (first.supersedes, first.superseded_by) == (None, ["b", "c"])


async def test_what_was_deleted_parts_it(trivet: Trivet) -> None:
    """Memories on one side of a gap do not belong to the history of the other side."""
    await trivet.add("own", [_memory("a", 0), _memory("b", 1, "a"), _memory("c", 2, "b"), _memory("d", 3, "a")])
    await trivet.delete("own", "b")
    assert await _history(trivet, "a") == ["a", "d"]
    assert await _history(trivet, "c") == ["c"]
    with pytest.raises(NotFound, match="'b'"):
        await _history(trivet, "b")


async def test_what_is_not_there_has_none(trivet: Trivet) -> None:
    with pytest.raises(NotFound, match="'own'"):
        await trivet.lifecycle.history("own", "a")
    await trivet.add("own", [_memory("a", 0)])
    with pytest.raises(NotFound, match="'b'"):
        await trivet.lifecycle.history("own", "b")
