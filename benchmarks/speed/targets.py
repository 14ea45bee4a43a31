"""Trivet's targets on two cores, and whether a run met them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.speed.figures import Benchmark, PeerTiming, SizeResult
from benchmarks.speed.plan import SMALL_MEMORIES
from benchmarks.speed.searches import ADAPTIVE, ADAPTIVE_CACHED, NARROW

MID, LARGE = 100_000, 1_000_000
SMALL_NAMESPACES = 2_000
LEGS = ("vector", "bm25", "graph")
MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """One target; `met` is None if the run did not measure it."""

    what: str
    asked: str
    measured: str
    met: bool | None


def targets(found: Benchmark) -> list[Target]:
    """All targets, in the order of the report."""
    return [*_searches(found), *_against_peers(found), *_load(found), *_rest(found)]


def _target(what: str, shown: str, value: float | None, *, most: float | None = None, least: float = 0.0) -> Target:
    """At most `most`, or else at least `least`; `shown` is how a figure is written."""
    asked = f"≥ {shown.format(least)}" if most is None else f"≤ {shown.format(most)}"
    if value is None:
        return Target(what=what, asked=asked, measured="not measured", met=None)
    met = value >= least if most is None else value <= most
    return Target(what=what, asked=asked, measured=shown.format(value), met=met)


def _searches(found: Benchmark) -> Iterator[Target]:
    mid, large = found.at(MID), found.at(LARGE)
    computed, cached = _p50(mid, ADAPTIVE), _p50(mid, ADAPTIVE_CACHED)
    timing = mid.timing(ADAPTIVE) if mid else None
    yield _target("100k, embedding computed, p50", "{:.1f} ms", computed, most=5.0)
    yield _target("100k, embedding computed, p95", "{:.1f} ms", timing.whole.p95 if timing else None, most=10.0)
    yield _target("100k, embedding cached, p50", "{:.1f} ms", cached, most=3.5)
    after = next((each for each in mid.after_write if each.embedding == "computed"), None) if mid else None
    yield _target("100k, right after a write, more at p50", "{:.1f} ms", after.more if after else None, most=1.5)
    slowest = max(_p50(mid, leg) or 0.0 for leg in LEGS)
    ratio = computed / slowest if computed and slowest else None
    yield _target("100k, whole query over the slowest leg alone, p50", "{:.2f} times", ratio, most=2.0)
    at_a_million = _p50(large, ADAPTIVE)
    growth = at_a_million / computed if at_a_million and computed else None
    yield _target("1m over 100k, p50", "{:.2f} times", growth, most=2.0)
    narrow = mid.timing(f"adaptive, {NARROW}") if mid else None
    complete = narrow.full / narrow.whole.n if narrow else None
    yield _target("100k, filter of 0.5 %, answers as full as can be", "{:.1%}", complete, least=1.0)
    yield _target("100k, filter of 0.5 %, p95", "{:.1f} ms", narrow.whole.p95 if narrow else None, most=15.0)
    yield _target("100k, recall@10 of the vector leg", "{:.3f}", mid.recall.mean if mid else None, least=0.98)


def _against_peers(found: Benchmark) -> Iterator[Target]:
    beside = next((each for each in found.peers if each.size == MID), None)
    own = beside.trivet.p50 if beside else None
    written = _fastest(beside.peers if beside else [], "pgvector + ts_rank_cd, any word")
    lance = _fastest(beside.peers if beside else [], "LanceDB")
    faster = written / own if written and own else None
    yield _target("100k, times faster than the hand-written RRF SQL, p50", "{:.1f} times", faster, least=40.0)
    share = own / lance if lance and own else None
    yield _target("100k, share of LanceDB's hybrid with the embedding's time, p50", "{:.2f}", share, most=0.6)


def _load(found: Benchmark) -> Iterator[Target]:
    mid = found.at(MID)
    throughput = mid.throughput if mid else []
    sixteen = [each for each in throughput if each.concurrency == 16]
    best = max(sixteen, key=lambda each: each.per_second, default=None)  # with the best number of processes
    yield _target("100k, 16 clients, searches a second", "{:.0f}", best.per_second if best else None, least=300.0)
    p99 = best.latency.p99 if best and best.latency else None
    yield _target("100k, 16 clients, p99", "{:.0f} ms", p99, most=150.0)
    many = [each for each in throughput if each.concurrency == 64]
    failed = float(sum(each.failed for each in many)) if many else None
    yield _target("100k, 64 clients, failures", "{:.0f}", failed, most=0.0)
    yield from _mixed(found)
    small = found.small_namespaces
    enough = small is not None and small.namespaces >= SMALL_NAMESPACES
    name = f"{SMALL_NAMESPACES:,} namespaces of {SMALL_MEMORIES}, a search in each, p50"
    yield _target(name, "{:.1f} ms", small.first.p50 if small and enough else None, most=5.0)


def _mixed(found: Benchmark) -> Iterator[Target]:
    load = found.mixed if found.mixed and found.mixed.size == MID else None
    searches = next((each.latency for each in load.kinds if each.kind == "search"), None) if load else None
    name = "100k, 64 clients, all kinds of requests"
    yield _target(f"{name}, a second", "{:.0f}", load.per_second if load else None, least=250.0)
    yield _target(f"{name}, p99 of searches", "{:.0f} ms", searches.p99 if searches else None, most=500.0)
    yield _target(f"{name}, failures", "{:.0f}", float(load.failures) if load else None, most=0.0)


def _rest(found: Benchmark) -> Iterator[Target]:
    ingest, storage, mid = found.ingest, found.storage, found.at(MID)
    yield _target("ingest over the embedder's own rate", "{:.2f}", ingest.share if ingest else None, least=0.6)
    deadlocks = float(ingest.deadlocks) if ingest else None
    yield _target("ingest by 8 writers, deadlocks", "{:.0f}", deadlocks, most=0.0)
    packed = storage is not None and storage.packed and storage.posting_bytes
    postings = storage.postings_per_memory if storage and packed else None
    yield _target("bytes of packed postings a memory", "{:.0f}", postings, most=400.0)
    resident = max(mid.resident_bytes) / MIB if mid else None
    yield _target("100k, resident memory of a server process", "{:.0f} MiB", resident, most=350.0)


def _p50(result: SizeResult | None, case: str) -> float | None:
    timing = result.timing(case) if result else None
    return timing.whole.p50 if timing else None


def _fastest(peers: Sequence[PeerTiming], name: str) -> float | None:
    """The p50 of a peer's fastest way to search."""
    return min((each.whole.p50 for each in peers if each.peer.startswith(name)), default=None)
