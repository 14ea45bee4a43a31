"""What a query may name, looked up while its namespace is brought up to date."""

from __future__ import annotations

import asyncio

from graph.linking import look_up
from graph.resolution import Named
from retrieval.store.pool import Pool


class Linked:
    """Asked as soon as the query comes where the number of its namespace is known, else when it is awaited."""

    def __init__(self, pool: Pool, text: str, *, ahead: int | None = None) -> None:
        """Begin, if `ahead` is what the namespace's number should be."""
        self._pool = pool
        self._text = text
        self._ahead = ahead
        self._task = None if ahead is None else asyncio.create_task(self._begin(ahead))

    async def __call__(self, ns: int) -> Named:
        """That of the namespace that has this number."""
        if self._task is not None and ns == self._ahead:
            return await self._task
        return await self._look_up(ns)

    async def _begin(self, ns: int) -> Named:
        await asyncio.sleep(0)  # more waits for what the query asks first than for this
        return await self._look_up(ns)

    async def _look_up(self, ns: int) -> Named:
        async with self._pool.connection() as conn:
            return await look_up(conn, ns, self._text)

    def __enter__(self) -> Linked:
        return self

    def __exit__(self, *_: object) -> None:
        """Drop what nobody waits for any more; its failure was reported by who did."""
        if self._task is not None and not self._task.cancel() and not self._task.cancelled():
            self._task.exception()
