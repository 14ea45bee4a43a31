"""`trivet eval` on a folder small enough to judge by eye."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from msgspec.structs import replace

from retrieval.engine import Trivet
from retrieval.evaluation.trec import read_qrels, read_run
from retrieval.installation import models_dir
from retrieval.profiles.profile import DEFAULT, Models, Profile
from retrieval.store import profiles as store
from retrieval.types.search import Leg
from tests.command import NOWHERE, trivet
from tests.folders import evaluation_folder
from tests.processes import python
from tests.serving import settings_for

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


def write_folder(made: Path) -> Path:
    """An evaluation folder of two namespaces, with a duplicate and a question without evidence."""
    rows = [
        {"id": id_, "namespace": ns, "text": text, "speaker": speaker, "metadata": {"session": session}}
        for id_, ns, text, speaker, session in CORPUS
    ]
    queries = [
        {"id": id_, "namespace": ns, "text": text, "type": type_, "relevant": relevant}
        for id_, ns, text, type_, relevant in QUERIES
    ]
    return evaluation_folder(made, rows, queries)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder `toy`."""
    return write_folder(tmp_path / "toy")


def evaluate(database_url: str, *arguments: str | Path, status: int = 0) -> Result:
    """Run `trivet eval`."""
    return trivet(database_url, "eval", *arguments, status=status)


def test_eval_measures_every_mode_and_leaves_its_files(database_url: str, folder: Path, tmp_path: Path) -> None:
    """BM25 finds all of these; the duplicate counts as found; the question without evidence is skipped."""
    out = tmp_path / "out"
    evaluation = json.loads(evaluate(database_url, folder, "--out", out, "--json").stdout)
    assert evaluation["macro"] is None
    (found,) = evaluation["sets"]
    assert (found["dataset"], found["figures"]["queries"], found["skipped"], found["namespaces"]) == ("toy", 4, 1, 2)
    assert found["ingestion"]["counts"] == {"created": 7}
    systems = ["vector", "bm25", "graph", "hybrid", "adaptive", "weights=1,1,1"]
    assert [row["system"] for row in found["running"]] == systems
    assert all(row["degraded"] == {} for row in found["running"])
    figures = {(cell["group"], cell["system"]): cell["measures"] for cell in found["figures"]["cells"]}
    assert {group for group, _ in figures} == {"all", "macro over namespaces", "fact", "story"}
    assert figures["all", "bm25"]["recall@10"] == {"mean": 1.0, "low": 1.0, "high": 1.0}
    assert figures["all", "adaptive"]["recall@10"]["mean"] == 1.0
    assert read_qrels(out / "qrels.trec")["q2"] == {"piano": 1, "piano2": 1}
    run = read_run(out / "run.bm25.trec")
    assert set(run) == {"q1", "q2", "q3", "q4"}
    assert {id_ for id_, _ in run["q2"][:2]} == {"piano", "piano2"}
    assert json.loads((out / "summary.json").read_text())["dataset"] == "toy"


def test_eval_again_stores_nothing_and_says_when_the_rows_differ(database_url: str, folder: Path) -> None:
    """A folder that lost a row is refused until the namespaces are filled again."""
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


