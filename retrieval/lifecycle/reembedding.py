"""Gives all memories of a namespace new vectors, while searches and writes go on.

The new vectors are collected beside the old ones; then writers wait while memories written meanwhile get theirs, and
one transaction replaces all. A run interrupted before that has changed nothing visible, and the next one continues
with what it collected.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable

import numpy as np

from retrieval.embedding.cache import Embedder
from retrieval.embedding.embedders import Embedders
from retrieval.ingest.analysis import embedded_text
from retrieval.lifecycle.jobs import Jobs, Progress
from retrieval.store import namespaces, reembedding
from retrieval.store.namespaces import Namespace
from retrieval.store.pool import Pool
from retrieval.tasks import SingleFlight
from retrieval.types.namespace import EmbedderName

log = logging.getLogger(__name__)

EMBEDDED_AT_ONCE = 32
"""Memories embedded per step; when fewer are missing, writers wait for the last ones."""

_PROBE = "The same text has the same vector as long as the model is the same."


class Reembedding:
    """Runs reembeddings, awaited or in the background."""

    def __init__(self, pool: Pool, embedders: Embedders, jobs: Jobs) -> None:
        """Embed with one of `embedders`, and keep a record in `jobs`."""
        self._pool = pool
        self._embedders = embedders
        self._jobs = jobs
        self._background: SingleFlight[str, None] = SingleFlight()

    async def run(
        self,
        namespace: str,
        embedder: EmbedderName | None = None,
        *,
        report: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> int:
        """Give all memories of a namespace new vectors, from its embedder or from another one, which becomes its own.

        `report` gets how many memories are done and how many there are. Returns the number of memories.

        Raises:
            NotFound: there is no such namespace, or it is deleted meanwhile.
            InvalidInput: this server does not have the embedder.
            Conflict: a reembedding of the namespace is already running.
            ModelFileError: the embedder cannot be opened.
            EmbeddingFailed: its provider failed.
        """
        return await self._run(*await self._begin(namespace, embedder), report)

    async def begin(self, namespace: str, embedder: EmbedderName | None = None) -> str:
        """Start what `run` does in the background, where it goes on until `aclose`; returns the job's id."""
        found, name, progress = await self._begin(namespace, embedder)

        async def work() -> None:
            try:
                await self._run(found, name, progress)
            except Exception as exc:
                log.warning("reembedding %r failed: %s", namespace, type(exc).__name__)

        self._background.start(progress.id, work())
        return progress.id

    async def aclose(self) -> None:
        """Cancel background runs."""
        await self._background.aclose()

    async def _begin(self, namespace: str, embedder: EmbedderName | None) -> tuple[Namespace, EmbedderName, Progress]:
        """The namespace as found, its new embedder, and the job, which is recorded."""
        async with namespaces.opened(self._pool, namespace) as (_, found):
            name = embedder or found.settings.embedder
        self._embedders.check(name)
        progress = Progress(kind="reembed", namespace=namespace)
        await self._jobs.start(progress)
        return found, name, progress

    async def _run(
        self,
        namespace: Namespace,
        name: EmbedderName,
        progress: Progress,
        report: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> int:
        def advance(done: int, total: int) -> None:
            progress.done, progress.total = done, total
            report(done, total)

        async with self._jobs.following(progress):
            embedder = self._embedders.get(name)
            model = await _identity(embedder, name)
            async with self._pool.connection() as conn:
                total, done = await reembedding.count(conn, namespace.ns, model)
            advance(done, total)
            after = -1
            while True:
                async with self._pool.connection() as conn:
                    batch = await reembedding.missing(conn, namespace.ns, model, after=after, limit=EMBEDDED_AT_ONCE)
                if len(batch) < EMBEDDED_AT_ONCE and after == -1:
                    break
                if not batch:  # look for memories written or skipped behind it
                    after = -1
                    continue
                embeddings = await embedder.embed_documents([*map(embedded_text, batch.values())])
                async with self._pool.connection() as conn, conn.transaction():
                    await namespaces.lock(conn, namespace.ns)
                    await reembedding.add(conn, namespace.ns, model, batch, embeddings)
                after = max(batch)
                done += len(batch)
                advance(done, max(done, total))
            async with self._pool.connection() as conn, conn.transaction():
                await reembedding.lock(conn, namespace.ns)
                while batch := await reembedding.missing(conn, namespace.ns, model, limit=EMBEDDED_AT_ONCE):
                    embeddings = await embedder.embed_documents([*map(embedded_text, batch.values())])
                    await reembedding.add(conn, namespace.ns, model, batch, embeddings)
                replaced = await reembedding.replace(conn, namespace.ns, name)
            advance(replaced, replaced)
            return replaced


async def _identity(embedder: Embedder, name: EmbedderName) -> str:
    """Equal for comparable vectors; differs even if a bundled model was changed under the same name.

    A provider's vectors of one text differ in their last digits from request to request.
    """
    [vector] = await embedder.embed_documents([_PROBE])
    if "/" in name:
        return name
    return f"{embedder.model} {hashlib.sha256(vector.astype(np.float16).tobytes()).hexdigest()[:16]}"
