"""The vector leg over HTTP against the exact nearest neighbours of the stored vectors."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector import HalfVector
from pgvector.psycopg import register_vector

from retrieval.benchmarking.cases import TOP_K
from retrieval.benchmarking.figures import LegRecall
from retrieval.benchmarking.latency import search_path
from retrieval.benchmarking.load import Connection, post
from retrieval.benchmarking.plan import large_name
from retrieval.benchmarking.queries import Queries
from retrieval.benchmarking.vectors import open_embedder
from retrieval.errors import StoreUnavailable
from retrieval.types import Mode, SearchRequest, SearchResponse

ROWS_AT_ONCE = 20_000

SAME = 1e-5
"""Difference of similarities below which one memory is as near as another; half floats round them."""

_VECTORS = """
    select id, embedding from memory where ns = (select ns from namespace where name = %(namespace)s)
"""


async def measure_recall(port: int, url: str, size: int, queries: Queries, count: int) -> LegRecall:
    """The share of the exact ten that mode vector returns at the default `ef_search`, mean and worst query.

    A result counts if it is as similar as the exact tenth: which of equals is returned does not matter.
    """
    texts = [query.text for query in queries.take(count)]
    embedder = open_embedder()
    vectors = np.stack([await embedder.embed_query(text) for text in texts])
    await embedder.aclose()
    returned = [_asked(port, size, text) for text in texts]
    similarities, least = _exact(url, size, vectors, returned)
    shares = []
    for row, ids in enumerate(returned):
        near = sum(similarities[row].get(memory_id, -1.0) >= least[row] - SAME for memory_id in ids[:TOP_K])
        shares.append(min(near, TOP_K) / TOP_K)
    return LegRecall(queries=count, mean=float(np.mean(shares)), worst=float(np.min(shares)))


def _asked(port: int, size: int, text: str) -> list[str]:
    """What the leg returns, duplicates that were folded into others included."""
    request = SearchRequest(query=text, top_k=TOP_K, mode=Mode.VECTOR, source_cap=200, diversity=0.0, explain=True)
    with Connection(port) as connection:
        reply = connection.ask(post(search_path(large_name(size)), request))
    if reply.status != 200:
        raise StoreUnavailable(f"a search failed with {reply.status}: {reply.body[:500].decode(errors='replace')}")
    results = msgspec.json.decode(reply.body, type=SearchResponse).results
    found = [result.id for result in results]
    folded = [other for result in results for other in (result.duplicates or [])]
    return found + folded


def _exact(
    url: str, size: int, vectors: NDArray[np.float32], returned: Sequence[Sequence[str]]
) -> tuple[list[dict[str, float]], NDArray[np.float32]]:
    """By query: similarities of what was returned, and that of the tenth nearest, shape (queries,)."""
    wanted = [set(ids) for ids in returned]
    similarities: list[dict[str, float]] = [{} for _ in returned]
    best = np.full((len(vectors), TOP_K), -1.0, np.float32)
    stored = vectors.astype(np.float16).astype(np.float32)
    with psycopg.connect(url) as conn:
        register_vector(conn)
        with conn.cursor(name="vectors", binary=True) as cursor:
            cursor.itersize = ROWS_AT_ONCE
            cursor.execute(_VECTORS, {"namespace": large_name(size)})
            while rows := cursor.fetchmany(ROWS_AT_ONCE):
                ids = [row[0] for row in rows]
                matrix = np.stack([_array(row[1]) for row in rows])
                found = stored @ matrix.T
                best = -np.partition(-np.hstack([best, found]), TOP_K - 1, axis=1)[:, :TOP_K]
                for at, memory_id in enumerate(ids):
                    for row, ids_of_query in enumerate(wanted):
                        if memory_id in ids_of_query:
                            similarities[row][memory_id] = float(found[row, at])
    return similarities, best.min(axis=1)


def _array(vector: HalfVector) -> NDArray[np.float32]:
    return np.asarray(vector.to_numpy(), np.float32)
