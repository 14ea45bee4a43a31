"""Ingest over HTTP by several writers into one namespace, against the embedder alone."""

from __future__ import annotations

import time
from collections import Counter

from benchmarks.speed.client import Connection, closed_loop, post
from benchmarks.speed.corpus import Corpus
from benchmarks.speed.figures import IngestRate
from benchmarks.speed.vectors import open_embedder, plain_text
from retrieval.errors import StoreUnavailable

WRITERS = 8
BATCH = 50
ROUNDS = 3
"""Turns in which the embedder alone and the writers are measured one after the other."""

NAMESPACE = "bench-ingest"
_STREAM = 1_000_000
"""Apart from those of all other namespaces."""


async def measure_ingest(port: int, corpus: Corpus, memories: int) -> IngestRate:
    """Write that many new memories with computed embeddings, then delete them. Deadlocks are not counted yet.

    Raises:
        StoreUnavailable: the namespace cannot be deleted.
    """
    _drop(port)
    failures: Counter[str] = Counter()
    writing = embedding = 0.0
    each = -(-memories // ROUNDS)
    embedder = open_embedder()
    for turn in range(ROUNDS):
        made = list(corpus.memories(_STREAM, turn * each, (turn + 1) * each))
        texts = [plain_text(memory) for memory in made]
        batches = [{"memories": made[start : start + BATCH]} for start in range(0, each, BATCH)]
        started = time.perf_counter()
        await embedder.embed_documents(texts)
        embedding += time.perf_counter() - started
        result = closed_loop(port, [post(f"/v1/namespaces/{NAMESPACE}/memories", batch) for batch in batches], WRITERS)
        writing += result.seconds
        failures.update(result.failures)
    await embedder.aclose()
    _drop(port)
    return IngestRate(
        writers=WRITERS,
        batch=BATCH,
        memories=each * ROUNDS,
        per_second=each * ROUNDS / writing,
        embedder_per_second=each * ROUNDS / embedding,
        deadlocks=0,
        failures=dict(failures),
    )


def _drop(port: int) -> None:
    request = f"DELETE /v1/namespaces/{NAMESPACE}?confirm={NAMESPACE} HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with Connection(port) as connection:
        reply = connection.ask(request.encode())
    if reply.status not in (200, 204, 404):
        raise StoreUnavailable(f"{NAMESPACE} cannot be deleted: {reply.status}")
