"""Searches one after another over HTTP: the whole, and each stage as the server reports it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import psycopg
from psycopg.types.json import Jsonb

from retrieval.benchmarking.cases import CASES, FILTERS, TOP_K, Case
from retrieval.benchmarking.figures import Timing, spread
from retrieval.benchmarking.load import Connection, post
from retrieval.benchmarking.plan import large_name
from retrieval.benchmarking.queries import Queries
from retrieval.errors import StoreUnavailable
from retrieval.types import Filters, SearchResponse

ROUND = 20
"""Queries of a case before the next has its turn: all meet the same phases of the machine."""

WARM_UP = 30

_decode = msgspec.json.Decoder(SearchResponse).decode

_ELIGIBLE = """
    select count(*) from memory where ns = (select ns from namespace where name = %(namespace)s)
        and tags @> %(tags)s::text[] and metadata @> %(metadata)s
        and created_at >= coalesce(%(after)s, '-infinity'::timestamptz)
"""


def search_path(namespace: str) -> str:
    """Where searches of a namespace are sent."""
    return f"/v1/namespaces/{namespace}/search"


def search(connection: Connection, path: str, case: Case, query: str) -> tuple[float, SearchResponse]:
    """One search; milliseconds and the answer, of which a part may have failed.

    Raises:
        StoreUnavailable: it failed.
    """
    reply = connection.ask(post(path, case.request(query)))
    if reply.status != 200:
        raise StoreUnavailable(f"a search failed with {reply.status}: {reply.body[:500].decode(errors='replace')}")
    return reply.seconds * 1e3, _decode(reply.body)


def warm_up(port: int, size: int, queries: Queries) -> None:
    """Ask a few in every mode, so that nothing is measured that happens once; how they fare does not matter."""
    path = search_path(large_name(size))
    with Connection(port) as connection:
        for case in CASES:
            for query in queries.take(WARM_UP if case.filter is None else WARM_UP // 5):
                connection.ask(post(path, case.request(query.text)))


def measure_latency(
    port: int, size: int, queries: Queries, count: int, eligible: Mapping[str, int], progress: Callable[[int], None]
) -> list[Timing]:
    """Every case with `count` queries, in turns of `ROUND`; `eligible` says how many memories meet each filter."""
    path = search_path(large_name(size))
    whole: dict[str, list[float]] = {case.name: [] for case in CASES}
    stages: dict[str, dict[str, list[float]]] = {case.name: {} for case in CASES}
    full, degraded = dict.fromkeys(whole, 0), dict.fromkeys(whole, 0)
    with Connection(port) as connection:
        for start in range(0, count, ROUND):
            asked: list[str] = []
            for case in CASES:
                if case.embedding != "cached":
                    asked = [query.text for query in queries.take(min(ROUND, count - start))]
                for query in asked:
                    milliseconds, answer = search(connection, path, case, query)
                    whole[case.name].append(milliseconds)
                    for stage, value in answer.timings_ms.items():
                        stages[case.name].setdefault(stage, []).append(value)
                    expected = min(TOP_K, eligible[case.filter] if case.filter else size)
                    full[case.name] += len(answer.results) >= expected
                    degraded[case.name] += bool(answer.degraded)
                progress(len(asked))
    return [
        Timing(
            case=case.name,
            mode=case.mode.value,
            embedding=case.embedding,
            filter=case.filter,
            whole=spread(whole[case.name]),
            stages={stage: spread(values) for stage, values in stages[case.name].items()},
            full=full[case.name],
            degraded=degraded[case.name],
            eligible=eligible[case.filter] if case.filter else size,
        )
        for case in CASES
    ]


def count_eligible(url: str, size: int) -> dict[str, int]:
    """How many memories of the namespace meet each filter, counted without an index's help."""
    with psycopg.connect(url) as conn:
        return {name: _count(conn, size, filters) for name, filters in FILTERS.items()}


def _count(conn: psycopg.Connection[Any], size: int, filters: Filters) -> int:
    parameters: dict[str, Any] = {
        "namespace": large_name(size),
        "tags": filters.tags_all,
        "metadata": Jsonb(filters.metadata),
        "after": filters.created_after,
    }
    row: Sequence[Any] | None = conn.execute(_ELIGIBLE, parameters).fetchone()
    return int(row[0]) if row else 0
