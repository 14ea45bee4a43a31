"""A whole benchmark: build, then size by size a fresh server with everything that is measured on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from retrieval.benchmarking.build import Record, bench_settings, build
from retrieval.benchmarking.cases import CASES
from retrieval.benchmarking.figures import Benchmark, IngestRate, PeersResult, SizeResult
from retrieval.benchmarking.latency import count_eligible, measure_latency, warm_up
from retrieval.benchmarking.machine import describe_machine
from retrieval.benchmarking.peers import is_installed
from retrieval.benchmarking.plan import Plan, size_label
from retrieval.benchmarking.prepared import load_corpus
from retrieval.benchmarking.quality import measure_quality
from retrieval.benchmarking.queries import Queries
from retrieval.benchmarking.recall import measure_recall
from retrieval.benchmarking.served import Server, serving
from retrieval.benchmarking.small import measure_small
from retrieval.benchmarking.storage import measure_storage
from retrieval.benchmarking.throughput import measure_throughput
from retrieval.benchmarking.versus import measure_peers
from retrieval.benchmarking.watching import Progress
from retrieval.benchmarking.writing import count_deadlocks, measure_ingest
from retrieval.evaluation.folder import EvaluationFolder
from retrieval.store.embedded import running

RECALL_QUERIES = 100
PEER_QUERIES = 150
"""Most queries beside peers, some of which take half a second for each."""

Keep = Callable[[Benchmark], None]
"""Called with what is known so far, after each part."""


async def run(
    folder: Path, plan: Plan, folders: Sequence[EvaluationFolder], progress: Progress, keep: Keep
) -> Benchmark:
    """Build what is missing and measure it.

    Args:
        folder: of the embedded database and the record of what it holds.
        plan: what to measure.
        folders: on which quality is judged.
        progress: shows what is under way.
        keep: given the figures after each part, so that nothing is lost with an interrupted run.

    Raises:
        TrivetError: something failed; a search that fails is never left out of the figures.
    """
    settings = bench_settings(folder)
    installed = [name for name in plan.peers if is_installed(name)]
    async with running(folder) as url:
        record = await build(settings, url, plan, progress)
        found = _begin(url, plan, record)
        found.storage = measure_storage(url, packed_from=settings.bm25_tail_docs)
        keep(found)
        for size in plan.sizes:
            found.sizes.append(await _measure_size(folder, url, size, plan, progress))
            keep(found)
            if installed and size in plan.peers_at:
                found.peers.append(await _measure_peers(folder, url, size, plan, installed, found, progress))
                keep(found)
        deadlocks = count_deadlocks(url)
        with serving(folder, workers=1, log=folder / "bench-server.log") as server:
            ingest = await _measure_rest(folder, server, plan, found, progress)
        if ingest is not None:
            found.ingest = replace(ingest, deadlocks=count_deadlocks(url) - deadlocks)
        keep(found)
    for judged in folders:
        with progress(f"quality on {judged.name}", None):
            found.quality += await measure_quality(settings, judged, installed, limit=plan.limit, seed=plan.seed)
        keep(found)
    return found


def _begin(url: str, plan: Plan, record: Record) -> Benchmark:
    return Benchmark(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        seed=plan.seed,
        machine=describe_machine(url),
        queries=plan.queries,
        small=record.filled.get("small", 0),
        build_rates=record.rates,
        index_s=record.index_s,
        absent_peers={name: "not installed" for name in plan.peers if not is_installed(name)},
    )


async def _measure_size(folder: Path, url: str, size: int, plan: Plan, progress: Progress) -> SizeResult:
    """One server process for what is asked one by one, then as many as the plan says for what is asked at once."""
    label = size_label(size)
    log = folder / "bench-server.log"
    queries = Queries(load_corpus(folder, plan.seed), size, seed=1)
    eligible = count_eligible(url, size)
    with serving(folder, workers=1, log=log) as server:
        warm_up(server.port, size, queries)
        with progress(f"{label}: searches", plan.queries * len(CASES)) as advance:
            timings = measure_latency(server.port, size, queries, plan.queries, eligible, advance)
        recall = await measure_recall(server.port, url, size, queries, RECALL_QUERIES)
        throughput = []
        with progress(f"{label}: concurrent searches, 1 process", None):
            throughput += measure_throughput(server.port, size, queries, workers=1, seconds=plan.seconds)
        resident = server.resident_bytes()
    if plan.workers > 1:
        with (
            serving(folder, workers=plan.workers, log=log) as server,
            progress(f"{label}: concurrent searches, {plan.workers} processes", None),
        ):
            throughput += measure_throughput(server.port, size, queries, workers=plan.workers, seconds=plan.seconds)
    return SizeResult(size=size, timings=timings, throughput=throughput, recall=recall, resident_bytes=resident)


async def _measure_peers(
    folder: Path, url: str, size: int, plan: Plan, installed: Sequence[str], found: Benchmark, progress: Progress
) -> PeersResult:
    """Trivet and the peers in turn, on a server of its own so that no peer's data are in the others' way."""
    queries = Queries(load_corpus(folder, plan.seed), size, seed=4)
    count = min(plan.queries, PEER_QUERIES)
    with serving(folder, workers=1, log=folder / "bench-server.log") as server:
        warm_up(server.port, size, queries)
        with progress(f"{size_label(size)}: peers", None) as advance:
            result, notes = await measure_peers(server.port, url, size, installed, queries, count, advance)
    found.peer_notes |= notes
    return result


async def _measure_rest(
    folder: Path, server: Server, plan: Plan, found: Benchmark, progress: Progress
) -> IngestRate | None:
    """What does not depend on the size of a namespace: small ones around it, and ingest beside it."""
    corpus = load_corpus(folder, plan.seed)
    warm_up(server.port, plan.sizes[0], Queries(corpus, plan.sizes[0], seed=2))
    if plan.small:
        with progress("small namespaces", 2 * plan.small) as advance:
            found.small_namespaces = measure_small(server.port, corpus, plan.small, seed=3, progress=advance)
    if not plan.ingested:
        return None
    with progress("ingest", None):
        return await measure_ingest(server.port, corpus, plan.ingested)
