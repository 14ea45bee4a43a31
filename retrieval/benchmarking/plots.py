"""The figures of a run as SVG files of their own, for pages in light and dark."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from retrieval.benchmarking.cases import ADAPTIVE, ADAPTIVE_CACHED
from retrieval.benchmarking.figures import Benchmark, PeersResult, SizeResult
from retrieval.benchmarking.plan import size_label
from retrieval.evaluation.svg import INK, SERIES, drawing, render

_WIDTH = 8.0
_ROW = 0.36
"""Inches per row of a chart."""


def write_plots(out: Path, found: Benchmark) -> list[str]:
    """Write what there is something to show in; the files' names."""
    plots: dict[str, str] = {}
    if len(found.sizes) > 1:
        plots["latency.svg"] = _latency(found.sizes)
    for size in found.sizes:
        label = size_label(size.size)
        plots[f"stages-{label}.svg"] = _stages(size)
    if found.sizes:
        plots["throughput.svg"] = _throughput(found.sizes)
    for beside in found.peers:
        plots[f"peers-{size_label(beside.size)}.svg"] = _peers(beside)
    for name, svg in plots.items():
        (out / name).write_text(_alone(svg), encoding="utf-8")
    return list(plots)


def _latency(sizes: list[SizeResult]) -> str:
    """A line per kind of embedding: p50 by size, with the range up to p95."""
    with drawing(_WIDTH, 3.6) as (figure, (axes,)):
        for colour, mark, case in zip(SERIES, "os", (ADAPTIVE, ADAPTIVE_CACHED), strict=False):
            timed = [(size.size, timing.whole) for size in sizes if (timing := size.timing(case))]
            at, p50 = [size for size, _ in timed], [each.p50 for _, each in timed]
            axes.fill_between(at, p50, [each.p95 for _, each in timed], color=colour, alpha=0.15, linewidth=0)
            axes.plot(at, p50, f"{mark}-", color=colour, label=case, linewidth=2.0)
        axes.set_xscale("log")
        axes.set_xticks([size.size for size in sizes], [size_label(size.size) for size in sizes])
        axes.minorticks_off()
        axes.set_xlabel("memories in the namespace")
        axes.set_title("milliseconds of a search over HTTP: p50, shaded up to p95")
        axes.set_ylim(bottom=0.0)
        axes.legend(loc="upper left")
        return render(figure, "Latency by size of the namespace")


def _stages(size: SizeResult) -> str:
    """A bar per stage: p50, with a line up to p95."""
    timing = size.timing(ADAPTIVE)
    stages = timing.stages if timing else {}
    with drawing(_WIDTH, 0.8 + _ROW * len(stages)) as (figure, (axes,)):
        rows = range(len(stages))
        axes.barh(rows, [each.p50 for each in stages.values()], color=SERIES[0], height=0.6)
        axes.hlines(rows, [each.p50 for each in stages.values()], [each.p95 for each in stages.values()], color=INK)
        _name_rows(axes, list(stages))
        axes.set_title(f"{size_label(size.size)} memories, milliseconds of each stage: p50, line up to p95")
        return render(figure, f"Stages of a search, {size_label(size.size)} memories")


def _throughput(sizes: list[SizeResult]) -> str:
    """A line per size and number of server processes: searches a second by clients."""
    with drawing(_WIDTH, 3.6) as (figure, (axes,)):
        for at, size in enumerate(sizes):
            for workers in dict.fromkeys(each.workers for each in size.throughput):
                own = [each for each in size.throughput if each.workers == workers]
                processes = f"{workers} server process" + ("es" if workers > 1 else "")
                axes.plot(
                    [each.concurrency for each in own],
                    [each.per_second for each in own],
                    "o-" if workers == 1 else "s--",
                    color=SERIES[at % len(SERIES)],
                    label=f"{size_label(size.size)}, {processes}",
                )
        clients = sorted({each.concurrency for size in sizes for each in size.throughput})
        axes.set_xscale("log")
        axes.set_xticks(clients, [str(each) for each in clients])
        axes.minorticks_off()
        axes.set_xlabel("clients at a time, embeddings cached")
        axes.set_title("searches a second")
        axes.set_ylim(bottom=0.0)
        figure.legend(loc="outside lower center", ncols=3)
        return render(figure, "Throughput by clients")


def _peers(beside: PeersResult) -> str:
    """A bar per system: p50 of the whole query on a logarithmic axis."""
    bars = {"Trivet over HTTP": beside.trivet.p50} | {each.peer: each.whole.p50 for each in beside.peers}
    with drawing(_WIDTH, 0.8 + _ROW * len(bars)) as (figure, (axes,)):
        colours = [SERIES[0], *[SERIES[7]] * len(beside.peers)]
        drawn = axes.barh(range(len(bars)), list(bars.values()), color=colours, height=0.6)
        axes.bar_label(drawn, [f"{value:.1f}" for value in bars.values()], padding=4, color=INK)
        axes.set_xscale("log")
        axes.margins(x=0.1)
        _name_rows(axes, list(bars))
        title = f"{size_label(beside.size)} memories, milliseconds of a hybrid search with the embedding: p50"
        axes.set_title(title)
        return render(figure, f"Peers, {size_label(beside.size)} memories")


def _name_rows(axes: Any, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)


def _alone(svg: str) -> str:
    """The `svg` element with the colours that the style sheet of the reports would give it."""
    style = files("retrieval.evaluation").joinpath("page.css").read_text(encoding="utf-8").partition("\n* {")[0]
    end = svg.index(">") + 1
    return f"{svg[:end]}<style>{style}</style>{svg[end:]}\n"
