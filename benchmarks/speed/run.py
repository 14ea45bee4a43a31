"""A whole benchmark: build, then for each size a new server with all measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from benchmarks.speed.build import bench_settings, build
from benchmarks.speed.database import count_deadlocks, count_eligible, measure_storage
from benchmarks.speed.figures import Benchmark, MixedLoad, PeersResult, SizeResult
from benchmarks.speed.mixed import measure_mixed
from benchmarks.speed.peers import is_installed
from benchmarks.speed.peers_run import measure_peers, measure_quality
from benchmarks.speed.plan import BenchmarkPlan, Progress, large_name, size_label
from benchmarks.speed.queries import Queries
from benchmarks.speed.searches import (
    CASES,
    FILTERS,
    measure_latency,
    measure_recall,
    measure_small,
    measure_throughput,
    warm_up,
)
from benchmarks.speed.server import Server, describe_machine, serving
from benchmarks.speed.vectors import load_corpus
from benchmarks.speed.writing import measure_after_write, measure_ingest
from retrieval.evaluation.folder import EvaluationFolder
from retrieval.store.embedded.instance import running

RECALL_QUERIES = 100
PEER_QUERIES = 150
"""Most queries with peers, some of which take half a second per query."""


async def run(
    folder: Path,
    plan: BenchmarkPlan,
    folders: Sequence[EvaluationFolder],
    progress: Progress,
    keep: Callable[[Benchmark], None],
) -> Benchmark:
    """Build what is missing and measure it.

    The database is in `folder`; `keep` gets the figures after each part, so that an interrupted run loses nothing.

    Raises:
        TrivetError: something failed; failed searches are never silently left out of the figures.
    """
    settings = bench_settings(folder)
    installed = [name for name in plan.peers if is_installed(name)]
    async with running(folder) as url:
        record = await build(settings, url, plan, progress)
        found = Benchmark(
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            seed=plan.seed,
            machine=describe_machine(url),
            queries=plan.queries,
            small=record.filled.get("small", 0),
            build_rates=record.rates,
            index_s=record.index_s,
            absent_peers={name: "not installed" for name in plan.peers if name not in installed},
            storage=measure_storage(url, packed_from=settings.bm25_tail_docs),
        )
        keep(found)
        under_way = _Run(folder, url, plan, progress)
        for size in plan.sizes:
            found.sizes.append(await under_way.measure_size(size))
            keep(found)
            if installed and size in plan.peers_at:
                peers, notes = await under_way.measure_peers(size, installed)
                found.peers.append(peers)
                found.peer_notes |= notes
                keep(found)
        await under_way.measure_rest(found)
        keep(found)
        if plan.mixed:
            found.mixed = under_way.measure_mixed(plan.sizes[-1])
            keep(found)
    for judged in folders:
        with progress(f"quality on {judged.name}", None):
            found.quality += await measure_quality(settings, judged, installed, limit=plan.limit, seed=plan.seed)
        keep(found)
    return found


@dataclass(frozen=True, slots=True)
class _Run:
    """The measurements on servers of a database that has been built."""

    folder: Path
    url: str
    plan: BenchmarkPlan
    progress: Progress

    def _serving(self, workers: int = 1) -> AbstractContextManager[Server]:
        return serving(self.folder, workers=workers, log=self.folder / "bench-server.log")

    def _queries(self, size: int, seed: int) -> Queries:
        return Queries(load_corpus(self.folder, self.plan.seed), size, seed=seed)

    async def measure_size(self, size: int) -> SizeResult:
        """One server process for sequential requests, then the plan's number of workers for concurrent ones."""
        label, plan, queries = size_label(size), self.plan, self._queries(size, seed=1)
        eligible = count_eligible(self.url, large_name(size), FILTERS)
        with self._serving() as server:
            warm_up(server.port, size, queries)
            with self.progress(f"{label}: searches", plan.queries * len(CASES)) as advance:
                timings = measure_latency(server.port, size, queries, plan.queries, eligible, advance)
            recall = await measure_recall(server.port, self.url, size, queries, RECALL_QUERIES)
            with self.progress(f"{label}: concurrent searches, 1 process", None):
                throughput = measure_throughput(server.port, size, queries, workers=1, seconds=plan.seconds)
            resident = server.resident_bytes()
            with self.progress(f"{label}: searches after writes", None):
                after_write = measure_after_write(
                    server.port, load_corpus(self.folder, plan.seed), size, queries, plan.queries
                )
        if plan.workers > 1:
            shown = self.progress(f"{label}: concurrent searches, {plan.workers} processes", None)
            with self._serving(plan.workers) as server, shown:
                throughput += measure_throughput(server.port, size, queries, plan.workers, plan.seconds)
        return SizeResult(
            size=size,
            timings=timings,
            throughput=throughput,
            recall=recall,
            resident_bytes=resident,
            after_write=after_write,
        )

    async def measure_peers(self, size: int, installed: Sequence[str]) -> tuple[PeersResult, dict[str, str]]:
        """Trivet and the peers in turn, on a separate server so that peers' data do not disturb other measurements."""
        queries, count = self._queries(size, seed=4), min(self.plan.queries, PEER_QUERIES)
        with self._serving() as server:
            warm_up(server.port, size, queries)
            with self.progress(f"{size_label(size)}: peers", None) as advance:
                return await measure_peers(server.port, self.url, size, installed, queries, count, advance)

    async def measure_rest(self, found: Benchmark) -> None:
        """Measurements that do not depend on a namespace's size: small namespaces, and ingest."""
        plan, corpus = self.plan, load_corpus(self.folder, self.plan.seed)
        before = count_deadlocks(self.url)
        with self._serving() as server:
            warm_up(server.port, plan.sizes[0], self._queries(plan.sizes[0], seed=2))
            if plan.small:
                with self.progress("small namespaces", 2 * plan.small) as advance:
                    found.small_namespaces = measure_small(server.port, corpus, plan.small, seed=3, progress=advance)
            if plan.ingest:
                with self.progress("ingest", None):
                    found.ingest = await measure_ingest(server.port, corpus, plan.ingest)
        if found.ingest is not None:  # surely counted once the server has closed its connections
            found.ingest = replace(found.ingest, deadlocks=count_deadlocks(self.url) - before)

    def measure_mixed(self, size: int) -> MixedLoad:
        """All kinds of requests at once, on a separate server."""
        plan, corpus = self.plan, load_corpus(self.folder, self.plan.seed)
        with self._serving(plan.workers) as server:
            warm_up(server.port, size, self._queries(size, seed=6))
            with self.progress(f"{size_label(size)}: mixed requests", None):
                return measure_mixed(server, corpus, size, plan.workers, plan.mixed)
