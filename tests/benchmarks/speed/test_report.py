"""Targets and reports for known figures."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.speed.figures import (
    AfterWrite,
    Benchmark,
    IngestRate,
    LegRecall,
    Machine,
    MixedKind,
    MixedLoad,
    PeersResult,
    PeerTiming,
    Quality,
    SizeResult,
    SmallNamespaces,
    Spread,
    Storage,
    TableBytes,
    Throughput,
    Timing,
    spread,
)
from benchmarks.speed.page import as_html, as_markdown, tables
from benchmarks.speed.report import charts, write_plots
from benchmarks.speed.searches import ADAPTIVE, ADAPTIVE_CACHED, CASES
from benchmarks.speed.targets import targets

MIB = 1024 * 1024


def around(p50: float) -> Spread:
    return Spread(n=100, p50=p50, p95=1.5 * p50, p99=2 * p50, mean=p50)


def at_size(size: int, scale: float) -> SizeResult:
    milliseconds = {ADAPTIVE: 4.0, ADAPTIVE_CACHED: 3.0, "vector": 2.5, "bm25": 2.2, "graph": 2.4}
    timings = [
        Timing(
            case=case.name,
            mode=case.mode.value,
            embedding=case.embedding,
            filter=case.filter,
            whole=around(scale * milliseconds.get(case.name, 5.0)),
            stages={"embed": around(1.5), "total": around(scale * 3.8)},
            full=100,
            degraded=0,
            eligible=size,
        )
        for case in CASES
    ]
    load = [
        Throughput(concurrency=clients, workers=1, per_second=320.0, latency=around(20.0), failures={})
        for clients in (4, 16, 64)
    ]
    recall = LegRecall(queries=100, mean=0.99, worst=0.9)
    after_write = [AfterWrite(embedding="computed", before=around(4.0), after=around(5.0), degraded=0)]
    return SizeResult(
        size=size,
        timings=timings,
        throughput=load,
        recall=recall,
        resident_bytes=[300 * MIB],
        after_write=after_write,
    )


def mixed(failures: dict[str, int]) -> MixedLoad:
    return MixedLoad(
        size=100_000,
        clients=64,
        workers=1,
        seconds=60.0,
        kinds=[
            MixedKind(kind="search", per_second=150.0, latency=around(200.0), failures={}),
            MixedKind(kind="add", per_second=120.0, latency=None, failures=failures),
        ],
        resident_before=[300 * MIB],
        resident_after=[310 * MIB],
    )


@pytest.fixture
def found() -> Benchmark:
    """A run that meets all targets."""
    tables = [
        TableBytes(table="memory", heap=100_000_000, toast=0, indexes={"memory_embedding": 90_000_000}),
        TableBytes(table="bm25_posting", heap=30_000_000, toast=0, indexes={}),
    ]
    peers = [
        PeerTiming(peer="pgvector + ts_rank_cd, any word", search=around(200), whole=around(201.5), build_s=9.0),
        PeerTiming(peer="LanceDB hybrid", search=around(8.5), whole=around(10), build_s=9.0),
        PeerTiming(peer="LanceDB hybrid, IVF_HNSW_SQ", search=around(6.5), whole=around(8), build_s=9.0),
    ]
    return Benchmark(
        date="2026-01-01",
        seed=7,
        machine=Machine(cores=2, memory_bytes=2**33, processor="p", system="s", versions={"trivet": "1"}),
        queries=100,
        small=2_000,
        build_rates={"bench-100k": 500.0},
        index_s=60.0,
        sizes=[at_size(10_000, 0.8), at_size(100_000, 1.0), at_size(1_000_000, 1.7)],
        storage=Storage(memories=110_000, packed=100_000, tables=tables, posting_bytes=30_000_000),
        ingest=IngestRate(
            writers=8, batch=50, memories=6_000, per_second=70, embedder_per_second=100, deadlocks=0, failures={}
        ),
        small_namespaces=SmallNamespaces(namespaces=2_000, first=around(4.5), second=around(4.0), degraded=1),
        mixed=mixed(failures={}),
        peers=[PeersResult(size=100_000, trivet=around(4.2), degraded=1, embedding=around(1.5), peers=peers)],
        absent_peers={"txtai": "not installed"},
        peer_notes={"LanceDB hybrid": "exact"},
        quality=[Quality(dataset="locomo", system="Trivet, adaptive", queries=40, ndcg=0.5, recall=0.7)],
    )


def test_all_targets_are_met(found: Benchmark) -> None:
    assert [each.what for each in targets(found) if not each.met] == []


def test_what_was_not_measured_is_neither_met_nor_missed(found: Benchmark) -> None:
    found.sizes, found.peers, found.ingest, found.small_namespaces, found.storage = [], [], None, None, None
    found.mixed = None
    assert {(each.measured, each.met) for each in targets(found)} == {("not measured", None)}


def test_fewer_small_namespaces_than_asked_for_prove_nothing(found: Benchmark) -> None:
    found.small_namespaces = SmallNamespaces(namespaces=1_999, first=around(1.0), second=around(1.0), degraded=0)
    (target,) = (each for each in targets(found) if "namespaces of" in each.what)
    assert target.met is None


def test_postings_that_nobody_packed_prove_nothing(found: Benchmark) -> None:
    found.storage = Storage(memories=110_000, packed=100_000, tables=[], posting_bytes=0)
    (target,) = (each for each in targets(found) if "packed postings" in each.what)
    assert target.met is None


@pytest.mark.parametrize(
    ("scale", "missed"),
    [
        (1.3, {"embedding computed, p50", "embedding cached, p50", "hand-written", "LanceDB"}),
        (4.5, {"embedding computed, p95", "filter of 0.5 %, p95"}),
    ],
)
def test_slower_searches_miss_their_targets(found: Benchmark, scale: float, missed: set[str]) -> None:
    found.sizes[1] = at_size(100_000, scale)
    found.peers[0] = PeersResult(
        size=100_000, trivet=around(4.2 * scale), degraded=0, embedding=around(1.5), peers=found.peers[0].peers
    )
    failed = [each.what for each in targets(found) if each.met is False]
    assert all(any(name in what for what in failed) for name in missed)


def test_failures_and_deadlocks_miss_their_targets(found: Benchmark) -> None:
    result = found.sizes[1]
    many = Throughput(concurrency=64, workers=1, per_second=9.0, latency=None, failures={"503": 2})
    result.throughput[-1] = many
    found.mixed = mixed(failures={"503": 3})
    assert found.ingest is not None
    found.ingest = IngestRate(
        writers=8, batch=50, memories=6_000, per_second=50, embedder_per_second=100, deadlocks=1, failures={}
    )
    failed = {each.what: each.measured for each in targets(found) if each.met is False}
    assert failed == {
        "100k, 64 clients, failures": "2",
        "100k, 64 clients, all kinds of requests, failures": "3",
        "ingest over the embedder's own rate": "0.50",
        "ingest by 8 writers, deadlocks": "1",
    }


def test_the_report_says_what_was_asked_and_found(found: Benchmark) -> None:
    page = as_markdown(found, ["latency.svg"])
    assert "| 100k, embedding computed, p50 | ≤ 5.0 ms | 4.0 ms | met |" in page
    assert "| pgvector + ts_rank_cd, any word | 200.0 / 300.0 / 400.0 | 201.5 / 302.2 / 403.0 | 48.0 | 9 |" in page
    assert "| searches one by one of which a part failed | 2 |" in page
    assert "| search | 150.0 | 200.0 | 300.0 | 400.0 | 0 |" in page
    assert "| all | 270.0 | – | – | – | 0 |" in page
    assert "their resident memory: 300 MiB before, 310 MiB after" in page
    assert "- txtai: not installed." in page
    assert "![latency](latency.svg)" in page
    for table in page.split("\n\n"):
        rows = [line.count("|") for line in table.splitlines() if line.startswith("|")]
        assert len(set(rows)) <= 1


def test_the_page_shows_every_table_and_chart_and_loads_nothing(found: Benchmark) -> None:
    drawn = charts(found)
    page = as_html(found, drawn)
    for table in tables(found):
        assert f"<h3>{table.title}</h3>" in page
    assert page.count("<svg") == len(drawn)
    assert page.count("<li class=worse>") == 0
    assert "<li>100k, embedding computed, p50: 4.0 ms (asked: ≤ 5.0 ms)</li>" in page
    assert "<tr class=judged><td>Trivet over HTTP, adaptive, three legs</td>" in page
    assert "<td>pgvector + ts_rank_cd, any word</td><td>200.0 / 300.0 / 400.0</td>" in page
    assert "txtai: not installed." in page
    assert "<dt>processor</dt><dd>p, 2 cores shared by the server, PostgreSQL and the client</dd>" in page
    for anchor in ("targets", "sizes", "size-10k", "size-100k", "size-1m", "peers", "quality", "storage", "rest"):
        assert f'<a href="#{anchor}">' in page
        assert f'<section id="{anchor}">' in page
    assert not re.search(r"<(script|link|img|iframe)|@import|url\((?!#)|(src|href)=\"(?!#)", page)


def test_the_page_marks_what_is_missed_and_leaves_out_what_was_not_measured(found: Benchmark) -> None:
    found.sizes, found.peers, found.absent_peers = [at_size(100_000, 1.3)], [], {}
    found.quality, found.storage = [], None
    page = as_html(found, {})
    assert "<li class=worse>100k, embedding computed, p50: 5.2 ms (asked: ≤ 5.0 ms)</li>" in page
    assert "<svg" not in page
    for anchor in ("peers", "quality", "storage", "size-1m"):
        assert f'id="{anchor}"' not in page
    assert "<td>not measured</td>" in page


def test_plots_stand_alone(found: Benchmark, tmp_path: Path) -> None:
    names = write_plots(tmp_path, charts(found))
    assert names == [
        "latency.svg",
        "stages-10k.svg",
        "stages-100k.svg",
        "stages-1m.svg",
        "throughput.svg",
        "peers-100k.svg",
    ]
    for name in names:
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert ElementTree.parse(tmp_path / name).getroot().tag.endswith("svg")  # noqa: S314 - written just now
        assert "--series-1: #" in text
    first = (tmp_path / "latency.svg").read_bytes()
    write_plots(tmp_path, charts(found))
    assert (tmp_path / "latency.svg").read_bytes() == first


def test_percentiles() -> None:
    found = spread([float(value) for value in range(1, 102)])
    assert (found.n, found.p50, found.p95, found.p99, found.mean) == (101, 51.0, 96.0, 100.0, 51.0)
