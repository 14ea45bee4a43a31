"""Stage timings of a request."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable


class Span:
    """A context manager that records when its block began and ended."""

    __slots__ = ("_spans", "_started")

    def __init__(self, spans: list[tuple[int, int]]) -> None:
        self._spans = spans

    def __enter__(self) -> None:
        self._started = time.perf_counter_ns()

    def __exit__(self, *_: object) -> None:
        self._spans.append((self._started, time.perf_counter_ns()))


class Stopwatch:
    """Collects the duration of each stage, in nanoseconds."""

    def __init__(self) -> None:
        self._started = time.perf_counter_ns()
        self._spans: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)

    def span(self, stage: str) -> Span:
        """Time a block as `stage`; repeated stages add up, except for the time that they have in common."""
        return Span(self._spans[stage])

    def timings_ms(self) -> dict[str, float]:
        """Every stage so far and `total`, rounded to microseconds."""
        whole = [(self._started, time.perf_counter_ns())]
        stages = {stage: spans for stage, spans in self._spans.items() if spans} | {"total": whole}
        return {stage: round(_covered(spans) / 1e3) / 1e3 for stage, spans in stages.items()}


def _covered(spans: Iterable[tuple[int, int]]) -> int:
    """The time in at least one of the spans."""
    covered = latest = 0
    for started, ended in sorted(spans):
        covered += max(ended - max(started, latest), 0)
        latest = max(latest, ended)
    return covered
