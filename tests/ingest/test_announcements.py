"""Each committed change to a namespace is announced, so that the next search reads it at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from retrieval.errors import NotFound
from retrieval.ingest.service import Ingest
from retrieval.store.pool import Pool
from retrieval.types.memory import MemoryInput, MemoryPatch, SharedPatch
from retrieval.types.search import Filters
from tests.turns import hashed


async def test_each_kind_of_change_is_announced(pool: Pool) -> None:
    announced: list[str] = []
    ingest = Ingest(pool, hashed(), announce=announced.append)

    async def add(name: str) -> None:
        await ingest.add(name, [MemoryInput(id=each, text=f"Text of {each}.", tags=[each]) for each in "abcd"])

    chunk = MemoryInput(id="doc#0", text="A chunk.", kind="chunk", document_id="doc", position=0)
    changes: list[Callable[[], Awaitable[object]]] = [
        lambda: add("n"),
        lambda: ingest.patch("n", "a", MemoryPatch(text="Another text.")),
        lambda: ingest.update("n", SharedPatch(kind="message"), ids=["b"]),
        lambda: ingest.delete("n", "a"),
        lambda: ingest.delete_many("n", ids=["b"]),
        lambda: ingest.delete_many("n", filters=Filters(tags_any=["c"])),
        lambda: ingest.replace_document("n", "doc", [chunk]),
        lambda: ingest.delete_document("n", "doc"),
        lambda: add("other"),
    ]
    for done, change in enumerate(changes, 1):
        await change()
        assert announced == (["n"] * 8 + ["other"])[:done]


async def test_what_changed_nothing_is_not_announced(pool: Pool) -> None:
    announced: list[str] = []
    ingest = Ingest(pool, hashed(), announce=announced.append)
    with pytest.raises(NotFound):
        await ingest.delete("n", "a")
    assert announced == []
