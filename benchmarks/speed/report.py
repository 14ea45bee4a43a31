"""The figures of a run as tables and as charts; `page` puts them in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.speed.figures import Benchmark, MixedLoad, PeersResult, Quality, SizeResult, Spread, Storage
from benchmarks.speed.plan import SMALL_MEMORIES, size_label
from benchmarks.speed.searches import ADAPTIVE, ADAPTIVE_CACHED, CASES
from benchmarks.speed.targets import MIB, targets
from retrieval.reporting.table import Table

OWN = "Trivet over HTTP, adaptive, three legs"
"""Trivet's row among the peers."""

_VERDICTS = {True: "met", False: "**not met**", None: "–"}


def method(found: Benchmark) -> str:
    """How it was measured."""
    return (
        f"{found.queries} searches of each kind over HTTP, top 10, one after another, in turns; milliseconds from the "
        f"first byte sent to the last received. Around the large namespaces lie {found.small:,} of "
        f"{SMALL_MEMORIES} memories in the same tables."
    )


def target_table(found: Benchmark) -> Table:
    """Trivet's targets, and the measured figures."""
    rows = [[each.what, each.asked, each.measured, _VERDICTS[each.met]] for each in targets(found)]
    return Table(title="Asked and measured", headings=["what", "asked", "measured", ""], rows=rows)


def size_table(sizes: Sequence[SizeResult]) -> Table:
    """A row per size of namespace."""
    rows = []
    for size in sizes:
        cells = [_ms(timing.whole) if (timing := size.timing(case)) else "–" for case in (ADAPTIVE, ADAPTIVE_CACHED)]
        resident = f"{max(size.resident_bytes) / MIB:.0f}"
        rows.append([size_label(size.size), *cells, f"{size.recall.mean:.3f}", resident])
    headings = ["memories", "p50 / p95 / p99", "embedding cached", "recall@10 of the vector leg", "server MiB"]
    return Table(title="By size of the namespace", headings=headings, rows=rows)


def case_table(size: SizeResult) -> Table:
    """A row per kind of search at one size."""
    rows = []
    for case in CASES:
        timing = size.timing(case.name)
        if timing is not None:
            full = f"{timing.full}/{timing.whole.n}"
            rows.append([case.name, timing.embedding, *_percentiles(timing.whole), full, f"{timing.eligible:,}"])
    headings = ["search", "embedding", "p50", "p95", "p99", "full answers", "eligible"]
    return Table(title=f"{size_label(size.size)}: kinds of search", headings=headings, rows=rows)


def stage_table(size: SizeResult) -> Table:
    """A row per stage of the adaptive search at one size."""
    timing = size.timing(ADAPTIVE)
    stages = timing.stages if timing else {}
    rows = [[name, *_percentiles(each, digits=2)] for name, each in stages.items()]
    title = f"{size_label(size.size)}: stages of the adaptive search, which partly run side by side"
    return Table(title=title, headings=["stage", "p50", "p95", "p99"], rows=rows)


def after_write_table(size: SizeResult) -> Table:
    """A row per kind of question at one size."""
    rows = [[each.embedding, _ms(each.before), _ms(each.after), f"{each.more:.1f}"] for each in size.after_write]
    headings = ["embedding", "right before a write", "right after it", "more at p50"]
    return Table(title=f"{size_label(size.size)}: adaptive searches around a write", headings=headings, rows=rows)


def throughput_table(size: SizeResult) -> Table:
    """A row per number of clients at one size."""
    rows = []
    for each in size.throughput:
        latency = _percentiles(each.latency) if each.latency else []
        about = [str(each.concurrency), str(each.workers), f"{each.per_second:.0f}"]
        rows.append([*about, *latency, str(each.failed)])
    headings = ["clients", "server processes", "searches/s", "p50", "p95", "p99", "failures"]
    return Table(title=f"{size_label(size.size)}: clients at a time, embeddings cached", headings=headings, rows=rows)


