"""A run as Markdown, and as one self-contained HTML file in the page of all reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.speed.figures import Benchmark, SizeResult
from benchmarks.speed.plan import size_label
from benchmarks.speed.report import (
    OWN,
    after_write_table,
    case_table,
    method,
    mixed_table,
    peer_notes,
    peer_table,
    quality_table,
    rest_table,
    size_table,
    stage_table,
    storage_table,
    target_table,
    throughput_table,
)
from benchmarks.speed.targets import targets
from retrieval.reporting.page import PageSection, Part, render_page
from retrieval.reporting.table import Table, markdown


def as_markdown(found: Benchmark, plots: Sequence[str]) -> str:
    """The report; `plots` are files beside it."""
    facts = "; ".join(f"{name}: {told}" for name, told in _facts(found).items())
    parts = ["# Benchmark", f"{facts}. {method(found)}"]
    parts += [f"![{name.removesuffix('.svg')}]({name})" for name in plots]
    parts += [*map(markdown, tables(found)), "\n".join(f"- {line}" for line in peer_notes(found))]
    return "\n\n".join(filter(None, parts)) + "\n"


def as_html(found: Benchmark, drawn: Mapping[str, str]) -> str:
    """The report; `drawn` are the charts, of which any may be missing."""
    return render_page("Speed", [Part(text=method(found), soft=True)], _facts(found), list(_sections(found, drawn)))


def tables(found: Benchmark) -> list[Table]:
    """All tables, without those that were not measured."""
    return [table for section in _sections(found, {}) for part in section.parts for table in part.tables]


def _facts(found: Benchmark) -> dict[str, str]:
    machine = found.machine
    return {
        "date": found.date,
        "seed": str(found.seed),
        "processor": f"{machine.processor}, {machine.cores} cores shared by the server, PostgreSQL and the client",
        "memory": f"{machine.memory_bytes / 1024**3:.0f} GiB",
        "system": machine.system,
        "versions": ", ".join(f"{name} {version}" for name, version in machine.versions.items()),
    }


def _sections(found: Benchmark, drawn: Mapping[str, str]) -> Iterator[PageSection]:
    """The sections of what was measured, the targets first."""
    judged = [each for each in targets(found) if each.met is not None]
    verdicts = [(f"{each.what}: {each.measured} (asked: {each.asked})", not each.met) for each in judged]
    parts = [Part(verdicts=verdicts), Part(tables=[target_table(found)], fold="all targets, those not measured too")]
    yield PageSection(heading="Targets", parts=parts, anchor="targets")
    if found.sizes:
        parts = [*_chart(drawn, "latency"), Part(tables=[size_table(found.sizes)]), *_chart(drawn, "throughput")]
        yield PageSection(heading="Sizes", parts=parts, anchor="sizes")
    for size in found.sizes:
        yield _size(size, drawn)
    if found.mixed:
        yield PageSection(heading="Mixed requests", parts=[Part(tables=[mixed_table(found.mixed)])], anchor="mixed")
    if found.peers or found.absent_peers:
        parts = []
        for beside in found.peers:
            parts += [*_chart(drawn, f"peers-{size_label(beside.size)}"), Part(tables=[peer_table(beside)], judged=OWN)]
        yield PageSection(
            heading="Peers", parts=[*parts, *(Part(text=line, soft=True) for line in peer_notes(found))], anchor="peers"
        )
    if found.quality:
        yield PageSection(heading="Quality", parts=[Part(tables=[quality_table(found.quality)])], anchor="quality")
    if found.storage:
        yield PageSection(heading="Storage", parts=[Part(tables=[storage_table(found.storage)])], anchor="storage")
    yield PageSection(heading="Everything else", parts=[Part(tables=[rest_table(found)])], anchor="rest")


def _size(size: SizeResult, drawn: Mapping[str, str]) -> PageSection:
    label = size_label(size.size)
    parts = [
        Part(tables=[case_table(size)], judged="adaptive"),
        *_chart(drawn, f"stages-{label}"),
        Part(tables=[stage_table(size)], fold="stages in figures"),
        Part(tables=[throughput_table(size), after_write_table(size)]),
    ]
    return PageSection(heading=f"{label} memories", parts=parts, anchor=f"size-{label}")


def _chart(drawn: Mapping[str, str], name: str) -> Iterator[Part]:
    """A chart, if it was drawn; its title says what it shows."""
    if name in drawn:
        yield Part(svg=drawn[name])
