"""Peers beside Trivet on the same memories, embeddings and queries, query by query in turn."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import psycopg
from pgvector.psycopg import register_vector

from retrieval.benchmarking.cases import CASES, TOP_K
from retrieval.benchmarking.figures import PeersResult, PeerTiming, spread
from retrieval.benchmarking.latency import search, search_path
from retrieval.benchmarking.load import Connection
from retrieval.benchmarking.peers import open_peer
from retrieval.benchmarking.peers.base import Documents, Variant
from retrieval.benchmarking.plan import large_name
from retrieval.benchmarking.queries import Queries
from retrieval.benchmarking.vectors import open_embedder, plain_text
from retrieval.types import MemoryInput

WARM_UP = 10

_DOCUMENTS = """
    select id, text, title, speaker, embedding from memory
    where ns = (select ns from namespace where name = %(namespace)s) order by doc
"""


async def measure_peers(
    port: int, url: str, size: int, names: Sequence[str], queries: Queries, count: int, progress: Callable[[int], None]
) -> tuple[PeersResult, dict[str, str]]:
    """Time every installed peer of these names; also what each one does, by its name.

    Each query is embedded once here, whose time every peer's search is given; Trivet embeds it in its server.
    """
    documents = stored_documents(url, large_name(size))
    path = search_path(large_name(size))
    embedder = open_embedder()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trivet-peers-")))
        variants: list[tuple[Variant, float]] = []
        for name in names:
            started = time.perf_counter()
            offered = stack.enter_context(open_peer(name)(documents, folder, url))
            variants += [(variant, time.perf_counter() - started) for variant in offered]
        connection = stack.enter_context(Connection(port))
        degraded = 0
        trivet: list[float] = []
        embedding: list[float] = []
        own: dict[str, list[float]] = {variant.name: [] for variant, _ in variants}
        for query in queries.take(WARM_UP + count):
            started = time.perf_counter()
            vector = await embedder.embed_query(query.text)
            embedding.append(1e3 * (time.perf_counter() - started))
            milliseconds, answer = search(connection, path, CASES[0], query.text)
            trivet.append(milliseconds)
            degraded += bool(answer.degraded)
            for variant, _ in variants:
                started = time.perf_counter()
                variant.search(query.text, vector, TOP_K)
                own[variant.name].append(1e3 * (time.perf_counter() - started))
            progress(1)
    await embedder.aclose()
    shared = np.array(embedding[WARM_UP:])
    timings = [
        PeerTiming(
            peer=variant.name,
            search=spread(own[variant.name][WARM_UP:]),
            whole=spread((shared + own[variant.name][WARM_UP:]).tolist()),
            build_s=build_s,
        )
        for variant, build_s in variants
    ]
    result = PeersResult(
        size=size,
        trivet=spread(trivet[WARM_UP:]),
        degraded=degraded,
        embedding=spread(shared.tolist()),
        peers=timings,
    )
    return result, {variant.name: variant.note for variant, _ in variants}


def stored_documents(url: str, namespace: str) -> Documents:
    """What a namespace holds, each memory as one text, in the order of insertion."""
    with psycopg.connect(url) as conn:
        register_vector(conn)
        rows = conn.execute(_DOCUMENTS, {"namespace": namespace}, binary=True).fetchall()
    texts = [plain_text(MemoryInput(text=text, title=title, speaker=speaker)) for _, text, title, speaker, _ in rows]
    vectors = np.stack([np.asarray(row[4].to_numpy(), np.float32) for row in rows])
    return Documents(ids=[row[0] for row in rows], texts=texts, vectors=vectors)
