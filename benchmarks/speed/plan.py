"""What a benchmark builds, and for how long it measures."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from retrieval.errors import InvalidInput

Progress = Callable[[str, int | None], AbstractContextManager[Callable[[int], None]]]
"""Opens a progress display, given a title and a total; yields a function to call with the amount done."""

SMALL_MEMORIES = 50
"""Memories of a small namespace."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkPlan:
    """A run: what is built and how long each part of it is measured.

    `real` is the maximum number of real embeddings, `limit` the number of queries per evaluation folder,
    `mixed` the duration of the mixed load in seconds.
    """

    sizes: tuple[int, ...]
    small: int
    seed: int = 7
    real: int = 8_000
    queries: int = 200
    seconds: float = 8.0
    ingest: int = 6_000
    mixed: float = 0.0
    workers: int = 1
    peers: tuple[str, ...] = ()
    peers_at: tuple[int, ...] = ()
    limit: int = 200


def parse_sizes(text: str) -> tuple[int, ...]:
    """Parse a comma-separated list of sizes: ascending, without repeats.

    Raises:
        InvalidInput: one is not a size.

    >>> parse_sizes("100k,10k,1m")
    (10000, 100000, 1000000)
    """
    sizes = set()
    for part in text.split(","):
        found = re.fullmatch(r"([1-9]\d*)([km]?)", part.strip().lower())
        if found is None:
            raise InvalidInput(f"{part.strip()!r} is no size: write 10k, 1m or a number")
        sizes.add(int(found[1]) * {"": 1, "k": 1_000, "m": 1_000_000}[found[2]])
    return tuple(sorted(sizes))


def size_label(size: int) -> str:
    """A size as people write it.

    >>> [size_label(size) for size in (500, 10_000, 1_000_000)]
    ['500', '10k', '1m']
    """
    for unit, letter in ((1_000_000, "m"), (1_000, "k")):
        if size % unit == 0:
            return f"{size // unit}{letter}"
    return str(size)


def large_name(size: int) -> str:
    return f"bench-{size_label(size)}"


def small_name(number: int) -> str:
    """The name of a small namespace, numbered from 1 like its stream."""
    return f"bench-small-{number}"