def test_eval_measures_parts_packs_and_several_folders(database_url: str, folder: Path, tmp_path: Path) -> None:
    """Every table, file and chart of two folders, one of which lacks a question of the other."""
    other = write_folder(tmp_path / "other")
    queries = (other / "queries.jsonl").read_text().splitlines()
    (other / "queries.jsonl").write_text("\n".join(queries[1:]))
    out, html = tmp_path / "out", tmp_path / "reports" / "report.html"
    options = ("--modes", "bm25,adaptive", "--ablate", "graph,bm25", "--without-sessions", "--budgets", "64,512,4096")
    done = evaluate(database_url, folder, other, *options, "--out", out, "--html", html)
    for line in ("adaptive - without-sessions", "verdicts", "2 sets, each counts alike: toy, other", "up to 64"):
        assert line in done.stdout
    assert {path.name for path in (out / "other").iterdir()} >= {"packs.csv", "per_query.csv", "summary.json"}
    found = json.loads((out / "evaluation.json").read_text())
    assert found["provenance"]["models"].keys() >= {"embedder.onnx", "intent.onnx"}
    toy, fewer, macro = (one["figures"] for one in (*found["sets"], {"figures": found["macro"]}))
    assert (toy["queries"], fewer["queries"], macro["queries"]) == (4, 3, 7)
    assert {test["baseline"] for test in macro["versus"]} == {"bm25", "weights=1,1,1"}
    assert {test["baseline"] for test in macro["ablations"]} == {"without-graph", "without-bm25", "without-sessions"}
    assert [verdict["versus"]["baseline"] for verdict in toy["verdicts"]] == ["bm25", "weights=1,1,1"] * 2

    def packs(figures: dict[str, Any]) -> dict[int, dict[str, Any]]:
        return {cell["budget"]: cell for cell in figures["budgets"] if cell["system"] == "adaptive"}

    # 512 tokens are enough for each small namespace, with the merged duplicate; 64 for one or two memories
    assert packs(toy)[512]["recall"]["mean"] == packs(fewer)[512]["recall"]["mean"] == 1.0
    assert 0.0 < packs(toy)[64]["recall"]["mean"] <= 1.0
    assert packs(toy)[64]["tokens"] <= 64.0 < packs(toy)[512]["tokens"]
    assert packs(toy)[4096] == {**packs(toy)[512], "budget": 4096}
    mean = (packs(toy)[64]["tokens"] + packs(fewer)[64]["tokens"]) / 2
    assert packs(macro)[64]["tokens"] == pytest.approx(mean)
    text = html.read_text()
    assert text.startswith("<!doctype html>")
    assert "macro over sets (n=7)" in text


def test_eval_packs_more_of_a_long_memory_into_a_larger_budget(database_url: str, tmp_path: Path) -> None:
    """A budget into which every memory went as an excerpt is not the last one that matters."""
    text = " ".join(f"The copper kettle number {i} from Lisbon hangs above the stove." for i in range(60))
    rows = [{"id": "kettles", "namespace": "home", "text": text}]
    query = {"id": "q", "namespace": "home", "text": "Whence the kettle?", "type": "fact", "relevant": ["kettles"]}
    folder = evaluation_folder(tmp_path / "long", rows, [query])
    options = ("--modes", "bm25", "--budgets", "128,1024,8192", "--out", tmp_path / "out", "--json")
    evaluation = json.loads(evaluate(database_url, folder, *options).stdout)
    short, longer, whole = (cell["tokens"] for cell in evaluation["sets"][0]["figures"]["budgets"][:3])
    assert short <= 128 < longer <= 1024 // 4 < whole


def test_eval_without_vectors_ranks_by_the_other_legs(database_url: str, folder: Path, tmp_path: Path) -> None:
    """A query without a word in common finds nothing once the vector leg is off."""
    ask_without_words_in_common(folder)
    evaluate(database_url, folder, "--modes", "adaptive", "--ablate", "vector", "--out", tmp_path / "out")
    assert read_run(tmp_path / "out" / "run.adaptive.trec")["q"]
    assert "q" not in read_run(tmp_path / "out" / "run.without-vector.trec")


def alone(leg: Leg, **fields: Any) -> Profile:
    """A profile that ranks by one leg."""
    recipe = replace(DEFAULT.fixed, weights={each: float(each is leg) for each in Leg})
    return replace(
        DEFAULT, fixed=recipe, per_intent=dict.fromkeys(DEFAULT.per_intent, recipe), learned_share=0.0, **fields
    )


def ask_without_words_in_common(folder: Path) -> None:
    """A query that only the vector leg can answer."""
    (folder / "queries.jsonl").write_text(
        json.dumps({"id": "q", "namespace": "home", "text": "musical instrument?", "type": "t", "relevant": ["piano"]})
    )


