"""Prometheus counters of one application, in a registry of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from retrieval.api.histograms import Histogram
from retrieval.types import Degradation

_SECONDS = (0.001, 0.002, 0.004, 0.006, 0.008, 0.012, 0.02, 0.035, 0.06, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

CacheCounts = Callable[[], tuple[int, int]]
"""Hits and misses of the query embedding cache so far."""


class Metrics:
    """What `/metrics` tells: requests, stages of a search, degraded legs, embedding cache."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        self.requests = Histogram(
            "trivet_http_request_seconds",
            "Time from the request's head to the last byte of the answer.",
            ["method", "route", "status"],
            buckets=_SECONDS,
        )
        self.stages = Histogram(
            "trivet_stage_seconds",
            "Time of one stage of a search or context pack; a leg is a stage.",
            ["stage"],
            buckets=_SECONDS,
        )
        self.degraded = Counter(
            "trivet_degraded_total", "Answers that had to do without a leg.", ["leg"], registry=self.registry
        )
        ProcessCollector(registry=self.registry)
        self.registry.register(self.requests)
        self.registry.register(self.stages)

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answered request."""
        self.requests.observe((method, route, str(status)), seconds)

    def observe_answer(self, timings_ms: Mapping[str, float], degraded: Iterable[Degradation]) -> None:
        """Count the stages and the missing legs of one answer."""
        for stage, milliseconds in timings_ms.items():
            self.stages.observe((stage,), milliseconds / 1000.0)
        for leg in degraded:
            self.degraded.labels(leg.leg).inc()

    def watch_embedding_cache(self, counts: CacheCounts) -> None:
        """Report the cache's own counters at every scrape."""
        self.registry.register(_CacheCollector(counts))

    def exposition(self) -> bytes:
        """The registry as Prometheus text, version 0.0.4."""
        return generate_latest(self.registry)


class _CacheCollector(Collector):
    def __init__(self, counts: CacheCounts) -> None:
        self._counts = counts

    def collect(self) -> Iterable[Metric]:
        hits, misses = self._counts()
        family = CounterMetricFamily(
            "trivet_embedding_cache", "Query embeddings looked up in the cache.", labels=["outcome"]
        )
        family.add_metric(["hit"], hits)
        family.add_metric(["miss"], misses)
        yield family
