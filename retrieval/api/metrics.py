"""Prometheus metrics of one application; with several worker processes, of all of them together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, partial

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.values import MutexValue, ValueClass

from retrieval.types.search import Degradation, Leg

_SECONDS = (0.001, 0.002, 0.004, 0.006, 0.008, 0.012, 0.02, 0.035, 0.06, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """What `/metrics` reports: requests, stages of a search, degraded legs, embedding cache."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry(auto_describe=True)
        timed = partial(Histogram, buckets=_SECONDS, registry=registry)
        request_time = "Time from the request's head to the last byte of the answer, by method, route and status."
        requests = timed("trivet_http_request_seconds", request_time, ["method", "route", "status"])
        stage_time = "Time of one stage of a search or context pack; a leg is a stage, and `total` the whole."
        stages = timed("trivet_stage_seconds", stage_time, ["stage"])
        self._degraded = Counter(
            "trivet_degraded",
            "Answers without one of the legs, or without the rescorer, by which is missing.",
            ["leg"],
            registry=registry,
        )
        for name in (*Leg, "rescorer"):  # from the start, at 0: Prometheus sees no rise in a series that begins at 1
            self._degraded.labels(name)
        self._cache = Counter(
            "trivet_embedding_cache",
            "Query embeddings looked up in the cache, by outcome: hit or miss.",
            ["outcome"],
            registry=registry,
        )
        self._cache_seen = {"hit": 0, "miss": 0}
        self._request, self._stage = cache(requests.labels), cache(stages.labels)
        ProcessCollector(registry=registry)

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answered request."""
        self._request(method, route, str(status)).observe(seconds)

    def observe_answer(self, timings_ms: Mapping[str, float], degraded: Iterable[Degradation]) -> None:
        """Count the stages and the missing legs of one answer."""
        for stage, milliseconds in timings_ms.items():
            self._stage(stage).observe(milliseconds / 1000.0)
        for leg in degraded:
            self._degraded.labels(leg.leg).inc()

    def observe_cache(self, *, hits: int, misses: int) -> None:
        """Raise the counters to the embedding cache's totals."""
        for outcome, count in (("hit", hits), ("miss", misses)):
            self._cache.labels(outcome).inc(count - self._cache_seen[outcome])
            self._cache_seen[outcome] = count

    def exposition(self) -> bytes:
        """Prometheus text, version 0.0.4; with several workers, their sums without per-process metrics."""
        if ValueClass is MutexValue:  # a single process
            return generate_latest(self._registry)
        everyone = CollectorRegistry()
        MultiProcessCollector(everyone)  # type: ignore[no-untyped-call]  # prometheus_client leaves it untyped
        return generate_latest(everyone)
