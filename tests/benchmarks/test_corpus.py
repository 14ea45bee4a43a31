"""The project's own corpus: every file keeps to the guideline, and is exported as `trivet eval` reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.corpus.corpus import FOLDERS, HERE, CorpusError, export, faults, namespaces, read_text, statistics
from retrieval.evaluation.folder import read_folder

TEXT = """title: A boat
kind: friends
language: en
speakers: Ada, Bo

=== 2024-03-01 10:00
Ada: the boat leaks
  badly
Bo: Where?

=== 2024-03-02 09:30
Bo: fixed it. Ada knows: tar
"""


@pytest.fixture
def boat(tmp_path: Path) -> Path:
    path = tmp_path / "conversations" / "boat.txt"
    path.parent.mkdir()
    path.write_text(TEXT, "utf-8")
    return path


def test_every_namespace_keeps_to_the_guideline() -> None:
    assert [fault for namespace in namespaces() for fault in faults(namespace)] == []


def test_the_data_sheet_has_the_statistics_of_what_is_there() -> None:
    assert statistics() in (HERE / "README.md").read_text("utf-8")


def test_turns_have_ids_speakers_and_times(boat: Path) -> None:
    parts = read_text(boat).parts
    assert [(part.id, part.speaker, part.text) for part in parts] == [
        ("1.1", "Ada", "the boat leaks\nbadly"),
        ("1.2", "Bo", "Where?"),
        ("2.1", "Bo", "fixed it. Ada knows: tar"),
    ]
    assert [f"{part.time:%d %H:%M}" for part in parts] == ["01 10:00", "01 10:01", "02 09:30"]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("2024-03-02 09:30", "2024-03-02", "not a time"),
        ("Bo: Where?", "Cy: Where?", "does not begin with a speaker"),
        ("Bo: Where?", "Bo:", "an empty turn"),
        ("=== 2024-03-01 10:00\n", "", "before the first"),
        ("title: A boat", "A boat", "without a colon"),
    ],
)
def test_a_text_that_cannot_be_read_names_the_place(boat: Path, before: str, after: str, message: str) -> None:
    boat.write_text(TEXT.replace(before, after), "utf-8")
    with pytest.raises(CorpusError, match=message):
        read_text(boat)


def test_questions_that_break_the_guideline_are_named(boat: Path) -> None:
    asked = {"q": "Where does it leak?", "type": "single_fact", "intent": "fact_lookup", "gold": ["1.1"], "answer": "?"}
    rows = [
        asked,
        asked,
        asked | {"q": "a", "gold": ["9.9"]},
        asked | {"q": "b", "gold": []},
        asked | {"q": "c", "type": "relative_time"},
        asked | {"q": "d", "type": "follow_up"},
        asked | {"q": "e", "intent": "other"},
    ]
    boat.with_suffix(".questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    [namespace] = namespaces(boat.parent.parent)
    found = "\n".join(faults(namespace))
    for message in (
        "question 2: asked twice",
        "question 3: no turn or passage '9.9'",
        "question 4: gold is empty exactly where",
        "question 5: relative_time needs asked",
        "question 6: messages stand exactly where",
        "question 7: unknown intent 'other'",
        "3 turns or passages of 250",
    ):
        assert message in found


def test_it_is_exported_as_evaluation_folders(tmp_path: Path) -> None:
    export(tmp_path)
    folders = [read_folder(tmp_path / kind) for kind in FOLDERS if (tmp_path / kind).exists()]
    assert [folder.name for folder in folders] == [f"trivet_{folder.path.name}" for folder in folders]
    everything = list(namespaces())
    assert sum(len(folder.corpus) for folder in folders) == sum(len(each.parts) for each in everything)
    assert sum(len(folder.queries) for folder in folders) == sum(len(each.questions) for each in everything)
    assert any(query.messages for folder in folders for query in folder.queries)
    assert any(query.timestamp for folder in folders for query in folder.queries)
