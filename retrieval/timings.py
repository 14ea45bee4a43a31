"""Stage timings of a request."""

from __future__ import annotations

import time


class Span:
    """A context manager that adds the duration of its block to a stage."""

    __slots__ = ("_spans", "_stage", "_started")

    def __init__(self, spans: dict[str, int], stage: str) -> None:
        self._spans = spans
        self._stage = stage

    def __enter__(self) -> None:
        self._started = time.perf_counter_ns()

    def __exit__(self, *_: object) -> None:
        took = time.perf_counter_ns() - self._started
        self._spans[self._stage] = self._spans.get(self._stage, 0) + took


class Stopwatch:
    """Collects the duration of each stage, in nanoseconds."""

    def __init__(self) -> None:
        self._started = time.perf_counter_ns()
        self._spans: dict[str, int] = {}

    def span(self, stage: str) -> Span:
        """Time a block as `stage`; repeated stages add up."""
        return Span(self._spans, stage)

    def timings_ms(self) -> dict[str, float]:
        """Every stage so far and `total`, rounded to microseconds."""
        total = time.perf_counter_ns() - self._started
        return {stage: round(took / 1e3) / 1e3 for stage, took in (*self._spans.items(), ("total", total))}
