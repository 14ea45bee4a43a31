"""Which memories a memory may supersede: also future ones, but never itself through any number of others."""

from __future__ import annotations

import random

import networkx
import pytest
from msgspec import UNSET

from retrieval.errors import InvalidInput
from retrieval.ingest.service import Ingest
from retrieval.ingest.transaction import _closing
from retrieval.store import memories, namespaces
from retrieval.store.pool import Pool
from retrieval.types.memory import AddResult, MemoryInput, MemoryPatch, as_superseded, superseded_ids
from tests.counting import calls
from tests.turns import hashed


@pytest.fixture
def ingest(pool: Pool) -> Ingest:
    return Ingest(pool, hashed())


async def add(ingest: Ingest, *pairs: str) -> list[AddResult]:
    """Add memories: "b>a" is b, which supersedes a; "c>ab" supersedes both."""
    split = [pair.partition(">") for pair in pairs]
    return await ingest.add("n", [MemoryInput(id=one, text=pair, supersedes=as_superseded([*old]))
                                  for (one, _, old), pair in zip(split, pairs, strict=True)])  # fmt: skip


def statuses(results: list[AddResult]) -> list[str]:
    return [result.status for result in results]


async def supersedes(pool: Pool, memory_id: str) -> str | list[str] | None:
    async with pool.connection() as conn:
        return (await memories.get(conn, await namespaces.find(conn, "n"), memory_id)).memory.supersedes


async def outdated(pool: Pool, memory_id: str) -> bool:
    async with pool.connection() as conn:
        [[hidden]] = await (
            await conn.execute("select superseded_at is not null from memory where id = %s", [memory_id])
        ).fetchall()
    return bool(hidden)


async def test_superseding_what_is_not_there_is_told(ingest: Ingest) -> None:
    """It may come later, so that nothing is lost; then there is no warning, nor in one batch in any order."""
    (unknown,) = await add(ingest, "b>a")
    assert (unknown.status, unknown.warning) == ("created", "supersedes: there is no memory 'a' so far")
    later = await add(ingest, "a", "d>c", "c", "f>d")
    assert statuses(later) == ["created"] * 4
    assert {result.warning for result in later} == {UNSET}


async def test_memories_of_a_batch_do_not_supersede_each_other(ingest: Ingest, pool: Pool) -> None:
    """The one that closes the circle is rejected, the others are accepted."""
    results = await add(ingest, "a>b", "b>a", "other", "x>y", "y>z", "z>x")
    assert statuses(results) == ["created", "rejected", "created", "created", "created", "rejected"]
    assert results[1].error == "supersedes: it would supersede itself: b > a > b"
    assert results[5].error == "supersedes: it would supersede itself: z > x > y > z"
    assert [await supersedes(pool, one) for one in ("a", "x", "y")] == ["b", "y", "z"]


async def test_a_long_chain_is_told_by_its_ends(ingest: Ingest) -> None:
    chain = [MemoryInput(id=f"m{at}", text="a", supersedes=f"m{at - 1}") for at in range(1, 40)]
    *_, closing = await ingest.add("n", [*chain, MemoryInput(id="m0", text="a", supersedes="m39")])
    told = "m0 > m39 > m38 > m37 > m36 > … > m3 > m2 > m1 > m0"
    assert closing.error == f"supersedes: it would supersede itself: {told}"


def test_a_batch_that_supersedes_much_is_searched_once() -> None:
    """Searching it for each id that a memory supersedes takes minutes for a batch of 1,000 with 64 ids each."""

    def searched(count: int) -> int:
        new = {f"m{at}": [f"m{old}" for old in range(max(0, at - 64), at)] for at in range(count)}
        return calls(lambda: _closing(new, {memory_id: [] for memory_id in new}))

    assert searched(200) < 2.5 * searched(100)


async def test_what_is_stored_is_followed(ingest: Ingest, pool: Pool) -> None:
    """Also if part of the circle comes in the same batch, or is removed by it."""
    await add(ingest, "a", "b>a", "c>b")
    assert statuses(await add(ingest, "a>c", "other")) == ["rejected", "created"]
    assert statuses(await add(ingest, "d>c", "a>d")) == ["created", "rejected"]
    assert await supersedes(pool, "a") is None
    assert statuses(await add(ingest, "a>c", "b")) == ["updated", "updated"]
    assert [await supersedes(pool, one) for one in "abc"] == ["c", None, "b"]


