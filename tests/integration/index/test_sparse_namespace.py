"""A namespace most of whose ordinals have no memory any more: its cost depends on its memories."""

from __future__ import annotations

import numpy as np
import pytest

from postgres.connection import Connection
from retrieval.engine import Trivet
from retrieval.index import registry, rows, small_namespaces
from retrieval.index.namespace_index import NamespaceIndex
from retrieval.index.rows import FEW_VECTORS
from retrieval.index.slots import LATE_ORDINALS
from retrieval.store import vectors
from retrieval.store.pool import Pool
from retrieval.store.vectors import StoredVectors
from retrieval.types.memory import MemoryInput, RelationInput
from retrieval.types.namespace import NamespaceSettings
from retrieval.types.search import Filters, Mode, SearchRequest
from tests.integration.index.test_registry import DAY, Process, assert_masks, assert_right, memory, process, two

__all__ = ["process", "two"]

CITIES = ("Porto", "Lisbon", "Braga", "Faro", "Évora")
REQUESTS = [
    SearchRequest(query="Where does Ida keep her boat?", top_k=8, explain=True),
    SearchRequest(query="harbour of Porto", top_k=8, explain=True, filters=Filters(metadata={"even": True})),
    SearchRequest(
        query="Who sails to Faro?", top_k=8, explain=True, filters=Filters(session_id=["s1"]), mode=Mode.GRAPH
    ),
    SearchRequest(query="boats in Lisbon", top_k=8, explain=True, mode=Mode.VECTOR),
]


def texts() -> list[MemoryInput]:
    """Memories with neighbours, entities and relations."""
    return [
        MemoryInput(
            id=f"m{at}",
            text=f"Ida keeps boat {at} in the harbour of {CITIES[at % 5]}, and Bo sails to {CITIES[at % 3]}.",
            session_id=f"s{at % 4}",
            created_at=DAY,
            metadata={"even": at % 2 == 0},
            relations=[RelationInput(source="Ida", type="moors_in", target=CITIES[at % 5])],
        )
        for at in range(100)
    ]


async def starting_at(pool: Pool, name: str, ordinal: int) -> None:
    """Make a namespace assign ordinals from this one, as if as many memories had been added and deleted."""
    async with pool.connection() as conn:
        await conn.execute("update namespace set next_doc = %s where name = %s", (ordinal, name))


def lengths(index: NamespaceIndex) -> list[int]:
    """Of all arrays by slot."""
    memories, kept = index.memories, index.vectors
    columns = [*memories._arrays, *kept._context._arrays, *kept._text._arrays, kept._known]
    return [*(len(column.values) for column in columns), len(index.graph._home)]


async def test_a_few_late_memories_take_little(pool: Pool, trivet: Trivet) -> None:
    """A hundred at ordinal ten million are found like a hundred at ordinal 0, in arrays no longer than necessary."""
    await trivet.put_namespace("late", NamespaceSettings())
    await starting_at(pool, "late", 10_000_000)
    for name in ("early", "late"):
        await trivet.add(name, texts())
    await trivet.search("early", REQUESTS[0])  # reads it
    await starting_at(pool, "early", 10_000_100)  # the graph leg counts against the ordinals given out
    for request in REQUESTS:
        early, late = [await trivet.search(name, request) for name in ("early", "late")]
        assert early.results
        assert early.results == late.results
        assert not late.degraded
    index = (await Process(pool).snapshot("late")).index
    assert index.memories.count == 100
    assert max(lengths(index)) < 2 * LATE_ORDINALS
    assert index.nbytes < 2_000_000


async def test_what_comes_after_a_leap_is_followed_in_little_memory(process: Process) -> None:
    """Not by arrays with room for all that was skipped."""
    await process.ingest.add("n", [memory("a", session_id="s"), memory("b", "Porto.", session_id="s")])
    await process.snapshot()
    await starting_at(process.pool, "n", 10_000_000)
    await process.ingest.add("n", [memory("c", "Porto?", session_id="s")])
    await assert_right(process)
    await assert_masks(process, "n")
    assert max(lengths((await process.snapshot()).index)) < 4 * LATE_ORDINALS


async def test_a_memory_whose_ordinal_was_given_out_long_ago_is_not_missed(process: Process) -> None:
    """Its transaction ended after the namespace was read, which had assigned many more ordinals by then."""
    await process.ingest.add("n", [memory("a")])
    await starting_at(process.pool, "n", 50_000)
    await process.ingest.add("n", [memory("b")])
    before = (await process.snapshot()).index
    await starting_at(process.pool, "n", 10)
    await process.ingest.add("n", [memory("late")])
    await starting_at(process.pool, "n", 50_001)
    assert await process.ids("boats") == {"a", "b", "late"}
    after = (await process.snapshot()).index
    assert after is not before
    async with process.pool.connection() as conn:  # one that is deleted again leaves no trace
        await conn.execute("insert into memory_change (ns, docs) values (%s, array[11])", (after.ns,))
    assert (await process.snapshot()).index is after
    await assert_right(process)


async def settled(process: Process, former: NamespaceIndex | None = None) -> NamespaceIndex:
    """The index that takes the place of a former one, with the vectors that are read beside the queries."""
    return await process.until(
        lambda index: index is not former and index.vectors.count >= index.memories.count - FEW_VECTORS
    )


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("is_followed", [False, True])
async def test_what_is_read_anew_keeps_the_vectors_that_were_here(
    two: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch, is_sparse: bool, is_followed: bool
) -> None:
    """Except those of changed memories; whether it needed a reload or the changes were too many to follow."""
    process, other = two
    monkeypatch.setattr(registry, "FEW_VECTORS", 2)
    monkeypatch.setitem(rows.PARAMETERS, "few", 2)
    monkeypatch.setattr(small_namespaces, "MOST_ORDINALS", 0)
    fetched: list[int] = []
    read = vectors.read

    async def counted(conn: Connection, ns: int, docs: list[int], *, generation: int) -> StoredVectors:
        fetched.extend(docs)
        return await read(conn, ns, docs, generation=generation)

    monkeypatch.setattr(vectors, "read", counted)
    if is_sparse:
        await process.ingest.add("n", [memory("first")])
        await starting_at(process.pool, "n", 100_000)
    await process.ingest.add("n", [memory(f"m{at}", f"Boat {at}.", session_id=f"s{at % 3}") for at in range(60)])
    await process.snapshot()
    before = await settled(process)
    for at in range(0, 30, 3):
        await other.ingest.delete("n", f"m{at}")  # of one of the three sessions
    await other.ingest.add("n", [memory("m58", "Another text."), memory("new", "A new text.")])
    if is_followed:
        await process.snapshot()
        before.removed = 10**6
    else:
        monkeypatch.setattr(NamespaceIndex, "max_incremental", 5)
    fetched.clear()
    after = await settled(process, before)
    assert max(lengths(after)) < 4 * LATE_ORDINALS
    alive = np.flatnonzero(after.memories.alive.values)
    by_id = dict(zip(after.memories.ids.get(alive), after.memories.slots.to_ordinals(alive).tolist(), strict=True))
    assert fetched
    assert not set(fetched) & {by_id[f"m{at}"] for at in range(55) if at % 3}
    monkeypatch.undo()
    await assert_right(process)
