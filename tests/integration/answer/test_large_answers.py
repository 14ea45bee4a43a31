"""Answers with many memories are read in parts and long texts in threads, so that other requests run meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from retrieval.answer import conversation, response, selection
from retrieval.engine import Trivet
from retrieval.store import memories
from retrieval.types.memory import MemoryInput
from retrieval.types.search import ChatMessage, ContextRequest, Filters, SearchRequest


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


async def test_long_texts_are_read_in_threads(trivet: Trivet, monkeypatch: pytest.MonkeyPatch) -> None:
    """The conversation's and the memories': to know which were said before, which are duplicates, and for snippets."""
    threads = defaultdict[str, set[int]](set)

    def spy(module: Any, name: str) -> None:
        work = getattr(module, name)

        def noting(*args: Any, **options: Any) -> Any:
            threads[name].add(threading.get_ident())
            return work(*args, **options)

        monkeypatch.setattr(module, name, noting)

    await trivet.add("n", [MemoryInput(text="boat " * 4_000)])
    for module, name in ((conversation, "_folded"), (selection, "deduplicate"), (response, "snippet")):
        spy(module, name)
    said = [ChatMessage(role="user", content="It rained. " * 2_000)]
    await trivet.context("n", ContextRequest(query="boat", messages=said, explain=True))
    assert threads.keys() == {"_folded", "deduplicate", "snippet"}
    assert threading.get_ident() not in set().union(*threads.values())
