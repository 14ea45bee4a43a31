"""Coroutines: ended or let end, several at a time with their results in order, again after another writer was met."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from retrieval.errors import Conflict

S = TypeVar("S")
T = TypeVar("T")

ATTEMPTS = 8
"""How often a write is tried that meets another writer."""


async def cancel(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait until they have ended, however they do."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """The result of work that goes on to its end where its caller is cancelled, who then waits for it."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.gather(task, return_exceptions=True)
        raise


async def in_order(
    items: AsyncIterable[S], work: Callable[[S], Coroutine[Any, Any, T]], at_once: Callable[[], int]
) -> AsyncGenerator[tuple[S, T]]:
    """Each item with what `work` makes of it, in their order; so many are under way at a time as `at_once` says.

    The work on an item begins before the next item is asked for.
    """
    under_way: deque[tuple[S, asyncio.Task[T]]] = deque()
    try:
        async for item in items:
            while len(under_way) >= at_once():
                first, task = under_way.popleft()
                yield first, await task
            under_way.append((item, asyncio.create_task(work(item))))
            await asyncio.sleep(0)
        for first, task in under_way:
            yield first, await task
    finally:
        await cancel(*(task for _, task in under_way))


async def share_out(work: Callable[[S], Awaitable[T]], items: Sequence[S], *, at_once: int) -> list[T]:
    """What `work` makes of each item, in their order; so many are under way at a time, and a failure ends them all."""
    made: dict[int, T] = {}
    waiting = iter(enumerate(items))

    async def take() -> None:
        for place, item in waiting:
            made[place] = await work(item)

    workers = [asyncio.create_task(take()) for _ in range(min(at_once, len(items)))]
    try:
        await asyncio.gather(*workers)
    finally:
        await cancel(*workers)
    return [made[place] for place in range(len(items))]


async def retried(attempt: Callable[[], Awaitable[T]], met: tuple[type[Exception], ...]) -> T:
    """Call `attempt`, retrying a few times if it meets another writer."""
    for _ in range(ATTEMPTS):
        try:
            return await attempt()
        except met:
            continue
    raise Conflict("other writers kept changing the same memories")
