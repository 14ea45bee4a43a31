"""What Trivet sets itself to reach on two cores, and whether a run did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from retrieval.benchmarking.cases import ADAPTIVE, ADAPTIVE_CACHED, NARROW
from retrieval.benchmarking.figures import Benchmark, PeerTiming, SizeResult, Throughput
from retrieval.benchmarking.plan import SMALL_MEMORIES

MID, LARGE = 100_000, 1_000_000
SMALL_NAMESPACES = 2_000
LEGS = ("vector", "bm25", "graph")
MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """One figure that is asked for; `met` is None where the run did not measure it."""

    what: str
    asked: str
    measured: str
    met: bool | None


def targets(found: Benchmark) -> list[Target]:
    """All of them, in the order of the report."""
    return [*_latency(found), *_against_peers(found), *_load(found), *_writing(found), *_room(found)]


def _target(what: str, asked: str, value: float | None, shown: str, met: Callable[[float], bool]) -> Target:
    if value is None:
        return Target(what=what, asked=asked, measured="not measured", met=None)
    return Target(what=what, asked=asked, measured=shown.format(value), met=met(value))


def _at_most(what: str, limit: float, value: float | None, shown: str) -> Target:
    return _target(what, f"≤ {shown.format(limit)}", value, shown, lambda found: found <= limit)


def _at_least(what: str, limit: float, value: float | None, shown: str) -> Target:
    return _target(what, f"≥ {shown.format(limit)}", value, shown, lambda found: found >= limit)


def _latency(found: Benchmark) -> Iterator[Target]:
    mid, large = _size(found, MID), _size(found, LARGE)
    computed, cached = _p50(mid, ADAPTIVE), _p50(mid, ADAPTIVE_CACHED)
    timing = mid.timing(ADAPTIVE) if mid else None
    yield _at_most("100k, embedding computed, p50", 5.0, computed, "{:.1f} ms")
    yield _at_most("100k, embedding computed, p95", 10.0, timing.whole.p95 if timing else None, "{:.1f} ms")
    yield _at_most("100k, embedding cached, p50", 3.5, cached, "{:.1f} ms")
    slowest = max((_p50(mid, leg) or 0.0 for leg in LEGS), default=0.0)
    ratio = computed / slowest if computed and slowest else None
    yield _at_most("100k, whole query over the slowest leg alone, p50", 2.0, ratio, "{:.2f} times")
    at_a_million = _p50(large, ADAPTIVE)
    growth = at_a_million / computed if at_a_million and computed else None
    yield _at_most("1m over 100k, p50", 2.0, growth, "{:.2f} times")
    narrow = mid.timing(f"adaptive, {NARROW}") if mid else None
    complete = narrow.full / narrow.whole.n if narrow else None
    yield _at_least("100k, filter of 0.5 %, answers as full as can be", 1.0, complete, "{:.1%}")
    yield _at_most("100k, filter of 0.5 %, p95", 15.0, narrow.whole.p95 if narrow else None, "{:.1f} ms")
    yield _at_least("100k, recall@10 of the vector leg", 0.98, mid.recall.mean if mid else None, "{:.3f}")


def _against_peers(found: Benchmark) -> Iterator[Target]:
    beside = next((each for each in found.peers if each.size == MID), None)
    own = beside.trivet.p50 if beside else None
    written = _fastest(beside.peers if beside else [], "pgvector + ts_rank_cd, any word")
    lance = _fastest(beside.peers if beside else [], "LanceDB")
    faster = written / own if written and own else None
    yield _at_least("100k, times faster than the hand-written RRF SQL, p50", 40.0, faster, "{:.1f} times")
    share = own / lance if lance and own else None
    yield _at_most("100k, share of LanceDB's hybrid with the embedding's time, p50", 0.6, share, "{:.2f}")


def _load(found: Benchmark) -> Iterator[Target]:
    mid = _size(found, MID)
    sixteen = _best(mid, 16)
    yield _at_least("100k, 16 clients, searches a second", 300.0, sixteen.per_second if sixteen else None, "{:.0f}")
    p99 = sixteen.latency.p99 if sixteen and sixteen.latency else None
    yield _at_most("100k, 16 clients, p99", 150.0, p99, "{:.0f} ms")
    many = [each for each in mid.throughput if each.concurrency == 64] if mid else []
    failed = float(sum(sum(each.failures.values()) for each in many)) if many else None
    yield _at_most("100k, 64 clients, failures", 0.0, failed, "{:.0f}")
    small = found.small_namespaces
    enough = small is not None and small.namespaces >= SMALL_NAMESPACES
    name = f"{SMALL_NAMESPACES:,} namespaces of {SMALL_MEMORIES}, a search in each, p50"
    yield _at_most(name, 5.0, small.first.p50 if small and enough else None, "{:.1f} ms")


def _writing(found: Benchmark) -> Iterator[Target]:
    ingest = found.ingest
    yield _at_least("ingest over the embedder's own rate", 0.6, ingest.share if ingest else None, "{:.2f}")
    yield _at_most("ingest by 8 writers, deadlocks", 0.0, float(ingest.deadlocks) if ingest else None, "{:.0f}")


def _room(found: Benchmark) -> Iterator[Target]:
    packed = found.storage is not None and found.storage.packed and found.storage.posting_bytes
    postings = found.storage.postings_per_memory if found.storage and packed else None
    yield _at_most("bytes of packed postings a memory", 400.0, postings, "{:.0f}")
    mid = _size(found, MID)
    resident = max(mid.resident_bytes) / MIB if mid else None
    yield _at_most("100k, resident memory of a server process", 350.0, resident, "{:.0f} MiB")


def _size(found: Benchmark, size: int) -> SizeResult | None:
    return next((each for each in found.sizes if each.size == size), None)


def _p50(result: SizeResult | None, case: str) -> float | None:
    timing = result.timing(case) if result else None
    return timing.whole.p50 if timing else None


def _best(result: SizeResult | None, concurrency: int) -> Throughput | None:
    """The throughput with the number of server processes that suits it best."""
    rates = [each for each in result.throughput if each.concurrency == concurrency] if result else []
    return max(rates, key=lambda each: each.per_second, default=None)


def _fastest(peers: list[PeerTiming], name: str) -> float | None:
    """The p50 of the fastest way of a peer."""
    return min((each.whole.p50 for each in peers if each.peer.startswith(name)), default=None)
