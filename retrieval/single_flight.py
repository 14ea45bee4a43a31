"""Deduplicate concurrent work: callers of the same key share one run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Hashable
from typing import Generic, TypeVar

from retrieval.tasks import cancel

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")


class SingleFlight(Generic[Key, Result]):
    """Running work by key; a key is forgotten as soon as its work is done.

    Callers await the future under `asyncio.shield`, so that a cancelled caller does not cancel the others.
    """

    def __init__(self) -> None:
        self._running: dict[Key, asyncio.Future[Result]] = {}

    def get(self, key: Key) -> asyncio.Future[Result] | None:
        """The running work of a key, if any."""
        return self._running.get(key)

    def start(self, key: Key, work: Awaitable[Result]) -> asyncio.Future[Result]:
        """Start the work of a key that has none running."""
        future = self._running[key] = asyncio.ensure_future(work)
        future.add_done_callback(lambda done: self._forget(key, done))
        return future

    async def aclose(self) -> None:
        """Cancel all running work and wait for it to end."""
        await cancel(*self._running.values())

    def _forget(self, key: Key, done: asyncio.Future[Result]) -> None:
        del self._running[key]
        if not done.cancelled():
            done.exception()  # marks it as retrieved: asyncio would log it if no caller were left
