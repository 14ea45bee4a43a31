"""The embedding of one query, for all who wait for it."""

from __future__ import annotations

import asyncio

import numpy as np
from numpy.typing import NDArray

from retrieval.embedding.cache import CachedEmbedder
from retrieval.stopwatch import Stopwatch


class Embedding:
    """The query's vector, computed once and awaited by whoever needs it, when they need it."""

    def __init__(self, embedder: CachedEmbedder, text: str, stopwatch: Stopwatch, *, wanted: bool = True) -> None:
        self._vector: NDArray[np.float32] | None = None
        self._coming: asyncio.Future[NDArray[np.float32]] | None = None
        if not wanted:
            return
        embed = stopwatch.span("embed")
        with embed:
            self._vector = embedder.remembered(text)
        if self._vector is None:
            embed.__enter__()
            self._coming = embedder.begin(text)
            self._coming.add_done_callback(embed.__exit__)

    @property
    def is_there(self) -> bool:
        """Whether nobody has to wait for it: it is there, or not wanted."""
        return self._coming is None

    async def __call__(self) -> NDArray[np.float32]:
        """The unit vector, shape (dimensions,); raises what the embedder raised."""
        if self._vector is not None:
            return self._vector
        if self._coming is None:
            raise RuntimeError("this mode has no query embedding")
        return await asyncio.shield(self._coming)

    async def or_none(self, *, timeout_s: float) -> NDArray[np.float32] | None:
        """The vector, or None where it is not wanted, failed or is late (the vector leg reports that)."""
        coming = self._coming
        if coming is None:
            return self._vector
        if timeout_s > 0 and not coming.done():
            await asyncio.wait([coming], timeout=timeout_s)
        return None if not coming.done() or coming.cancelled() or coming.exception() else coming.result()
