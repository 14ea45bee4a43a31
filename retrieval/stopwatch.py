"""Timings of one answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Collects how long each stage took, in milliseconds."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._spans: dict[str, float] = {}

    @contextmanager
    def span(self, stage: str) -> Iterator[None]:
        """Time a block as that stage; a stage timed twice adds up."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._spans[stage] = self._spans.get(stage, 0.0) + (time.perf_counter() - started) * 1e3

    def timings_ms(self) -> dict[str, float]:
        """Every stage so far and the total, rounded to microseconds."""
        total = (time.perf_counter() - self._started) * 1e3
        return {stage: round(value, 3) for stage, value in (*self._spans.items(), ("total", total))}