def mixed_table(mixed: MixedLoad) -> Table:
    """A row per kind of request of a mixed load."""
    rows = []
    for each in mixed.kinds:
        latency = _percentiles(each.latency) if each.latency else ["–"] * 3
        rows.append([each.kind, f"{each.per_second:.1f}", *latency, str(each.failed)])
    rows.append(["all", f"{mixed.per_second:.1f}", *["–"] * 3, str(mixed.failures)])
    before, after = (sum(each) / MIB for each in (mixed.resident_before, mixed.resident_after))
    title = (
        f"{size_label(mixed.size)}: {mixed.clients} clients with all kinds of requests for {mixed.seconds:.0f} s, "
        f"server processes: {mixed.workers}, their resident memory: {before:.0f} MiB before, {after:.0f} MiB after"
    )
    return Table(title=title, headings=["request", "a second", "p50", "p95", "p99", "failures"], rows=rows)


def peer_table(beside: PeersResult) -> Table:
    """Trivet and its peers on the same queries."""
    own = beside.trivet
    rows = [[OWN, "", _ms(own), "1.0", ""]]
    for each in beside.peers:
        times = f"{each.whole.p50 / own.p50:.1f}"
        rows.append([each.peer, _ms(each.search), _ms(each.whole), times, f"{each.build_s:.0f}"])
    title = f"{size_label(beside.size)}: peers on the same queries, embedding {_ms(beside.embedding)} ms"
    headings = ["system", "search p50 / p95 / p99", "with the embedding", "times Trivet's p50", "index built in s"]
    return Table(title=title, headings=headings, rows=rows)


def quality_table(quality: Sequence[Quality]) -> Table:
    """A row per system, a column per evaluation folder."""
    datasets = list(dict.fromkeys(each.dataset for each in quality))
    sizes = {each.dataset: each.queries for each in quality}
    cells = {(each.system, each.dataset): f"{each.ndcg:.3f} / {each.recall:.3f}" for each in quality}
    systems = dict.fromkeys(each.system for each in quality)
    rows = [[system, *(cells.get((system, dataset), "–") for dataset in datasets)] for system in systems]
    headings = ["system", *(f"{dataset} ({sizes[dataset]})" for dataset in datasets)]
    return Table(title="nDCG@10 / recall@10, the same embeddings for all", headings=headings, rows=rows)


def storage_table(storage: Storage) -> Table:
    """A row per table of the database."""
    rows = []
    for table in sorted(storage.tables, key=lambda each: -each.total):
        per_memory = table.total / max(storage.memories, 1)
        if per_memory >= 0.5:
            indexes = ", ".join(f"{name} {size / storage.memories:.0f}" for name, size in table.indexes.items())
            rows.append([table.table, f"{per_memory:.0f}", indexes])
    total = sum(table.total for table in storage.tables) / max(storage.memories, 1)
    rows.append(["all", f"{total:.0f}", ""])
    title = f"Bytes per memory, {storage.memories:,} memories in all namespaces"
    return Table(title=title, headings=["table", "bytes", "of which indexes"], rows=rows)


def rest_table(found: Benchmark) -> Table:
    """Writing, small namespaces and failures."""
    rows = [[f"built {name}, memories a second", f"{rate:.0f}"] for name, rate in found.build_rates.items()]
    if found.index_s is not None:
        rows.append(["built the HNSW index, seconds", f"{found.index_s:.0f}"])
    if found.ingest:
        each = found.ingest
        rows.append([f"ingest over HTTP, {each.writers} writers, memories a second", f"{each.per_second:.0f}"])
        rows.append(["the embedder alone on the same texts, a second", f"{each.embedder_per_second:.0f}"])
        rows.append(["writes that failed", str(sum(each.failures.values()))])
    if found.small_namespaces:
        small = found.small_namespaces
        rows.append([f"first search in each of {small.namespaces:,} small namespaces", _ms(small.first)])
        rows.append(["second search in each", _ms(small.second)])
    rows.append(["searches one by one of which a part failed", str(_degraded(found))])
    return Table(title="Writing, small namespaces, failures", headings=["what", "measured"], rows=rows)


def _degraded(found: Benchmark) -> int:
    small = found.small_namespaces.degraded if found.small_namespaces else 0
    timed = sum(timing.degraded for size in found.sizes for timing in size.timings)
    timed += sum(each.degraded for size in found.sizes for each in size.after_write)
    return timed + small + sum(beside.degraded for beside in found.peers)


