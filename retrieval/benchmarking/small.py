"""Searches in many small namespaces beside the large ones."""

from __future__ import annotations

from collections.abc import Callable

from retrieval.benchmarking.cases import CASES
from retrieval.benchmarking.corpus import Corpus
from retrieval.benchmarking.figures import SmallNamespaces, spread
from retrieval.benchmarking.latency import search, search_path
from retrieval.benchmarking.load import Connection
from retrieval.benchmarking.plan import SMALL_MEMORIES, small_name
from retrieval.benchmarking.queries import Queries


def measure_small(
    port: int, corpus: Corpus, namespaces: int, *, seed: int, progress: Callable[[int], None]
) -> SmallNamespaces:
    """Two different queries in each, embeddings computed: the first that this server gets there, and another later."""
    made = {number: Queries(corpus, SMALL_MEMORIES, seed=seed, stream=number) for number in range(1, namespaces + 1)}
    passes: list[list[float]] = []
    degraded = 0
    with Connection(port) as connection:
        for _ in ("first", "second"):
            passes.append([])
            for number, queries in made.items():
                text = queries.take(1)[0].text
                milliseconds, answer = search(connection, search_path(small_name(number)), CASES[0], text)
                passes[-1].append(milliseconds)
                degraded += bool(answer.degraded)
                progress(1)
    return SmallNamespaces(namespaces=namespaces, first=spread(passes[0]), second=spread(passes[1]), degraded=degraded)
