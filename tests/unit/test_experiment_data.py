"""The data of docs/experiment.md: what is asked there has answers in the corpora that this Python makes."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from classifier.intents import Intent
from retrieval.evaluation.folder import EvaluationFolder, read_folder
from retrieval.profile_types import ProfileInput
from retrieval.types import Leg, MemoryInput

EXPERIMENT = Path(__file__).parents[2] / "docs" / "experiment"
SCRIPT = EXPERIMENT / "make_folder.py"
DOMAINS = ("characters", "stdlib")


def build(domain: str, out: Path) -> Path:
    """The folder of a domain, as the page has it built."""
    command = [sys.executable, str(SCRIPT), domain, str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return out


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, EvaluationFolder]:
    out = tmp_path_factory.mktemp("experiment")
    return {domain: read_folder(build(domain, out / domain)) for domain in DOMAINS}


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_folder", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def memories(folder: EvaluationFolder) -> dict[str, MemoryInput]:
    """The folder's memories by id; none may be one that Trivet cannot hold."""
    found = {row.id: row.memory for row in folder.corpus if isinstance(row.memory, MemoryInput)}
    assert len(found) == len(folder.corpus)
    return found


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_query_is_kept_with_all_its_answers(folders: dict[str, EvaluationFolder], domain: str) -> None:
    lines = (EXPERIMENT / f"{domain}.jsonl").read_text(encoding="utf-8").splitlines()
    written = [(row["id"], row["relevant"]) for row in map(json.loads, lines)]
    folder = folders[domain]
    assert written == [(query.id, query.relevant) for query in folder.queries]
    assert len(folder.judged) == 200
    assert all(1 <= len(set(query.relevant)) == len(query.relevant) <= 3 for query in folder.queries)


@pytest.mark.parametrize("domain", DOMAINS)
def test_no_query_is_asked_twice(folders: dict[str, EvaluationFolder], domain: str) -> None:
    queries = folders[domain].queries
    assert len({" ".join(query.text.casefold().split()) for query in queries}) == len(queries)


@pytest.mark.parametrize(("domain", "counts"), [("characters", (121, 30, 10, 39)), ("stdlib", (80, 40, 20, 60))])
def test_every_intent_is_asked_for(
    folders: dict[str, EvaluationFolder], domain: str, counts: tuple[int, int, int, int]
) -> None:
    assert Counter(query.type for query in folders[domain].queries) == dict(zip(Intent, counts, strict=True))


@pytest.mark.parametrize(("domain", "fewest", "most"), [("characters", 1_300, 1_600), ("stdlib", 2_000, 3_000)])
def test_the_corpora_are_as_large_as_the_page_says(
    folders: dict[str, EvaluationFolder], domain: str, fewest: int, most: int
) -> None:
    folder = folders[domain]
    assert (folder.name, folder.namespaces) == (domain, (domain,))
    assert fewest <= len(memories(folder)) <= most


def test_the_answers_lie_in_many_modules(folders: dict[str, EvaluationFolder]) -> None:
    found = memories(folders["stdlib"])
    asked = {name for query in folders["stdlib"].queries for name in query.relevant}
    assert len({found[name].metadata["module"] for name in asked}) >= 40


def test_a_memory_says_its_name_its_parameters_and_what_it_is_for(folders: dict[str, EvaluationFolder]) -> None:
    memory = memories(folders["stdlib"])["itertools.groupby"]
    assert memory.title == "itertools.groupby"
    assert memory.text.startswith("itertools.groupby(iterable, key=None)\n\n")
    assert "consecutive keys" in memory.text


def test_a_character_says_its_code_its_name_and_its_entities(folders: dict[str, EvaluationFolder]) -> None:
    memory = memories(folders["characters"])["U+2192"]
    assert memory.title == "RIGHTWARDS ARROW"
    assert memory.text.startswith("\u2192 U+2192 RIGHTWARDS ARROW, symbol, in HTML ")
    assert "&rarr;" in memory.text.split()


@pytest.mark.parametrize("domain", DOMAINS)
def test_two_runs_make_the_same_folder(folders: dict[str, EvaluationFolder], domain: str, tmp_path: Path) -> None:
    """Otherwise a second run would store and ask anew."""
    again = build(domain, tmp_path)
    for name in ("corpus.jsonl", "queries.jsonl"):
        assert (again / name).read_bytes() == (folders[domain].path / name).read_bytes()


def test_an_answer_that_this_python_lacks_is_told_of(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    known = {name: row for name, row in script.stdlib().items() if name != "itertools.cycle"}
    assert len(script.queries(EXPERIMENT / "stdlib.jsonl", known)) == 199
    assert "this Python has no itertools.cycle" in capsys.readouterr().err


def test_too_few_queries_end_it_before_anything_is_written(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"id": "q1", "text": "euro", "type": "fact_lookup", "relevant": ["U+20AC"]}
    (tmp_path / "characters.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    monkeypatch.setattr(script, "HERE", tmp_path)
    with pytest.raises(SystemExit, match="too few queries are left: 1"):
        script.write("characters", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_profile_that_it_starts_from_searches_by_keywords_alone() -> None:
    given = msgspec.json.decode((EXPERIMENT / "keywords.json").read_bytes(), type=ProfileInput)
    assert isinstance(given.per_intent, dict)
    assert set(given.per_intent) == set(Intent)
    for recipe in (given.fixed, *given.per_intent.values()):
        assert not isinstance(recipe, msgspec.UnsetType)
        assert {leg for leg, weight in recipe.weights.items() if weight} == {Leg.BM25}
    assert (given.trust, given.rescore) == (0, False)
