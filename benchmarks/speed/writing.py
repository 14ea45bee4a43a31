"""Ingest over HTTP by several writers into one namespace, compared with the embedder alone; searches after a write."""

from __future__ import annotations

import time
from collections import Counter
from functools import partial

from msgspec.structs import replace

from benchmarks.speed.client import Connection, bare, closed_loop, post
from benchmarks.speed.corpus import Corpus
from benchmarks.speed.figures import AfterWrite, EmbeddingUse, IngestRate, spread
from benchmarks.speed.plan import large_name
from benchmarks.speed.queries import Queries
from benchmarks.speed.searches import CASES, search, search_path
from benchmarks.speed.vectors import open_embedder
from retrieval.errors import StoreUnavailable
from retrieval.ingest.analysis import embedded_text
from retrieval.types.search import SearchResponse

WRITERS = 8
BATCH = 50
ROUNDS = 3
"""Rounds in which first the embedder alone and then the writers are measured."""

NAMESPACE = "bench-ingest"
_STREAM, _AFTER_WRITE_STREAM = 1_000_000, 3_000_000
"""A stream used by no other namespace."""

_TAG = "bench-after-write"


async def measure_ingest(port: int, corpus: Corpus, memories: int) -> IngestRate:
    """Write `memories` new memories with computed embeddings, then delete them. Deadlocks are not counted yet.

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
        texts = [embedded_text(memory) for memory in made]
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


def measure_after_write(port: int, corpus: Corpus, size: int, queries: Queries, count: int) -> list[AfterWrite]:
    """Search, write a memory and search again, `count` times with new questions and with a repeated one.

    The written memories are deleted at the end.

    Raises:
        StoreUnavailable: a search failed, or the written memories cannot be deleted.
    """
    name = large_name(size)
    ask = partial(search, path=search_path(name))
    taken: dict[EmbeddingUse, list[tuple[float, SearchResponse]]] = {"computed": [], "cached": []}
    with Connection(port) as connection:
        for number, memory in enumerate(corpus.memories(_AFTER_WRITE_STREAM, 0, 2 * count)):
            embedding: EmbeddingUse = "cached" if number % 2 else "computed"
            first, second = queries.take(2)
            texts = [first, first, first] if embedding == "cached" else [first, second]
            *asked, last = map(CASES[0].request, texts)
            written = replace(memory, id=f"{_TAG}-{number}", session_id=None, position=None, kind="memory", tags=[_TAG])
            *_, before = [ask(connection, request=request) for request in asked]
            reply = connection.ask(post(f"/v1/namespaces/{name}/memories", {"memories": [written]}))
            if reply.status != 201:
                raise StoreUnavailable(f"a write failed with {reply.status}")
            taken[embedding] += [before, ask(connection, request=last)]
        delete_tagged(connection, name, _TAG)
    return [
        AfterWrite(
            embedding=embedding,
            before=spread([milliseconds for milliseconds, _ in answers[::2]]),
            after=spread([milliseconds for milliseconds, _ in answers[1::2]]),
            degraded=sum(bool(answer.degraded) for _, answer in answers),
        )
        for embedding, answers in taken.items()
    ]


def delete_tagged(connection: Connection, namespace: str, tag: str) -> None:
    """Delete the memories with a tag.

    Raises:
        StoreUnavailable: that failed.
    """
    path = f"/v1/namespaces/{namespace}/memories/delete"
    reply = connection.ask(post(path, {"filters": {"tags_all": [tag]}}))
    if reply.status != 200:
        raise StoreUnavailable(f"what is tagged {tag} cannot be deleted: {reply.status}")


def _drop(port: int) -> None:
    with Connection(port) as connection:
        reply = connection.ask(bare("DELETE", f"/v1/namespaces/{NAMESPACE}?confirm={NAMESPACE}"))
    if reply.status not in (200, 204, 404):
        raise StoreUnavailable(f"{NAMESPACE} cannot be deleted: {reply.status}")