async def test_eval_compares_stages_and_profiles(database_url: str, folder: Path, tmp_path: Path) -> None:
    """The live and another version of the database's profile, and four searches with the named profile."""
    async with Trivet.open(settings_for(database_url)) as engine:
        await engine.profiles.put("mine", alone(Leg.BM25))
        await engine.profiles.put("mine", alone(Leg.VECTOR))
        async with engine._pool.connection() as conn, store.writing(conn):
            await store.promote(conn, "mine", 1, by="promote")
    ask_without_words_in_common(folder)
    out, html = tmp_path / "out", tmp_path / "report.html"
    options = ("--stages", "--profiles", "default,mine@2,mine", "--base-profile", "mine@2")
    done = await asyncio.to_thread(evaluate, database_url, folder, *options, "--out", out, "--html", html, "--json")
    (found,) = json.loads(done.stdout)["sets"]
    stages = ["rrf-fixed", "rrf-adaptive", "rrf-fixed+rescorer", "all"]
    assert [row["system"] for row in found["running"]] == [
        *stages,
        *(f"profile={name}" for name in options[2].split(",")),
    ]
    assert not {leg for row in found["running"] for leg in row["degraded"]} & set(Leg)
    assert "q" not in read_run(out / "run.profile=mine.trec")
    for system in ("profile=mine@2", *stages):
        assert read_run(out / f"run.{system}.trec")["q"]
    figures = found["figures"]
    assert figures["judged"] == "profile=mine"
    assert {test["baseline"] for test in figures["versus"]} == {*stages, "profile=default", "profile=mine@2"}
    assert {(test["system"], test["baseline"]) for test in figures["stages"]} == {
        *(("all", stage) for stage in stages[:3]),
        ("rrf-adaptive", "rrf-fixed"),
    }
    lost = next(row for row in figures["outcomes"] if row["group"] == "t" and row["baseline"] == "profile=mine@2")
    assert (lost["system"], lost["queries"], lost["losses"], lost["lost"]) == ("profile=mine", 1, 1, 1.0)
    assert found["provenance"]["profile"] == "mine@1"
    assert found["provenance"]["profiles"] == {
        **dict.fromkeys(stages, "mine@2"),
        "profile=default": DEFAULT.label,
        "profile=mine@2": "mine@2",
        "profile=mine": "mine@1",
    }
    assert "What each stage of the ranking brings" in html.read_text()


async def test_eval_borrows_profiles_of_the_embedded_database(folder: Path, data_dir: Path) -> None:
    """It stores its rows in a separate database, which has neither the profile nor its model."""
    async with Trivet.open(settings_for("embedded", data_dir=data_dir)) as engine:
        intent = await engine.models.put_model("intent", models_dir() / "intent.onnx")
        await engine.profiles.put("mine", alone(Leg.VECTOR, models=Models(intent=intent)))
    ask_without_words_in_common(folder)
    options = ("--modes", "bm25", "--profiles", "mine@1", "--data-dir", data_dir, "--json")
    found = json.loads((await asyncio.to_thread(evaluate, "embedded", folder, *options)).stdout)
    figures = {cell["system"]: cell["measures"] for cell in found["sets"][0]["figures"]["cells"]}
    assert figures["profile=mine@1"]["recall@10"]["mean"] == 1.0
    assert figures["bm25"]["recall@10"]["mean"] == 0.0
    assert found["provenance"]["models"]["intent of mine@1"] == intent.removeprefix("sha256:")
    async with Trivet.open(settings_for("embedded", data_dir=data_dir)) as engine:
        assert await engine.list_namespaces() == []


def test_eval_refuses_profiles_that_are_not_there(database_url: str, folder: Path) -> None:
    """As wrong usage, with the existing ones listed; nothing is stored."""
    done = evaluate(database_url, folder, "--profiles", "default,mine", status=2)
    assert "there is no profile 'mine'; there are: default, research" in done.stderr
    assert "has no version 99" in evaluate(database_url, folder, "--base-profile", "default@99", status=2).stderr
    assert "7 created" in evaluate(database_url, folder, "--modes", "bm25").stdout


def test_eval_says_where_the_folder_belongs_that_ablate_took(folder: Path) -> None:
    """With folders after it or without."""
    for more in ([], [folder]):
        done = evaluate(NOWHERE, "--ablate", folder, *more, status=2)
        assert f"--ablate took the folder '{folder}'" in done.stderr
        assert f"--ablate=all {folder}" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--profiles", "mine,mine"], "profile 'mine' is named twice"),
        (["--ablate", "grpah"], "'grpah' cannot be switched off; choose from: vector, bm25, graph"),
        (["--modes", "bm25", "--ablate"], "ablations are compared with mode adaptive"),
        (["--budgets", "512,much"], "budgets are whole numbers of tokens"),
        (["--seed", "-1"], "-1 is not in the range x>=0"),
        (["--modes", ""], "there is nothing to measure"),
    ],
)
def test_eval_refuses_what_it_cannot_measure(folder: Path, options: list[str], message: str) -> None:
    """Before it opens a database."""
    assert message in evaluate(NOWHERE, folder, *options, status=2).stderr


