"""Peers compared with Trivet: speed on the same memories, embeddings and queries, quality on evaluation folders."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import fmean

import numpy as np
import psycopg
from pgvector.psycopg import register_vector

from benchmarks.speed.client import Connection
from benchmarks.speed.figures import PeersResult, PeerTiming, Quality, spread
from benchmarks.speed.peers import PEERS, Documents, SearchWay
from benchmarks.speed.plan import large_name
from benchmarks.speed.queries import Queries
from benchmarks.speed.searches import CASES, TOP_K, search, search_path
from benchmarks.speed.vectors import open_embedder
from retrieval.engine import Trivet
from retrieval.evaluation.folder import EvaluationFolder, Query
from retrieval.evaluation.metrics import ndcg, recall
from retrieval.evaluation.runner import ingest, run_system
from retrieval.evaluation.served import evaluation_settings
from retrieval.evaluation.systems import System
from retrieval.ingest.analysis import embedded_text
from retrieval.settings import Settings
from retrieval.store.embedded.instance import running
from retrieval.types.memory import MemoryInput

WARM_UP = 10

_DOCUMENTS = """
    select id, text, title, speaker, embedding from memory
    where ns = (select ns from namespace where name = %(namespace)s) order by doc
"""


async def measure_peers(
    port: int, url: str, size: int, names: Sequence[str], queries: Queries, count: int, progress: Callable[[int], None]
) -> tuple[PeersResult, dict[str, str]]:
    """Time every installed peer of these names; also returns each one's setup in words, by name.

    Each query is embedded once here, and that time is added to every peer's search; Trivet embeds it in its server.
    """
    documents, path = stored_documents(url, large_name(size)), search_path(large_name(size))
    embedder = open_embedder()
    degraded = 0
    trivet: list[float] = []
    embedding: list[float] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trivet-peers-")))
        ways: list[tuple[SearchWay, float, list[float]]] = []
        for name in names:
            started = time.perf_counter()
            offered = stack.enter_context(PEERS[name](documents, folder, url))
            ways += [(way, time.perf_counter() - started, []) for way in offered]
        connection = stack.enter_context(Connection(port))
        for query in queries.take(WARM_UP + count):
            started = time.perf_counter()
            vector = await embedder.embed_query(query)
            embedding.append(1e3 * (time.perf_counter() - started))
            milliseconds, answer = search(connection, path, CASES[0].request(query))
            trivet.append(milliseconds)
            degraded += bool(answer.degraded)
            for way, _, taken in ways:
                started = time.perf_counter()
                way.search(query, vector, TOP_K)
                taken.append(1e3 * (time.perf_counter() - started))
            progress(1)
    await embedder.aclose()
    shared = np.array(embedding[WARM_UP:])
    timings = [
        PeerTiming(
            peer=way.name,
            search=spread(taken[WARM_UP:]),
            whole=spread((shared + taken[WARM_UP:]).tolist()),
            build_s=build_s,
        )
        for way, build_s, taken in ways
    ]
    own, together = spread(trivet[WARM_UP:]), spread(shared.tolist())
    result = PeersResult(size=size, trivet=own, degraded=degraded, embedding=together, peers=timings)
    return result, {way.name: way.note for way, _, _ in ways}


def stored_documents(url: str, namespace: str) -> Documents:
    """The memories of a namespace, each as one text, in the order of insertion."""
    with psycopg.connect(url) as conn:
        register_vector(conn)
        rows = conn.execute(_DOCUMENTS, {"namespace": namespace}, binary=True).fetchall()
    texts = [embedded_text(MemoryInput(text=text, title=title, speaker=speaker)) for _, text, title, speaker, _ in rows]
    vectors = np.stack([np.asarray(row[4].to_numpy(), np.float32) for row in rows])
    return Documents(ids=[row[0] for row in rows], texts=texts, vectors=vectors)


async def measure_quality(
    settings: Settings, folder: EvaluationFolder, names: Sequence[str], *, limit: int, seed: int
) -> list[Quality]:
    """nDCG@10 and recall@10 of Trivet and of each peer on up to `limit` of a folder's queries, drawn at random."""
    queries = folder.sample(limit, seed)
    rankings = {"Trivet, adaptive": await _ask_trivet(settings, folder, queries)}
    embedder = open_embedder()
    async with running(evaluation_settings(settings).data_dir) as url:
        for namespace in folder.namespaces:
            asked = [query for query in queries if query.namespace == namespace]
            if not asked:
                continue
            rows = [row.memory for row in folder.corpus if row.namespace == namespace]
            memories = [memory for memory in rows if isinstance(memory, MemoryInput) and memory.text.strip()]
            texts = [embedded_text(memory) for memory in memories]
            embedded = np.asarray(await embedder.embed_documents(texts), np.float32)
            documents = Documents(ids=[memory.id or "" for memory in memories], texts=texts, vectors=embedded)
            vectors = [await embedder.embed_query(query.text) for query in asked]
            for name in names:
                with (
                    tempfile.TemporaryDirectory(prefix="trivet-peers-") as place,
                    PEERS[name](documents, Path(place), url) as ways,
                ):
                    for way in ways:
                        for query, vector in zip(asked, vectors, strict=True):
                            ranking = way.search(query.text, vector, TOP_K)
                            rankings.setdefault(way.name, {})[query.id] = ranking
    await embedder.aclose()
    return [
        Quality(
            dataset=folder.name,
            system=name,
            queries=len(queries),
            ndcg=fmean(ndcg(given[query.id], query.grades, cutoff=TOP_K) for query in queries),
            recall=fmean(recall(given[query.id], query.grades, cutoff=TOP_K) for query in queries),
        )
        for name, given in rankings.items()
    ]


async def _ask_trivet(
    settings: Settings, folder: EvaluationFolder, queries: Sequence[Query]
) -> dict[str, Sequence[str]]:
    """Trivet's rankings by query, from a separate database."""
    async with Trivet.open(evaluation_settings(settings)) as engine:
        await ingest(engine, folder, folder.stored_name)
        answers = await run_system(engine, queries, System(name="adaptive"), folder.stored_name, top_k=TOP_K)
    return {answer.query.id: [memory_id for memory_id, _ in answer.ranking] for answer in answers}
