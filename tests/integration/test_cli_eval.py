"""`trivet eval` as a process, on a folder small enough to judge by eye."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from retrieval.evaluation.trec import read_qrels, read_run

ROOT = Path(__file__).parents[2]

CORPUS = [
    ("kettle", "home", "Ana: The copper kettle from Lisbon hangs above the stove.", "Ana", 1),
    ("stairs", "home", "Ben: I repainted the stairs in dark green on Sunday.", "Ben", 1),
    ("piano", "home", "Ana: Our piano tuner is called Teodor Lind.", "Ana", 2),
    ("piano2", "home", "Ana: Our piano tuner is called Teodor Lind.", "Ana", 2),
    ("garden", "home", "Ben: Slugs ate all of the lettuce in the garden.", "Ben", 2),
    ("ferry", "work", "Cleo: The ferry to the client leaves at 07:40.", "Cleo", 1),
    ("badge", "work", "Dov: My badge stopped opening the server room.", "Dov", 1),
]
QUERIES = [
    ("q1", "home", "Where is the copper kettle from?", "fact", ["kettle"]),
    ("q2", "home", "Who tunes the piano?", "fact", ["piano", "piano2"]),
    ("q3", "home", "What did the slugs eat in the garden?", "story", ["garden"]),
    ("q4", "work", "When does the ferry leave?", "fact", ["ferry"]),
    ("q5", "work", "What colour is the moon?", "fact", []),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An evaluation folder of two namespaces, with a duplicate and a question without evidence."""
    made = tmp_path / "toy"
    made.mkdir()
    rows = [
        {"id": id_, "namespace": ns, "text": text, "speaker": speaker, "metadata": {"session": session}}
        for id_, ns, text, speaker, session in CORPUS
    ]
    queries = [
        {"id": id_, "namespace": ns, "text": text, "type": type_, "relevant": relevant}
        for id_, ns, text, type_, relevant in QUERIES
    ]
    (made / "corpus.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    (made / "queries.jsonl").write_text("\n".join(json.dumps(query) for query in queries))
    return made


def evaluate(database_url: str, *arguments: str | Path, status: int = 0) -> Any:
    """Run `trivet eval`."""
    done = subprocess.run(
        [sys.executable, "-m", "retrieval.cli", "eval", *map(str, arguments)],
        env={**os.environ, "TRIVET_DATABASE_URL": database_url},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_eval_measures_every_mode_and_leaves_its_files(database_url: str, folder: Path, tmp_path: Path) -> None:
    """BM25 finds all of these; the duplicate counts as found; the question without evidence is skipped."""
    out = tmp_path / "out"
    (found,) = json.loads(evaluate(database_url, folder, "--out", out, "--json").stdout)
    assert (found["dataset"], found["queries"], found["skipped"], found["namespaces"]) == ("toy", 4, 1, 2)
    assert found["ingestion"]["counts"] == {"created": 7}
    assert [row["system"] for row in found["running"]] == ["vector", "bm25", "graph", "hybrid", "adaptive"]
    assert all(row["degraded"] == {} for row in found["running"])
    figures = {(cell["group"], cell["system"]): cell["measures"] for cell in found["cells"]}
    assert {group for group, _ in figures} == {"all", "macro over namespaces", "fact", "story"}
    assert figures["all", "bm25"]["recall@10"] == {"mean": 1.0, "low": 1.0, "high": 1.0}
    assert figures["all", "adaptive"]["recall@10"]["mean"] == 1.0
    assert read_qrels(out / "qrels.trec")["q2"] == {"piano": 1, "piano2": 1}
    run = read_run(out / "run.bm25.trec")
    assert set(run) == {"q1", "q2", "q3", "q4"}
    assert {id_ for id_, _ in run["q2"][:2]} == {"piano", "piano2"}
    assert json.loads((out / "summary.json").read_text())["dataset"] == "toy"


def test_eval_again_stores_nothing_and_says_when_the_rows_differ(database_url: str, folder: Path) -> None:
    """A folder that lost a row is refused until the namespaces are filled anew."""
    assert "7 created" in evaluate(database_url, folder, "--modes", "bm25").stdout
    done = evaluate(database_url, folder, "--modes", "bm25", "--limit", "2", "--weights", "1,1,0")
    assert "7 unchanged" in done.stdout
    assert "2 queries (a sample)" in done.stdout
    assert "weights=1,1,0 - bm25" in done.stdout
    rows = (folder / "corpus.jsonl").read_text().splitlines()
    (folder / "corpus.jsonl").write_text("\n".join(rows[:-1]))
    assert "--fresh" in evaluate(database_url, folder, "--modes", "bm25", status=1).stderr
    assert "6 created" in evaluate(database_url, folder, "--modes", "bm25", "--fresh").stdout


def test_eval_names_the_line_of_a_bad_row(database_url: str, folder: Path) -> None:
    """Before anything is stored."""
    with (folder / "queries.jsonl").open("a") as file:
        file.write('\n{"id": "q6"}\n')
    assert "queries.jsonl:6: " in evaluate(database_url, folder, status=1).stderr
