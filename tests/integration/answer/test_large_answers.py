"""Answers with many memories are read in parts, so that other requests run in between."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from retrieval.engine import Trivet
from retrieval.store import memories
from retrieval.types.memory import MemoryInput
from retrieval.types.search import Filters, SearchRequest


@pytest.mark.parametrize(
    ("decodes", "ask"),
    [
        ("_stored", lambda trivet: trivet.list("n", Filters(), cursor=None, limit=100)),
        ("_hydrated", lambda trivet: trivet.search("n", SearchRequest(query="boat", top_k=100))),
    ],
)
async def test_others_are_let_in_while_memories_are_decoded(
    trivet: Trivet, monkeypatch: pytest.MonkeyPatch, decodes: str, ask: Callable[[Trivet], Awaitable[Any]]
) -> None:
    turns = 0

    async def beat() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    await trivet.add("n", [MemoryInput(id=f"m{number}", text=f"Boat number {number}.") for number in range(100)])
    decode = getattr(memories, decodes)
    seen: list[int] = []

    def noting(row: Any) -> Any:
        seen.append(turns)
        return decode(row)

    monkeypatch.setattr(memories, decodes, noting)
    heart = asyncio.create_task(beat())
    await ask(trivet)
    heart.cancel()
    assert len(seen) >= 100
    assert max(map(seen.count, seen)) <= 2 * memories.DECODED_AT_ONCE
