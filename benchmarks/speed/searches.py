"""Searches over HTTP: each kind sequentially, many concurrent clients, many small namespaces, the leg's recall."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import cycle

import msgspec
import numpy as np
from msgspec.structs import replace

from benchmarks.speed.client import Connection, closed_loop, post
from benchmarks.speed.corpus import DAYS, EPOCH, TAGS, TEAMS, Corpus
from benchmarks.speed.database import nearest, speakers_in
from benchmarks.speed.figures import EmbeddingUse, LegRecall, SmallNamespaces, Throughput, Timing, spread
from benchmarks.speed.plan import SMALL_MEMORIES, large_name, small_name
from benchmarks.speed.queries import Queries
from benchmarks.speed.vectors import open_embedder
from retrieval.embedding.cache import halfway
from retrieval.errors import StoreUnavailable
from retrieval.text.speakers import in_first_person, named_speakers
from retrieval.types.search import Filters, Mode, SearchRequest, SearchResponse

TOP_K = 10
LATEST = 0.05
"""Share of the memories that the filter by time lets through."""

FILTERS: Mapping[str, Filters] = {
    **{f"tag {share:.1%}": Filters(tags_all=[tag]) for tag, share in TAGS.items()},
    f"metadata {1 / TEAMS:.1%}": Filters(metadata={"team": "t0"}),
    f"created_after {LATEST:.1%}": Filters(created_after=EPOCH + timedelta(days=DAYS * (1 - LATEST))),
}
"""By the share of memories that match."""

NARROW = f"tag {TAGS['twohundredth']:.1%}"
ADAPTIVE, ADAPTIVE_CACHED = "adaptive", "adaptive, embedding cached"

ROUND = 20
"""Queries of a case before the next one's turn, so that slow phases of the machine affect all cases."""

WARM_UP = 30
CONCURRENCIES = (1, 4, 16, 64)
DISTINCT = 250
"""Number of different queries of concurrent clients: fewer than a server process caches."""

SAME = 1e-5
"""Similarities that differ by less are equal, as half floats round them."""

