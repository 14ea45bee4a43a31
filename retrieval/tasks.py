"""Running coroutines and long work: cancellation, threads, bounded concurrency in order, retries of conflicts."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from retrieval.errors import Conflict

S = TypeVar("S")
T = TypeVar("T")

ATTEMPTS = 8
"""Most attempts at a write that conflicts with another writer."""

LONG_CHARS = 16_000
"""Longer texts are read in a thread: a million characters take a tenth of a second, odd ones many seconds."""


async def cancel(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait for them to end, ignoring their results and errors."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is not cancelled with its caller: that one then waits for it to end."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.gather(task, return_exceptions=True)
        raise


async def apart_if_long(chars: int, work: Callable[[], T]) -> T:
    """The result of work on texts of so many characters, in a thread if it would hold up other requests."""
    return await asyncio.to_thread(work) if chars > LONG_CHARS else work()


async def in_order(
    items: AsyncIterable[S], work: Callable[[S], Coroutine[Any, Any, T]], at_once: Callable[[], int]
) -> AsyncGenerator[tuple[S, T]]:
    """Yield each item with its result of `work`, in order, running at most `at_once()` at a time.

    Work on an item starts before the next item is requested.
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
    """The results of `work` for all items, in order, at most `at_once` at a time; a failure cancels the rest."""
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
    """Call `attempt`, retrying a few times if it conflicts with another writer."""
    for _ in range(ATTEMPTS):
        try:
            return await attempt()
        except met:
            continue
    raise Conflict("other writers kept changing the same memories")
