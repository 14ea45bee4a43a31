"""Who came first: calls that touch the same things are let on in the order in which they came."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Coroutine, Hashable, Iterator
from contextlib import contextmanager
from typing import Any


class Precedence:
    """Orders the calls of one process that share a key, and none else."""

    def __init__(self) -> None:
        self._under_way: defaultdict[Hashable, list[asyncio.Event]] = defaultdict(list)

    @contextmanager
    def entered(self, keys: Collection[Hashable]) -> Iterator[Callable[[], Coroutine[Any, Any, None]]]:
        """Take a place behind all calls under way that have one of these keys, each of which comes once.

        Yields:
            A function that returns when those before are done, however they ended.
        """
        before = {event for key in keys for event in self._under_way.get(key, ())}
        done = asyncio.Event()
        for key in keys:
            self._under_way[key].append(done)

        async def turn() -> None:
            for event in before:
                await event.wait()

        try:
            yield turn
        finally:
            done.set()
            for key in keys:
                self._under_way[key].remove(done)
                if not self._under_way[key]:
                    del self._under_way[key]
