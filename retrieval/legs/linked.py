"""What a query may name, looked up while its namespace is brought up to date."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from graph.linking import look_up
from graph.resolution import Named
from retrieval.mirror.mirror import Mirror
from retrieval.store.pool import Pool

_MOST_KEPT = 128
"""Answers that are remembered: some 10 kB each."""


class Linker:
    """Looks up what queries may name, and remembers it until their namespace changes."""

    def __init__(self, pool: Pool) -> None:
        """Ask by `pool`; remember nothing yet."""
        self._pool = pool
        self._kept: OrderedDict[tuple[int, int, str], Named] = OrderedDict()

    def remembered(self, mirror: Mirror, text: str) -> Named | None:
        """The answer for a namespace as its mirror has it now, if that was asked."""
        return self._kept.get((mirror.serial, mirror.changed, text))

    async def look_up(self, mirror: Mirror, text: str) -> Named:
        """The answer by now; it may be newer than the mirror, which is then about to change."""
        key = mirror.serial, mirror.changed, text
        async with self._pool.connection() as conn:
            named = self._kept[key] = await look_up(conn, mirror.ns, text)
        self._kept.move_to_end(key)
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return named


class Linked:
    """What one query may name: asked as soon as it comes where a mirror is there, else when it is awaited."""

    def __init__(self, linker: Linker, text: str, *, ahead: Mirror | None = None) -> None:
        """Begin, if `ahead` is what the namespace's mirror should be and does not remember it."""
        self._linker = linker
        self._text = text
        self._ns = None if ahead is None else ahead.ns
        self._task: asyncio.Task[Named] | None = None
        if ahead is not None and linker.remembered(ahead, text) is None:
            self._task = asyncio.create_task(self._begin(ahead))

    async def __call__(self, mirror: Mirror) -> Named:
        """That of the namespace of a mirror, which has just been brought up to date."""
        if self._task is not None and mirror.ns == self._ns:
            return await self._task
        return self._linker.remembered(mirror, self._text) or await self._linker.look_up(mirror, self._text)

    async def _begin(self, mirror: Mirror) -> Named:
        await asyncio.sleep(0)  # more waits for what the query asks first than for this
        return await self._linker.look_up(mirror, self._text)

    def __enter__(self) -> Linked:
        return self

    def __exit__(self, *_: object) -> None:
        """Drop what nobody waits for any more; its failure was reported by who did."""
        if self._task is not None and not self._task.cancel() and not self._task.cancelled():
            self._task.exception()
