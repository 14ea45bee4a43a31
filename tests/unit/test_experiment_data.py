"""The folder of docs/experiment.md: the queries' answers are in the corpus that this Python makes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from classifier.intents import Intent
from retrieval.evaluation.folder import EvaluationFolder, read_folder
from retrieval.profiles.schema import ProfileInput
from retrieval.types.memory import MemoryInput
from retrieval.types.search import Leg
from tests.processes import python

EXPERIMENT = Path(__file__).parents[2] / "docs" / "experiment"


def build(out: Path) -> Path:
    """The folder, made as the page makes it."""
    assert python(EXPERIMENT / "make_folder.py", out).stderr == ""
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> EvaluationFolder:
    return read_folder(build(tmp_path_factory.mktemp("experiment") / "characters"))


def memories(folder: EvaluationFolder) -> dict[str, MemoryInput]:
    """The folder's memories by id; Trivet must be able to store all of them."""
    found = {row.id: row.memory for row in folder.corpus if isinstance(row.memory, MemoryInput)}
    assert len(found) == len(folder.corpus)
    return found


def test_every_query_is_kept_with_all_its_answers(folder: EvaluationFolder) -> None:
    lines = (EXPERIMENT / "characters.jsonl").read_text(encoding="utf-8").splitlines()
    written = [(row["id"], row["relevant"]) for row in map(json.loads, lines)]
    assert written == [(query.id, query.relevant) for query in folder.queries]
    assert len(folder.judged) == 200
    known = memories(folder)
    for query in folder.queries:
        assert 1 <= len(set(query.relevant)) == len(query.relevant) <= 3
        assert set(query.relevant) <= set(known)


def test_no_query_is_asked_twice(folder: EvaluationFolder) -> None:
    assert len({" ".join(query.text.casefold().split()) for query in folder.queries}) == len(folder.queries)


def test_every_intent_is_asked_for(folder: EvaluationFolder) -> None:
    assert Counter(query.type for query in folder.queries) == dict(zip(Intent, (121, 30, 10, 39), strict=True))


def test_the_corpus_is_as_large_as_the_page_says(folder: EvaluationFolder) -> None:
    assert (folder.name, folder.namespaces) == ("characters", ("characters",))
    assert len(memories(folder)) == 1_444


def test_a_character_says_its_code_its_name_and_its_entities(folder: EvaluationFolder) -> None:
    memory = memories(folder)["U+2192"]
    assert memory.title == "RIGHTWARDS ARROW"
    assert memory.text.startswith("\u2192 U+2192 RIGHTWARDS ARROW, symbol, in HTML ")
    assert "&rarr;" in memory.text.split()


def test_two_runs_make_the_same_folder(folder: EvaluationFolder, tmp_path: Path) -> None:
    """Otherwise a second run would store and ask all of it again."""
    again = build(tmp_path)
    for name in ("corpus.jsonl", "queries.jsonl"):
        assert (again / name).read_bytes() == (folder.path / name).read_bytes()


def test_the_profile_that_it_starts_from_searches_by_keywords_alone() -> None:
    given = msgspec.json.decode((EXPERIMENT / "keywords.json").read_bytes(), type=ProfileInput)
    assert isinstance(given.per_intent, dict)
    assert set(given.per_intent) == set(Intent)
    for recipe in (given.fixed, *given.per_intent.values()):
        assert not isinstance(recipe, msgspec.UnsetType)
        assert {leg for leg, weight in recipe.weights.items() if weight} == {Leg.BM25}
    assert (given.learned_share, given.rescore) == (0, False)
