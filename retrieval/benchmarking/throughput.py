"""Searches of many clients at a time, with all query embeddings cached."""

from __future__ import annotations

from collections import Counter
from itertools import cycle

from retrieval.benchmarking.cases import TOP_K
from retrieval.benchmarking.figures import Throughput, spread
from retrieval.benchmarking.latency import search_path
from retrieval.benchmarking.load import closed_loop, post
from retrieval.benchmarking.plan import large_name
from retrieval.benchmarking.queries import Queries
from retrieval.types import SearchRequest

CONCURRENCIES = (1, 4, 16, 64)
DISTINCT = 250
"""Different queries: fewer than a server process remembers."""


def measure_throughput(port: int, size: int, queries: Queries, workers: int, seconds: float) -> list[Throughput]:
    """Searches a second at each concurrency, for so many seconds each."""
    path = search_path(large_name(size))
    requests = [post(path, SearchRequest(query=query.text, top_k=TOP_K)) for query in queries.take(DISTINCT)]
    closed_loop(port, requests * (2 * workers - 1), 2 * workers)  # each process comes to know each query
    found = []
    for concurrency in CONCURRENCIES:
        result = closed_loop(port, cycle(requests), concurrency, seconds=seconds)
        found.append(
            Throughput(
                concurrency=concurrency,
                workers=workers,
                per_second=len(result.latencies) / result.seconds,
                latency=spread([1e3 * each for each in result.latencies]) if result.latencies else None,
                failures=dict(Counter(result.failures)),
            )
        )
    return found