async def test_several_are_superseded_at_once(ingest: Ingest, pool: Pool) -> None:
    """Each is hidden, visible again once nothing supersedes it, and followed when looking for circles."""
    await add(ingest, "a", "b", "c>ab", "d>bc")
    assert [await supersedes(pool, one) for one in "acd"] == [None, ["a", "b"], ["b", "c"]]
    assert [await outdated(pool, one) for one in "abcd"] == [True, True, True, False]
    (circle,) = await add(ingest, "a>bd")
    assert circle.error == "supersedes: it would supersede itself: a > d > c > a"
    assert statuses(await add(ingest, "d>bc", "d>c")) == ["unchanged", "rejected"]
    await ingest.patch("n", "c", MemoryPatch(supersedes=["a"]))
    assert await supersedes(pool, "c") == "a"
    await ingest.delete("n", "d")
    assert [await outdated(pool, one) for one in "abc"] == [True, False, False]


async def test_each_of_several_that_is_not_there_is_told(ingest: Ingest) -> None:
    (result,) = await add(ingest, "c>ab")
    assert result.warning == "supersedes: there is no memory 'a', 'b' so far"
    (repeated,) = await ingest.add("n", [MemoryInput(id="d", text="d", supersedes=["c", "c"])])
    assert (repeated.status, repeated.warning) == ("created", UNSET)
    assert statuses(await ingest.add("n", [MemoryInput(id="d", text="d", supersedes="c")])) == ["unchanged"]
    (itself,) = await ingest.add("n", [MemoryInput(id="e", text="e", supersedes=["a", "e"])])
    assert itself.error == "supersedes: a memory cannot supersede itself"


@pytest.mark.parametrize("seed", range(5))
async def test_no_writes_close_a_circle(ingest: Ingest, pool: Pool, seed: int) -> None:
    """After any writes in any order, stored memories form no circle and hide those they supersede."""
    rng = random.Random(seed)
    for _ in range(4):
        batch = rng.sample("abcdef", rng.randint(1, 6))
        await add(ingest, *(f"{one}>{''.join(rng.sample('abcdef', rng.randint(0, 3)))}" for one in batch))
    async with pool.connection() as conn:
        rows = await (await conn.execute("select id, superseded_at is not null from memory")).fetchall()
    stored = {one: superseded_ids(await supersedes(pool, one)) for one, _ in rows}
    edges = [(one, old) for one, ids in stored.items() for old in ids]
    assert networkx.is_directed_acyclic_graph(networkx.DiGraph(edges))
    assert {one for one, hidden in rows if hidden} == {old for _, old in edges} & stored.keys()


async def test_a_change_is_refused_too(ingest: Ingest, pool: Pool) -> None:
    await add(ingest, "a", "b>a")
    with pytest.raises(InvalidInput, match="a > b > a") as circle:
        await ingest.patch("n", "a", MemoryPatch(supersedes="b"))
    with pytest.raises(InvalidInput, match="'nobody'") as unknown:
        await ingest.patch("n", "a", MemoryPatch(supersedes="nobody"))
    assert circle.value.loc == unknown.value.loc == ("supersedes",)
    assert await supersedes(pool, "a") is None


async def test_a_circle_of_earlier_versions_can_be_read_changed_and_opened(ingest: Ingest, pool: Pool) -> None:
    await add(ingest, "a", "b>a")
    async with pool.connection() as conn:
        await conn.execute("insert into supersession select ns, doc, 0, 'b' from memory where id = 'a'")
    assert (await ingest.patch("n", "a", MemoryPatch(text="changed"))).supersedes == "b"
    assert statuses(await add(ingest, "c>a", "d>c")) == ["created", "created"]
    assert (await ingest.patch("n", "a", MemoryPatch(supersedes=None))).superseded_by == ["b", "c"]


async def test_a_memory_of_earlier_versions_with_too_much_metadata_can_be_changed(ingest: Ingest, pool: Pool) -> None:
    await add(ingest, "a")
    async with pool.connection() as conn:
        await conn.execute("update memory set metadata = jsonb_build_object('a', repeat('x', 70000)) where id = 'a'")
    changed = await ingest.patch("n", "a", MemoryPatch(text="changed"))
    assert (changed.text, len(changed.metadata["a"])) == ("changed", 70_000)
