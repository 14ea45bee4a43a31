"""A bounded, ageing memory of query embeddings in front of any provider."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval.embedding.base import Embedder

_Key = tuple[str, str]
"""Model name and query text."""


@dataclass(frozen=True, slots=True)
class _Remembered:
    vector: NDArray[np.float32]
    computed_at_s: float


class CachedEmbedder:
    """An `Embedder` that remembers the queries used last; documents pass through.

    Identical queries that arrive while the first is computed wait for its result. A cancelled
    waiter leaves the others undisturbed; a failure reaches all who wait and is not remembered.
    Vectors handed out are read-only, since callers share them.

    Attributes:
        hits: queries answered without a computation of their own (remembered or shared).
        misses: queries that started a computation.
    """

    def __init__(
        self,
        inner: Embedder,
        *,
        max_entries: int,
        max_age_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Wrap a provider.

        Args:
            inner: the provider; closing this embedder closes it.
            max_entries: how many queries to remember, the least recently used leaving first;
                0 remembers none, but computations under way are still shared.
            max_age_s: seconds after which a vector is computed anew; 0 behaves like no entries.
            clock: seconds that never go back.

        Raises:
            ValueError: a limit is negative.
        """
        if max_entries < 0 or max_age_s < 0:
            raise ValueError("max_entries and max_age_s must not be negative")
        self._inner = inner
        self._max_entries = max_entries
        self._max_age_s = max_age_s
        self._clock = clock
        self._remembered: OrderedDict[_Key, _Remembered] = OrderedDict()
        self._under_way: dict[_Key, asyncio.Future[NDArray[np.float32]]] = {}
        self.model: str = inner.model
        self.dimensions: int = inner.dimensions
        self.hits = 0
        self.misses = 0

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed one search text, from memory where it is there; shape (dimensions,), read-only."""
        vector = self.remembered(text)
        return await asyncio.shield(self.begin(text)) if vector is None else vector

    def begin(self, text: str) -> asyncio.Future[NDArray[np.float32]]:
        """Have a search text embedded that is not remembered; others may wait for the same, so shield it."""
        key = (self.model, text)
        computed = self._under_way.get(key)
        if computed is not None:
            self.hits += 1
        else:
            self.misses += 1
            computed = self._under_way[key] = asyncio.ensure_future(self._inner.embed_query(text))
            computed.add_done_callback(lambda done: self._finish(key, done))
        return computed

    def remembered(self, text: str) -> NDArray[np.float32] | None:
        """The vector of a search text that is there without waiting; shape (dimensions,), read-only."""
        vector = self._recall((self.model, text))
        if vector is not None:
            self.hits += 1
        return vector

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed documents with the provider; nothing is remembered."""
        return await self._inner.embed_documents(texts)

    async def aclose(self) -> None:
        """Cancel what is under way, forget everything and close the provider."""
        under_way = list(self._under_way.values())
        for computed in under_way:
            computed.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        self._remembered.clear()
        await self._inner.aclose()

    def _recall(self, key: _Key) -> NDArray[np.float32] | None:
        entry = self._remembered.get(key)
        if entry is None:
            return None
        if self._clock() - entry.computed_at_s >= self._max_age_s:
            del self._remembered[key]
            return None
        self._remembered.move_to_end(key)
        return entry.vector

    def _finish(self, key: _Key, computed: asyncio.Future[NDArray[np.float32]]) -> None:
        """Remember what a computation gave, before who waits for it has it; they may all be gone by now."""
        del self._under_way[key]
        if computed.cancelled() or computed.exception() is not None:
            return
        vector = computed.result()
        vector.flags.writeable = False
        self._remembered[key] = _Remembered(vector, self._clock())
        while len(self._remembered) > self._max_entries:
            self._remembered.popitem(last=False)
