"""The figures of a benchmark, as in the JSON file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from msgspec import Struct

EmbeddingUse = Literal["computed", "cached", "none"]


class Spread(Struct, frozen=True, kw_only=True):
    """Milliseconds of `n` measurements."""

    n: int
    p50: float
    p95: float
    p99: float
    mean: float


def spread(milliseconds: Sequence[float]) -> Spread:
    """The percentiles of some measurements, at least one."""
    p50, p95, p99 = (float(value) for value in np.percentile(milliseconds, [50, 95, 99]))
    return Spread(n=len(milliseconds), p50=p50, p95=p95, p99=p99, mean=float(np.mean(milliseconds)))


class Timing(Struct, frozen=True, kw_only=True):
    """One kind of search, one after another: from the first byte sent to the last received, and stages as reported.

    `full` answers have all existing results up to top_k; `eligible` memories meet the filter.
    """

    case: str
    mode: str
    embedding: EmbeddingUse
    filter: str | None
    whole: Spread
    stages: dict[str, Spread]
    full: int
    degraded: int
    eligible: int


class Load(Struct, frozen=True, kw_only=True):
    """Requests of one kind by several concurrent clients, each of which sends the next when it is answered."""

    per_second: float
    latency: Spread | None
    failures: dict[str, int]

    @property
    def failed(self) -> int:
        return sum(self.failures.values())


class Throughput(Load, frozen=True, kw_only=True):
    """Searches, embeddings cached."""

    concurrency: int
    workers: int


class MixedKind(Load, frozen=True, kw_only=True):
    """One kind of request among the others."""

    kind: str


class MixedLoad(Struct, frozen=True, kw_only=True):
    """All kinds of requests at once on the namespace of one size; resident bytes of each server process."""

    size: int
    clients: int
    workers: int
    seconds: float
    kinds: list[MixedKind]
    resident_before: list[int]
    resident_after: list[int]

    @property
    def per_second(self) -> float:
        return sum(each.per_second for each in self.kinds)

    @property
    def failures(self) -> int:
        return sum(each.failed for each in self.kinds)


class LegRecall(Struct, frozen=True, kw_only=True):
    """The vector leg's ten against the exact ten."""

    queries: int
    mean: float
    worst: float


class TableBytes(Struct, frozen=True, kw_only=True):
    """A table with its partitions: its own bytes, those of its overflow storage and of each index."""

    table: str
    heap: int
    toast: int
    indexes: dict[str, int]

    @property
    def total(self) -> int:
        return self.heap + self.toast + sum(self.indexes.values())


class Storage(Struct, frozen=True, kw_only=True):
    """Bytes of the database; `packed` memories are in namespaces large enough for packed postings."""

    memories: int
    packed: int
    tables: list[TableBytes]
    posting_bytes: int

    @property
    def postings_per_memory(self) -> float:
        return self.posting_bytes / max(self.packed, 1)


class IngestRate(Struct, frozen=True, kw_only=True):
    """Writers over HTTP with real embeddings, compared with the embedder alone on the same texts."""

    writers: int
    batch: int
    memories: int
    per_second: float
    embedder_per_second: float
    deadlocks: int
    failures: dict[str, int]

    @property
    def share(self) -> float:
        return self.per_second / self.embedder_per_second


class SmallNamespaces(Struct, frozen=True, kw_only=True):
    """A search in each of many small namespaces, and another one."""

    namespaces: int
    first: Spread
    second: Spread
    degraded: int


class AfterWrite(Struct, frozen=True, kw_only=True):
    """Searches right before and right after a write: with new questions, or with a repeated one."""

    embedding: EmbeddingUse
    before: Spread
    after: Spread
    degraded: int

    @property
    def more(self) -> float:
        """Median milliseconds that the write adds to the search after it."""
        return self.after.p50 - self.before.p50


class SizeResult(Struct, frozen=True, kw_only=True):
    """The figures of one size of namespace."""

    size: int
    timings: list[Timing]
    throughput: list[Throughput]
    recall: LegRecall
    resident_bytes: list[int]
    after_write: list[AfterWrite] = []

    def timing(self, case: str) -> Timing | None:
        return next((timing for timing in self.timings if timing.case == case), None)


class PeerTiming(Struct, frozen=True, kw_only=True):
    """A peer on the same queries as Trivet: its time without and with the embedding; seconds to index."""

    peer: str
    search: Spread
    whole: Spread
    build_s: float


class PeersResult(Struct, frozen=True, kw_only=True):
    """All peers at one size, with Trivet over HTTP on the same queries at the same time."""

    size: int
    trivet: Spread
    degraded: int
    embedding: Spread
    peers: list[PeerTiming]


class Quality(Struct, frozen=True, kw_only=True):
    """How well a system ranks on an evaluation folder."""

    dataset: str
    system: str
    queries: int
    ndcg: float
    recall: float


class Machine(Struct, frozen=True, kw_only=True):
    """The machine of the figures."""

    cores: int
    memory_bytes: int
    processor: str
    system: str
    versions: dict[str, str]


class Benchmark(Struct, kw_only=True):
    date: str
    seed: int
    machine: Machine
    queries: int
    small: int
    build_rates: dict[str, float]
    index_s: float | None
    sizes: list[SizeResult] = []
    storage: Storage | None = None
    ingest: IngestRate | None = None
    mixed: MixedLoad | None = None
    small_namespaces: SmallNamespaces | None = None
    peers: list[PeersResult] = []
    absent_peers: dict[str, str] = {}
    peer_notes: dict[str, str] = {}
    quality: list[Quality] = []

    def at(self, size: int) -> SizeResult | None:
        return next((each for each in self.sizes if each.size == size), None)
