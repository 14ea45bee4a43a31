"""A memory and one that supersedes it, written at the same moment through two servers: the old one is marked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from retrieval.ingest.service import Ingest
from retrieval.store import changes
from retrieval.store.pool import Pool, open_pool
from retrieval.types.memory import MemoryInput, MemoryPatch
from retrieval.types.search import Filters
from tests.turns import hashed

Do = Callable[[Ingest, str], Awaitable[object]]

_WAITING = "select count(*) from pg_locks where not granted"
_MARKED = """
    select m.superseded_at, min(s.created_at) from memory m join namespace n using (ns)
        left join supersession x on x.ns = m.ns and x.old = m.id
        left join memory s on s.ns = x.ns and s.doc = x.doc
    where n.name = %s and m.id = 'old' group by m.superseded_at
"""


@pytest.fixture
async def servers(database_url: str) -> AsyncIterator[tuple[Ingest, Ingest]]:
    """Two independent ingests, as in two server processes."""
    async with AsyncExitStack() as stack:
        pools = [await stack.enter_async_context(open_pool(database_url, 3)) for _ in range(2)]
        one, other = (Ingest(pool, hashed()) for pool in pools)
        yield one, other


def add_old(ingest: Ingest, name: str) -> Awaitable[object]:
    return ingest.add(name, [MemoryInput(id="old", text="Ida lives in Porto.")])


def edit_old(ingest: Ingest, name: str) -> Awaitable[object]:
    return ingest.patch(name, "old", MemoryPatch(text="Ida lived in Porto."))


def add_new(ingest: Ingest, name: str) -> Awaitable[object]:
    return ingest.add(name, [MemoryInput(id="new", text="Ida lives in Faro.", supersedes="old", tags=["t"])])


def add_new_without_id(ingest: Ingest, name: str) -> Awaitable[object]:
    return ingest.add(name, [MemoryInput(text="Ida lives in Faro.", supersedes="old")])


def release_old(ingest: Ingest, name: str) -> Awaitable[object]:
    return ingest.patch(name, "new", MemoryPatch(supersedes=None))


def delete_new(ingest: Ingest, name: str) -> Awaitable[object]:
    return ingest.delete(name, "new")


def delete_matching(ingest: Ingest, name: str) -> Awaitable[object]:
    return ingest.delete_many(name, filters=Filters(tags_all=["t"]))


CASES: list[tuple[list[Do], Do, Do, bool]] = [
    ([], add_old, add_new, True),
    ([], add_old, add_new_without_id, True),
    ([add_old], edit_old, add_new, True),
    ([add_new], add_old, release_old, False),
    ([add_new], add_old, delete_new, False),
    ([add_new], add_old, delete_matching, False),
    ([add_old, add_new], edit_old, delete_new, False),
]
"""Earlier writes, concurrent writes, and whether `old` is superseded at the end."""


async def test_what_is_superseded_is_marked_whoever_commits_first(servers: tuple[Ingest, Ingest], pool: Pool) -> None:
    for number, (before, one, other, is_superseded) in enumerate(CASES):
        for order, (first, second) in enumerate([(one, other), (other, one)]):
            name = f"n{number}.{order}"
            for do in before:
                await do(servers[0], name)
            await at_the_same_time(servers, pool, name, first, second)
            async with pool.connection() as conn:
                [[marked, first_successor]] = await (await conn.execute(_MARKED, (name,))).fetchall()
            assert (marked is not None) == is_superseded, (first, second)
            assert marked == first_successor


async def test_two_writers_do_not_close_a_circle_together(servers: tuple[Ingest, Ingest], pool: Pool) -> None:
    """Each adds a link between others, and neither sees the other's link."""

    def link(one: str, other: str) -> Do:
        return lambda ingest, name: ingest.add(name, [MemoryInput(id=one, text=one + other, supersedes=other)])

    for before in (("w", "x"), ("y", "z")):
        await link(*before)(servers[0], "n")
    await at_the_same_time(servers, pool, "n", link("x", "y"), link("z", "w"))
    async with pool.connection() as conn:
        links = await (
            await conn.execute(
                "select m.id, x.old from memory m left join supersession x using (ns, doc) order by m.id"
            )
        ).fetchall()
    assert links == [("w", "x"), ("x", "y"), ("y", "z")]


async def at_the_same_time(servers: tuple[Ingest, Ingest], pool: Pool, name: str, first: Do, second: Do) -> None:
    """Run two writes; the first commits when the second is done or waits for it."""
    record, written, commit = changes.record, asyncio.Event(), asyncio.Event()

    async def held(*args: Any, **described: Any) -> None:
        await record(*args, **described)
        if not written.is_set():
            written.set()
            await commit.wait()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(changes, "record", held)
        doing = asyncio.gather(first(servers[0], name))
        await written.wait()
        beside = asyncio.ensure_future(second(servers[1], name))
        async with pool.connection() as conn:
            while not beside.done() and (await (await conn.execute(_WAITING)).fetchone() or [0])[0] == 0:
                await asyncio.wait([beside], timeout=0.005)
        commit.set()
        await asyncio.gather(doing, beside)
