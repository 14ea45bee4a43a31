"""The time of a query's steps before and after the legs, in milliseconds: `python benchmarks/query_steps.py`.

The best of many runs, so that a busy machine gives about the same result as an idle one.
"""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple, TypeVar

import numpy as np

from classifier.features import EMBEDDING_DIM
from classifier.inference import IntentClassifier
from retrieval.installation import models_dir
from retrieval.ranking.dedup import deduplicate
from retrieval.text.time.periods import find_periods
from retrieval.types.memory import Kind

QUERY = "What did Caroline say about the support group that she joined with Melanie in May?"
ASKED_AT = datetime(2023, 6, 15, 18, 30, tzinfo=UTC)


Given = TypeVar("Given")


class Said(NamedTuple):
    """A memory to compare."""

    id: str
    text: str
    speaker: str | None = None
    title: str | None = None
    kind: Kind = "memory"


def another_query() -> str:
    """A query not used before, as predictions are cached."""
    return f"{QUERY} {time.time_ns()}"


def long_texts() -> list[Said]:
    """New strings each time, as Python caches a string's hash."""
    return [Said(str(number), f"{time.time_ns()} {number} " + "Une pensée. " * 5_000) for number in range(200)]


def best_ms(step: Callable[[Given], object], make: Callable[[], Given], runs: int) -> float:
    """The fastest of some runs, each on a new input from `make`."""
    names = {"step": step, "make": make}
    return 1_000 * min(timeit.repeat("step(given)", "given = make()", number=1, repeat=runs, globals=names))


def main() -> None:
    classifier = IntentClassifier(models_dir() / "intent.onnx")
    wave = np.sin(np.arange(EMBEDDING_DIM)).astype(np.float32)
    vector = wave / np.linalg.norm(wave)
    steps = {
        "classify a query (wanted: 0.3)": best_ms(lambda text: classifier.predict(text, vector), another_query, 500),
        "find its periods": best_ms(lambda text: find_periods(text, asked_at=ASKED_AT), another_query, 500),
        "fold 200 texts of 60,000 characters": best_ms(deduplicate, long_texts, 5),
    }
    for name, ms in steps.items():
        print(f"{ms:8.3f}  {name}")


if __name__ == "__main__":
    main()
