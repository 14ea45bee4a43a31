"""Reading the memories of an answer, which is begun before it is known which they are."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from graph.prepared import Sent
from retrieval.store import memories
from retrieval.store.memories import Hydrated, HydratedMemory
from retrieval.store.pool import Connection, Pool, translated


class Reading:
    """What one query reads of the memories of a namespace, over one connection until the end of its block."""

    def __init__(self, pool: Pool, ns: int) -> None:
        """Read nothing yet, and take no connection."""
        self._pool = pool
        self._ns = ns
        self._conn: Connection | None = None
        self._ahead: Sent | None = None
        self._asked: frozenset[int] = frozenset()
        self._guessed: Hydrated | None = None

    async def __aenter__(self) -> Reading:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Give the connection back, clean."""
        conn = self._conn
        if conn is None:
            return
        self._conn = None
        try:
            if self._ahead is not None:
                await self._ahead.drop()
        finally:
            await self._pool.putconn(conn)

    async def begin(self, docs: Collection[int]) -> None:
        """Ask for memories that are likely to be wanted, once, and do not wait for them."""
        if not docs:
            return
        with translated():
            self._ahead = await memories.hydrate(await self._connection(), self._ns, docs)
            self._asked = frozenset(docs)

    async def read(self, docs: Sequence[int]) -> list[HydratedMemory | None]:
        """What is shown of some memories; None for one that is not there any more."""
        with translated():
            if self._ahead is not None and self._guessed is None:
                self._guessed = Hydrated(await self._ahead.rows())
            others = [doc for doc in docs if doc not in self._asked]
            read = None
            if others:
                read = Hydrated(await (await memories.hydrate(await self._connection(), self._ns, others)).rows())
        sources = [self._guessed if doc in self._asked else read for doc in docs]
        return [None if source is None else source.get(doc) for doc, source in zip(docs, sources, strict=True)]

    async def _connection(self) -> Connection:
        if self._conn is None:
            self._conn = await self._pool.getconn()
        return self._conn