def test_eval_judges_a_run_from_elsewhere(database_url: str, folder: Path, tmp_path: Path) -> None:
    """On the same questions and judgements as its own systems; a question without a line has no results."""
    run, out, html = tmp_path / "other.trec", tmp_path / "out", tmp_path / "report.html"
    run.write_text("q1 Q0 kettle 1 9 x\nq2 Q0 garden 1 2 x\nq2 Q0 piano 2 1 x\nq3 Q0 nothing 1 1 x\nq8 Q0 a 1 1 x\n")
    options = ("--modes", "bm25", "--run", run, "--budgets", "64", "--out", out, "--html", html, "--json")
    (found,) = json.loads(evaluate(database_url, folder, *options).stdout)["sets"]
    cells = {cell["system"]: cell["measures"] for cell in found["figures"]["cells"] if cell["group"] == "all"}
    assert cells["run=other"]["recall@10"]["mean"] == (1 + 0.5) / 4
    assert cells["run=other"]["mrr@10"]["mean"] == (1 + 0.5) / 4
    assert cells["bm25"]["recall@10"]["mean"] == 1.0
    assert {test["baseline"] for test in found["figures"]["versus"]} == {"run=other"}
    assert [row["system"] for row in found["running"]] == ["bm25"]
    assert [file.name for file in out.glob("run.*")] == ["run.bm25.trec"]
    assert "run=other,q2,home,fact,,2," in (out / "per_query.csv").read_text()
    assert "run=other" in html.read_text()


def test_eval_refuses_a_run_of_something_else(folder: Path, tmp_path: Path) -> None:
    """Before it opens a database."""
    run, again, copy = tmp_path / "other.trec", tmp_path / "toy2" / "other.trec", write_folder(tmp_path / "toy2")
    run.write_text("q8 Q0 a 1 1 x\n")
    assert f"{run}: ranks for no query of {folder}" in evaluate(NOWHERE, folder, "--run", run, status=1).stderr
    run.write_text("q1 Q0 a 1 1 x\n")
    again.write_text(run.read_text())
    assert "of one folder" in evaluate(NOWHERE, folder, copy, "--run", run, status=2).stderr
    assert "are called 'other'" in evaluate(NOWHERE, folder, "--run", run, "--run", again, status=2).stderr


@pytest.mark.parametrize("name", ["queries", "corpus"])
def test_eval_says_at_once_which_id_its_files_cannot_hold(folder: Path, tmp_path: Path, name: str) -> None:
    """Before it opens a database."""
    row = {"id": "a b", "namespace": "home", "text": "What?", "type": "fact", "relevant": ["kettle"]}
    with (folder / f"{name}.jsonl").open("a") as file:
        file.write("\n" + json.dumps(row))
    done = evaluate(NOWHERE, folder, "--out", tmp_path / "out", status=1)
    assert f"{folder}: a TREC file cannot hold the id 'a b'" in done.stderr
    assert not (tmp_path / "out").exists()


def test_eval_writes_into_no_evaluation_folder(folder: Path) -> None:
    """Its judgements there would be mistaken for the folder's own."""
    assert f"{folder} is an evaluation folder" in evaluate(NOWHERE, folder, "--out", folder, status=2).stderr


def test_eval_says_what_charts_need(folder: Path, tmp_path: Path) -> None:
    """Without matplotlib, before anything runs; in a separate process, which has not imported it yet."""
    (tmp_path / "matplotlib.py").write_text("raise ModuleNotFoundError('gone', name='matplotlib')")
    command = ("-m", "retrieval.cli", "eval", folder, "--html", tmp_path / "r.html")
    done = python(*command, status=2, TRIVET_DATABASE_URL=NOWHERE, PYTHONPATH=str(tmp_path))
    assert "pip install 'trivet[eval]'" in done.stderr
