"""The interface of embedding providers; a bounded cache of query embeddings with expiry for any of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import numpy as np
from cachetools import TTLCache
from numpy.typing import NDArray

from classifier.features import EMBEDDING_DIM
from retrieval.tasks import SingleFlight
from retrieval.text.word_pieces import count_pieces
from retrieval.timings import Stopwatch


class Embedder(Protocol):
    """Turns texts into unit vectors, so that inner products are cosines.

    Queries and documents are separate because some models need a different prefix for each, and because queries are
    latency-bound while documents come in bulk.

    Attributes:
        model: name stored with a namespace's vectors; vectors of different models are never compared.
    """

    model: str

    def embed_query(self, text: str) -> Awaitable[NDArray[np.float32]]:
        """Embed a query as a unit vector of shape (EMBEDDING_DIM,)."""

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed documents as unit rows of shape (len(texts), EMBEDDING_DIM), in order."""

    def fragment_share(self, text: str) -> float:
        """The share of a query that the model reads letter by letter or not at all, in [0, 1]; 0 if unknown."""
        return 0.0

    def count_pieces(self, text: str) -> int:
        """The number of word pieces of a text, without the markers of its beginning and end.

        Counted with the bundled embedder's tokenizer if the model's own is unknown.
        """
        return count_pieces(text)

    async def aclose(self) -> None:
        """Release threads and connections; the embedder cannot be used afterwards."""


class CachedEmbedder:
    """An `Embedder` that caches recent queries; documents pass through.

    Identical queries that arrive during a computation share its result. Cancelling one waiter does not affect the
    others; an error reaches all waiters and is not cached. Returned vectors are read-only, as callers share them.

    Attributes:
        hits: queries answered without a new computation (cached or shared).
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
        """Wrap a provider; closing this embedder closes it.

        With `max_entries` or `max_age_s` of 0 nothing is cached, but running computations are still shared. Raises
        ValueError if one is negative.
        """
        if max_entries < 0 or max_age_s < 0:
            raise ValueError("max_entries and max_age_s must not be negative")
        self._inner = inner
        self._remembered: TTLCache[str, NDArray[np.float32]] = TTLCache(max_entries, max_age_s, timer=clock)
        self._running: SingleFlight[str, NDArray[np.float32]] = SingleFlight()
        self.model: str = inner.model
        self.hits = 0
        self.misses = 0

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed a query, from the cache if possible; shape (EMBEDDING_DIM,), read-only."""
        vector = self.remembered(text)
        return await asyncio.shield(self.begin(text)) if vector is None else vector

    def begin(self, text: str) -> asyncio.Future[NDArray[np.float32]]:
        """Start embedding a query, or join a running computation; it is shared, so shield it from cancellation."""
        computed = self._running.get(text)
        if computed is not None:
            self.hits += 1
        else:
            self.misses += 1
            computed = self._running.start(text, self._compute(text))
            computed.add_done_callback(lambda done: self._remember(text, done))
        return computed

    def remembered(self, text: str) -> NDArray[np.float32] | None:
        """The cached vector of a query; shape (EMBEDDING_DIM,), read-only. None if it is not cached."""
        vector = self._remembered.get(text)
        if vector is not None:
            self.hits += 1
        return vector

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed documents with the provider, not called for an empty list; not cached."""
        if not texts:
            return np.empty((0, EMBEDDING_DIM), np.float32)
        return await self._inner.embed_documents(texts)

    def fragment_share(self, text: str) -> float:
        """The share of a query that the model reads in fragments; not cached."""
        return self._inner.fragment_share(text)

    def count_pieces(self, text: str) -> int:
        """The number of word pieces of a text; not cached."""
        return self._inner.count_pieces(text)

    async def aclose(self) -> None:
        """Cancel running computations, clear the cache and close the provider."""
        await self._running.aclose()
        self._remembered.clear()
        await self._inner.aclose()

    async def _compute(self, text: str) -> NDArray[np.float32]:
        # Let the caller send its statement first: PostgreSQL answers while the query is tokenised, and no thread asks
        # for the GIL while the event loop is busy. That saves 7 % of a search for a new query.
        await asyncio.sleep(0)
        return await self._inner.embed_query(text)

    def _remember(self, text: str, computed: asyncio.Future[NDArray[np.float32]]) -> None:
        """Cache a result; runs before its waiters resume, and even if all were cancelled."""
        if computed.cancelled() or computed.exception() is not None:
            return
        vector = computed.result()
        vector.flags.writeable = False
        if self._remembered.maxsize:
            self._remembered[text] = vector


class Embedding:
    """A query's vector, computed once and awaited by each consumer when needed.

    Attributes:
        also_read_as: the second of two wordings of which it is the mean; None if it is of one.
    """

    also_read_as: str | None = None

    def __init__(self, embedder: CachedEmbedder, text: str, stopwatch: Stopwatch, *, wanted: bool = True) -> None:
        self._embedder, self._text = embedder, text
        self._vector: NDArray[np.float32] | None = None
        self._running: asyncio.Future[NDArray[np.float32]] | None = None
        if not wanted:
            return
        embed = stopwatch.span("embed")
        with embed:
            self._vector = embedder.remembered(text)
        if self._vector is None:
            embed.__enter__()
            self._running = embedder.begin(text)
            self._running.add_done_callback(embed.__exit__)

    async def __call__(self) -> NDArray[np.float32]:
        """The unit vector, shape (EMBEDDING_DIM,); raises what the embedder raised."""
        if self._vector is not None:
            return self._vector
        if self._running is None:
            raise RuntimeError("this mode has no query embedding")
        return await asyncio.shield(self._running)

    async def or_none(self, *, timeout_s: float) -> NDArray[np.float32] | None:
        """The vector; None if it is not wanted, failed or is late (the vector leg reports that)."""
        running = self._running
        if running is None:
            return self._vector
        if timeout_s > 0 and not running.done():
            await asyncio.wait([running], timeout=timeout_s)
        return None if not running.done() or running.cancelled() or running.exception() else running.result()

    def fragment_share(self) -> float:
        """The share of the query that the model reads in fragments."""
        return self._embedder.fragment_share(self._text)


class MeanEmbedding(Embedding):
    """The direction halfway between the vectors of two wordings of a query."""

    def __init__(self, query: Embedding, other: Embedding) -> None:
        self._query, self._other = query, other
        self.also_read_as = other._text

    async def __call__(self) -> NDArray[np.float32]:
        """As for one wording."""
        return halfway(await self._query(), await self._other())

    async def or_none(self, *, timeout_s: float) -> NDArray[np.float32] | None:
        """As for one wording."""
        query, other = await asyncio.gather(*(each.or_none(timeout_s=timeout_s) for each in (self._query, self._other)))
        return None if query is None or other is None else halfway(query, other)

    def fragment_share(self) -> float:
        """The share of the query as it was asked."""
        return self._query.fragment_share()


def halfway(one: NDArray[np.float32], other: NDArray[np.float32]) -> NDArray[np.float32]:
    """The unit vector of the sum of two, which are never opposite."""
    both = one + other
    return both / np.float32(np.linalg.norm(both))
