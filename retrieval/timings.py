"""Stage timings of a request."""

from __future__ import annotations

import time


class Span:
    """A context manager that adds the duration of its block to a stage."""

    __slots__ = ("_spans", "_stage", "_started")

    def __init__(self, spans: dict[str, float], stage: str) -> None:
        self._spans = spans
        self._stage = stage

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        took = (time.perf_counter() - self._started) * 1e3
        self._spans[self._stage] = self._spans.get(self._stage, 0.0) + took


class Stopwatch:
    """Collects the duration of each stage, in milliseconds."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._spans: dict[str, float] = {}

    def span(self, stage: str) -> Span:
        """Time a block as `stage`; repeated stages add up."""
        return Span(self._spans, stage)

    def timings_ms(self) -> dict[str, float]:
        """Every stage so far and `total`, rounded to microseconds."""
        total = (time.perf_counter() - self._started) * 1e3
        return {stage: round(value, 3) for stage, value in (*self._spans.items(), ("total", total))}
