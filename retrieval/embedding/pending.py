"""The embedding of one query, shared by its consumers."""

from __future__ import annotations

import asyncio

import numpy as np
from numpy.typing import NDArray

from retrieval.embedding.cache import CachedEmbedder
from retrieval.timings import Stopwatch


class Embedding:
    """A query's vector, computed once and awaited by each consumer when needed."""

    def __init__(self, embedder: CachedEmbedder, text: str, stopwatch: Stopwatch, *, wanted: bool = True) -> None:
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

    @property
    def is_ready(self) -> bool:
        """Whether awaiting it does not block: it is computed, or not wanted."""
        return self._running is None

    async def __call__(self) -> NDArray[np.float32]:
        """The unit vector, shape (dimensions,); raises what the embedder raised."""
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