def peer_notes(found: Benchmark) -> list[str]:
    """How peers were set up, and why some are missing."""
    return [f"{name}: {note}." for name, note in (found.peer_notes | found.absent_peers).items()]


def _percentiles(spread: Spread, digits: int = 1) -> list[str]:
    return [f"{value:.{digits}f}" for value in (spread.p50, spread.p95, spread.p99)]


def _ms(spread: Spread) -> str:
    return " / ".join(_percentiles(spread))


def charts(found: Benchmark) -> dict[str, str]:
    """The charts of what was measured, as SVG, by name. The drawing library need not be installed."""
    drawn: dict[str, str] = {}
    if len(found.sizes) > 1:
        drawn["latency"] = _latency(found.sizes)
    drawn |= {f"stages-{size_label(size.size)}": _stages(size) for size in found.sizes}
    if found.sizes:
        drawn["throughput"] = _throughput(found.sizes)
    drawn |= {f"peers-{size_label(beside.size)}": _peers(beside) for beside in found.peers}
    return drawn


def write_plots(out: Path, drawn: Mapping[str, str]) -> list[str]:
    """Write each chart to a file for light and dark pages; returns the files' names."""
    from retrieval.reporting.svg import standalone

    for name, svg in drawn.items():
        (out / f"{name}.svg").write_text(standalone(svg), encoding="utf-8")
    return [f"{name}.svg" for name in drawn]


def _latency(sizes: Sequence[SizeResult]) -> str:
    """A line per kind of embedding: p50 by size, with the range up to p95."""
    from retrieval.reporting.charts import Series, line_chart

    series = []
    for case in (ADAPTIVE, ADAPTIVE_CACHED):
        timed = {size.size: timing.whole for size in sizes if (timing := size.timing(case))}
        p50, p95 = [each.p50 for each in timed.values()], [each.p95 for each in timed.values()]
        series.append(Series(name=case, at=list(timed), values=p50, low=p50, high=p95))
    return line_chart(
        series,
        "milliseconds of a search over HTTP: p50, shaded up to p95",
        "memories in the namespace",
        "Latency by size of the namespace",
        ticks={size.size: size_label(size.size) for size in sizes},
    )


def _stages(size: SizeResult) -> str:
    """A bar per stage: p50, with a line up to p95."""
    from retrieval.reporting.charts import bar_chart

    timing, label = size.timing(ADAPTIVE), size_label(size.size)
    stages = timing.stages if timing else {}
    return bar_chart(
        {name: each.p50 for name, each in stages.items()},
        f"{label} memories, milliseconds of each stage: p50, line up to p95",
        f"Stages of a search, {label} memories",
        upper=[each.p95 for each in stages.values()],
    )


def _throughput(sizes: Sequence[SizeResult]) -> str:
    """A line per size and number of server processes: searches per second by number of clients."""
    from retrieval.reporting.charts import Series, line_chart

    series = []
    for size in sizes:
        for workers in dict.fromkeys(each.workers for each in size.throughput):
            own = {each.concurrency: each.per_second for each in size.throughput if each.workers == workers}
            name = f"{size_label(size.size)}, {workers} server process" + ("es" if workers > 1 else "")
            series.append(Series(name=name, at=list(own), values=list(own.values())))
    clients = sorted({each.concurrency for size in sizes for each in size.throughput})
    below = "clients at a time, embeddings cached"
    ticks = {each: str(each) for each in clients}
    return line_chart(series, "searches a second", below, "Throughput by clients", ticks=ticks)


def _peers(beside: PeersResult) -> str:
    """A bar per system: p50 of the whole query on a logarithmic axis."""
    from retrieval.reporting.charts import bar_chart

    label = size_label(beside.size)
    return bar_chart(
        {"Trivet over HTTP": beside.trivet.p50} | {each.peer: each.whole.p50 for each in beside.peers},
        f"{label} memories, milliseconds of a hybrid search with the embedding: p50",
        f"Peers, {label} memories",
    )