_decode = msgspec.json.Decoder(SearchResponse).decode


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One kind of search; a cached one repeats the queries of the case before it."""

    name: str
    mode: Mode = Mode.ADAPTIVE
    embedding: EmbeddingUse = "computed"
    filter: str | None = None

    def request(self, query: str) -> SearchRequest:
        filters = FILTERS[self.filter] if self.filter else Filters()
        return SearchRequest(query=query, top_k=TOP_K, mode=self.mode, filters=filters)


CASES = (
    Case(name=ADAPTIVE),
    Case(name=ADAPTIVE_CACHED, embedding="cached"),
    Case(name="vector", mode=Mode.VECTOR),
    Case(name="vector, embedding cached", mode=Mode.VECTOR, embedding="cached"),
    Case(name="bm25", mode=Mode.BM25, embedding="none"),
    Case(name="graph", mode=Mode.GRAPH),
    Case(name="graph, embedding cached", mode=Mode.GRAPH, embedding="cached"),
    *(Case(name=f"adaptive, {name}", filter=name) for name in FILTERS),
    Case(name=f"vector, {NARROW}", mode=Mode.VECTOR, filter=NARROW),
)


def search_path(namespace: str) -> str:
    return f"/v1/namespaces/{namespace}/search"


def search(connection: Connection, path: str, request: SearchRequest) -> tuple[float, SearchResponse]:
    """One search; returns milliseconds and the answer, parts of which may have failed.

    Raises:
        StoreUnavailable: it failed.
    """
    reply = connection.ask(post(path, request))
    if reply.status != 200:
        raise StoreUnavailable(f"a search failed with {reply.status}: {reply.body[:500].decode(errors='replace')}")
    return reply.seconds * 1e3, _decode(reply.body)


def warm_up(port: int, size: int, queries: Queries) -> None:
    """Run a few searches in every mode, so that one-time work is not measured; their outcome is ignored."""
    path = search_path(large_name(size))
    with Connection(port) as connection:
        for case in CASES:
            for query in queries.take(WARM_UP if case.filter is None else WARM_UP // 5):
                connection.ask(post(path, case.request(query)))


def measure_latency(
    port: int, size: int, queries: Queries, count: int, eligible: Mapping[str, int], progress: Callable[[int], None]
) -> list[Timing]:
    """Every case with `count` queries, in turns of `ROUND`; `eligible`: how many memories meet each filter."""
    path = search_path(large_name(size))
    answers: dict[str, list[tuple[float, SearchResponse]]] = {case.name: [] for case in CASES}
    with Connection(port) as connection:
        for start in range(0, count, ROUND):
            texts: list[str] = []
            for case in CASES:
                if case.embedding != "cached":
                    texts = queries.take(min(ROUND, count - start))
                answers[case.name] += [search(connection, path, case.request(text)) for text in texts]
                progress(len(texts))
    return [_timing(case, answers[case.name], eligible[case.filter] if case.filter else size) for case in CASES]


def _timing(case: Case, answers: list[tuple[float, SearchResponse]], eligible: int) -> Timing:
    stages: dict[str, list[float]] = {}
    for _, answer in answers:
        for stage, value in answer.timings_ms.items():
            stages.setdefault(stage, []).append(value)
    return Timing(
        case=case.name,
        mode=case.mode.value,
        embedding=case.embedding,
        filter=case.filter,
        whole=spread([milliseconds for milliseconds, _ in answers]),
        stages={stage: spread(values) for stage, values in stages.items()},
        full=sum(len(answer.results) >= min(TOP_K, eligible) for _, answer in answers),
        degraded=sum(bool(answer.degraded) for _, answer in answers),
        eligible=eligible,
    )


def measure_throughput(port: int, size: int, queries: Queries, workers: int, seconds: float) -> list[Throughput]:
    """Searches per second at each concurrency, for `seconds` each, with all query embeddings cached."""
    path = search_path(large_name(size))
    requests = [post(path, SearchRequest(query=query, top_k=TOP_K)) for query in queries.take(DISTINCT)]
    closed_loop(port, requests * (2 * workers - 1), 2 * workers)  # each process caches each query
    found = []
    for concurrency in CONCURRENCIES:
        result = closed_loop(port, cycle(requests), concurrency, seconds=seconds)
        found.append(Throughput(concurrency=concurrency, workers=workers, **result.figures))
    return found


def measure_small(
    port: int, corpus: Corpus, namespaces: int, *, seed: int, progress: Callable[[int], None]
) -> SmallNamespaces:
    """Two different uncached queries in each namespace: the first that this server gets there, and a later one."""
    made = {number: Queries(corpus, SMALL_MEMORIES, seed=seed, stream=number) for number in range(1, namespaces + 1)}
    first: list[float] = []
    second: list[float] = []
    degraded = 0
    with Connection(port) as connection:
        for taken in (first, second):
            for number, queries in made.items():
                request = CASES[0].request(*queries.take(1))
                milliseconds, answer = search(connection, search_path(small_name(number)), request)
                taken.append(milliseconds)
                degraded += bool(answer.degraded)
                progress(1)
    return SmallNamespaces(namespaces=namespaces, first=spread(first), second=spread(second), degraded=degraded)


async def measure_recall(port: int, url: str, size: int, queries: Queries, count: int) -> LegRecall:
    """The share of the exact ten that mode vector returns at the default `ef_search`, mean and worst query.

    A result counts if it is as similar as the exact tenth, so ties do not matter. Duplicates merged into other results
    count, too, as the leg returned them.
    """
    texts, speakers = queries.take(count), speakers_in(url, large_name(size))
    in_person = [in_first_person(text, named_speakers(text, speakers)) for text in texts]
    embedder = open_embedder()
    # What a search compares: a question that names a speaker is embedded in two wordings.
    pairs = [[await embedder.embed_query(wording) for wording in both] for both in zip(texts, in_person, strict=True)]
    vectors = np.stack([halfway(*pair) for pair in pairs])
    await embedder.aclose()
    returned = []
    every = SearchRequest(query="", top_k=TOP_K, mode=Mode.VECTOR, source_cap=200, diversity=0.0, explain=True)
    with Connection(port) as connection:
        for text in texts:
            _, answer = search(connection, search_path(large_name(size)), replace(every, query=text))
            folded = [other for result in answer.results for other in (result.duplicates or [])]
            returned.append([*(result.id for result in answer.results), *folded])
    similarities, least = nearest(url, large_name(size), vectors, returned, TOP_K)
    shares = []
    for row, ids in enumerate(returned):
        near = sum(similarities[row].get(memory_id, -1.0) >= least[row] - SAME for memory_id in ids[:TOP_K])
        shares.append(min(near, TOP_K) / TOP_K)
    return LegRecall(queries=count, mean=float(np.mean(shares)), worst=float(np.min(shares)))
