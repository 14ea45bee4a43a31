"""`trivet bench` on a namespace small enough for exact expectations."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from benchmarks.speed.figures import Benchmark
from benchmarks.speed.mixed import SHARES
from benchmarks.speed.peers import PEERS, is_installed
from benchmarks.speed.searches import CASES
from tests.command import trivet
from tests.folders import evaluation_folder

pytestmark = pytest.mark.filterwarnings("default")  # peers' libraries warn of many things

CORPUS = [
    ("kettle", "The copper kettle from Lisbon hangs above the stove."),
    ("stairs", "I repainted the stairs in dark green on Sunday."),
    ("piano", "Our piano tuner is called Teodor Lind."),
    ("garden", "Slugs ate all of the lettuce in the garden."),
]
QUERIES = [("q1", "Where is the copper kettle from?", ["kettle"]), ("q2", "Who tunes the piano?", ["piano"])]


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """An evaluation folder."""
    corpus = [{"id": memory_id, "namespace": "home", "text": text} for memory_id, text in CORPUS]
    queries = [
        {"id": query_id, "namespace": "home", "text": text, "type": "fact", "relevant": relevant}
        for query_id, text, relevant in QUERIES
    ]
    return evaluation_folder(tmp_path / "household", corpus, queries)


@pytest.mark.usefixtures("few_are_embedded")
def test_a_whole_run(data_dir: Path, judged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for queries in ("WARM_UP", "DISTINCT"):
        monkeypatch.setattr(f"benchmarks.speed.searches.{queries}", 5)
    out = tmp_path / "out"
    done = trivet(
        *("embedded", "bench", "--sizes", "200", "--small", "2", "--queries", "20", "--seconds", "0.1"),
        *("--ingest", "120", "--mixed", "0.1", "--workers", "2", "--peers", "all", "--peers-at", "200"),
        *("--quality", judged, "--data-dir", data_dir, "--out", out),
    )
    assert "recall@10 of the vector leg: not measured" in done.stdout  # at 100k
    found = msgspec.json.decode((out / "benchmark.json").read_bytes(), type=Benchmark)

    (size,) = found.sizes
    assert [timing.case for timing in size.timings] == [case.name for case in CASES]
    for timing in size.timings:
        assert timing.whole.n == 20
        if timing.mode in ("adaptive", "vector"):  # words and names may be shared by fewer than ten
            assert timing.full == 20, timing.case
        assert 0 < timing.stages["total"].p50 < timing.whole.p50
    eligible = {timing.case: timing.eligible for timing in size.timings}
    assert eligible["adaptive"] == 200
    assert 60 < eligible["adaptive, tag 50.0%"] < 140
    assert size.recall.mean > 0.99  # few enough to scan; a query with a time also searches its memories
    assert [(each.concurrency, each.workers) for each in size.throughput] == [
        (clients, workers) for workers in (1, 2) for clients in (1, 4, 16, 64)
    ]
    assert size.throughput[0].per_second > 0
    assert 50 << 20 < size.resident_bytes[0] < 1 << 30
    assert [(each.embedding, each.before.n, each.after.n, each.degraded) for each in size.after_write] == [
        ("computed", 20, 20, 0),
        ("cached", 20, 20, 0),
    ]

    assert found.ingest is not None
    assert found.ingest.memories == 120
    assert found.ingest.deadlocks == 0
    assert found.ingest.failures == {}
    assert found.mixed is not None
    assert (found.mixed.size, found.mixed.clients, found.mixed.workers) == (200, 64, 2)
    kinds = [each.kind for each in found.mixed.kinds]
    assert kinds == [kind for kind in SHARES if kind in kinds]
    assert {"search", "add"} <= {*kinds}
    assert found.mixed.failures == 0
    assert all(each.latency is not None and each.per_second > 0 for each in found.mixed.kinds)
    assert len(found.mixed.resident_before) == len(found.mixed.resident_after) == 2
    assert found.small_namespaces is not None
    assert found.small_namespaces.namespaces == found.small_namespaces.first.n == 2
    assert found.storage is not None
    assert found.storage.memories == 300

    installed = [name for name in PEERS if is_installed(name)]
    assert set(found.absent_peers) == set(PEERS) - set(installed)
    (beside,) = found.peers
    names = [each.peer for each in beside.peers]
    assert {"pgvector + ts_rank_cd, any word", "pgvector + ts_rank_cd, all words"} <= set(names)
    assert all(each.whole.p50 > each.search.p50 for each in beside.peers)
    scores = {each.system: (each.ndcg, each.recall) for each in found.quality}
    assert list(scores) == ["Trivet, adaptive", *names]
    assert set(scores.values()) == {(1.0, 1.0)}

    page = (out / "benchmark.md").read_text(encoding="utf-8")
    assert "household (2)" in page
    assert "household (2)" in (out / "benchmark.html").read_text(encoding="utf-8")
    assert (out / "peers-200.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--sizes", "10q"), "'10q' is no size"),
        (("--peers", "oracle"), "'oracle' is no peer: use pgvector, lancedb, txtai"),
    ],
)
def test_what_cannot_be_measured_is_refused(arguments: tuple[str, ...], complaint: str) -> None:
    assert complaint in trivet("embedded", "bench", *arguments, status=2).stderr
