"""Running coroutines and long work: cancellation, threads, bounded concurrency, shared runs, retries of conflicts."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Coroutine, Hashable, Sequence
from typing import Any, Generic, TypeVar

from retrieval.errors import Conflict

K = TypeVar("K", bound=Hashable)
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


async def run_to_completion(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is not cancelled with its caller: that one then waits for it to end."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.gather(task, return_exceptions=True)
        raise


async def in_thread_if_long(chars: int, work: Callable[[], T]) -> T:
    """The result of work on texts of so many characters, in a thread if it would hold up other requests."""
    return await asyncio.to_thread(work) if chars > LONG_CHARS else work()


async def in_order(
    items: AsyncIterable[S], work: Callable[[S], Coroutine[Any, Any, T]], at_once: Callable[[], int]
) -> AsyncGenerator[tuple[S, T]]:
    """Yield each item with its result of `work`, in order, running at most `at_once()` at a time.

    Work on an item starts before the next item is requested.
    """
    running: deque[tuple[S, asyncio.Task[T]]] = deque()
    try:
        async for item in items:
            while len(running) >= at_once():
                first, task = running.popleft()
                yield first, await task
            running.append((item, asyncio.create_task(work(item))))
            await asyncio.sleep(0)
        for first, task in running:
            yield first, await task
    finally:
        await cancel(*(task for _, task in running))


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


class SingleFlight(Generic[K, T]):
    """Running work by key, shared by all callers of a key, which is forgotten as soon as its work is done.

    Callers await the future under `asyncio.shield`, so that a cancelled caller does not cancel the others.
    """

    def __init__(self) -> None:
        self._running: dict[K, asyncio.Future[T]] = {}

    def get(self, key: K) -> asyncio.Future[T] | None:
        """The running work of a key, if any."""
        return self._running.get(key)

    def start(self, key: K, work: Awaitable[T]) -> asyncio.Future[T]:
        """Start the work of a key that has none running."""
        future = self._running[key] = asyncio.ensure_future(work)
        future.add_done_callback(lambda done: self._forget(key, done))
        return future

    async def aclose(self) -> None:
        """Cancel all running work and wait for it to end."""
        await cancel(*self._running.values())

    def _forget(self, key: K, done: asyncio.Future[T]) -> None:
        del self._running[key]
        if not done.cancelled():
            done.exception()  # marks it as retrieved: asyncio would log it if no caller were left
