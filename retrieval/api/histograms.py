"""Histograms for Prometheus that cost a search next to nothing: they belong to one thread, so nothing is locked."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

_INFINITY = float("inf")


class _Counts:
    """The observations of one combination of labels."""

    __slots__ = ("buckets", "created", "sum")

    def __init__(self, buckets: int) -> None:
        self.buckets = [0] * buckets
        self.sum = 0.0
        self.created = time.time()


class Histogram(Collector):
    """Observations by their labels, counted in buckets; made in the thread that observes and is scraped."""

    def __init__(self, name: str, documentation: str, labels: Sequence[str], *, buckets: Sequence[float]) -> None:
        """Without observations; `buckets` are upper bounds, ascending, and beyond the last one there is another."""
        self._name = name
        self._documentation = documentation
        self._labels = labels
        self._bounds = [*buckets, _INFINITY]
        self._counts: dict[tuple[str, ...], _Counts] = {}

    def observe(self, labels: tuple[str, ...], value: float) -> None:
        """Count a value, not negative, under labels in their order."""
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._counts[labels] = _Counts(len(self._bounds))
        counts.buckets[bisect_left(self._bounds, value)] += 1
        counts.sum += value

    def collect(self) -> Iterable[Metric]:
        """All of it, cumulated as Prometheus wants it."""
        metric = Metric(self._name, self._documentation, "histogram")
        for values, counts in self._counts.items():
            labels, so_far = dict(zip(self._labels, values, strict=True)), 0
            for bound, count in zip(self._bounds, counts.buckets, strict=True):
                so_far += count
                metric.add_sample(f"{self._name}_bucket", {**labels, "le": _shown(bound)}, so_far)
            metric.add_sample(f"{self._name}_count", labels, so_far)
            metric.add_sample(f"{self._name}_sum", labels, counts.sum)
            metric.add_sample(f"{self._name}_created", labels, counts.created)
        yield metric


def _shown(bound: float) -> str:
    return str(floatToGoString(bound))  # type: ignore[no-untyped-call]  # prometheus_client leaves this one untyped
