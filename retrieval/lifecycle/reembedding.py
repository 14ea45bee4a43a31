"""Gives all memories of a namespace new vectors, while searches and writes go on.

The new vectors are collected beside the old ones; then writers wait, those memories that were written meanwhile get
theirs, and one transaction replaces all. A run that is interrupted before that has changed nothing that anybody sees;
the next one takes up what it collected.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from retrieval.embedding.cache import Embedder
from retrieval.errors import NotFound
from retrieval.ingest.service import embedded_text
from retrieval.store import namespaces, reembedding
from retrieval.store.namespaces import Namespace
from retrieval.store.pool import Pool
from retrieval.store.reembedding import UnembeddedMemory
from retrieval.types.memory import MemoryInput
from retrieval.types.namespace import EmbedderName

EMBEDDED_AT_ONCE = 32
"""Memories embedded per step; once fewer are missing, writers wait for the last ones."""

_PROBE = "The same text has the same vector as long as the model is the same."


async def reembed(
    pool: Pool,
    namespace: Namespace,
    embedder: Embedder,
    name: EmbedderName,
    report: Callable[[int, int], None],
) -> int:
    """Give a namespace vectors by an embedder, which has that name; returns of how many memories.

    `report` gets how many memories are done and how many there are. Raises NotFound if the namespace is deleted
    meanwhile, ModelFileError if the embedder cannot be opened.
    """
    model = await _identity(embedder)
    async with pool.connection() as conn:
        total, done = await reembedding.count(conn, namespace.ns, model)
    report(done, total)
    after = -1
    while True:
        async with pool.connection() as conn:
            batch = await reembedding.missing(conn, namespace.ns, model, after=after, limit=EMBEDDED_AT_ONCE)
        if len(batch) < EMBEDDED_AT_ONCE and after == -1:
            break
        if not batch:  # what was written or skipped behind it
            after = -1
            continue
        embeddings = await _embeddings(embedder, batch)
        async with pool.connection() as conn, conn.transaction():
            if not await namespaces.hold(conn, namespace.ns):
                raise NotFound(f"namespace {namespace.name!r} was deleted")
            await reembedding.add(conn, namespace.ns, model, [each.doc for each in batch], embeddings)
        after = batch[-1].doc
        done += len(batch)
        report(done, max(done, total))
    async with pool.connection() as conn, conn.transaction():
        await reembedding.lock(conn, namespace)
        while batch := await reembedding.missing(conn, namespace.ns, model, limit=EMBEDDED_AT_ONCE):
            embeddings = await _embeddings(embedder, batch)
            await reembedding.add(conn, namespace.ns, model, [each.doc for each in batch], embeddings)
        replaced = await reembedding.replace(conn, namespace.ns, name)
    report(replaced, replaced)
    return replaced


async def _identity(embedder: Embedder) -> str:
    """Tells vectors apart that cannot be compared, also where a model was changed under its name."""
    [vector] = await embedder.embed_documents([_PROBE])
    return f"{embedder.model} {hashlib.sha256(vector.astype(np.float16).tobytes()).hexdigest()[:16]}"


async def _embeddings(embedder: Embedder, batch: Sequence[UnembeddedMemory]) -> NDArray[np.float32]:
    memories = (MemoryInput(text=each.text, title=each.title, speaker=each.speaker) for each in batch)
    return await embedder.embed_documents([embedded_text(memory) for memory in memories])
