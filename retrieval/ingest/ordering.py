"""Runs calls that touch the same keys in order of arrival."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Coroutine, Hashable, Iterator
from contextlib import contextmanager
from typing import Any


class KeyedFifo:
    """Orders the calls of one process that share a key; other calls run concurrently."""

    def __init__(self) -> None:
        self._running: defaultdict[Hashable, list[asyncio.Event]] = defaultdict(list)

    @contextmanager
    def enter(self, keys: Collection[Hashable]) -> Iterator[Callable[[], Coroutine[Any, Any, bool]]]:
        """Queue behind all running calls that share one of these keys, which must be unique.

        Yields a function that waits until the calls before are done, whether or not they failed, and returns whether
        there were any.
        """
        before = {event for key in keys for event in self._running.get(key, ())}
        done = asyncio.Event()
        for key in keys:
            self._running[key].append(done)

        async def wait_for_earlier() -> bool:
            for event in before:
                await event.wait()
            return bool(before)

        try:
            yield wait_for_earlier
        finally:
            done.set()
            for key in keys:
                self._running[key].remove(done)
                if not self._running[key]:
                    del self._running[key]
