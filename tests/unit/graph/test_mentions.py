"""Recall and precision of names and topics on a labelled sample."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graph.extraction import extract

SAMPLE = Path(__file__).parents[2] / "data" / "mentions.jsonl"


def agreement(type_: str, field: str) -> tuple[float, float]:
    """Precision and recall of the found spellings of one type over the whole sample."""
    right = found = labelled = 0
    for line in SAMPLE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        got = {m.name for m in extract(row["text"], speaker=row["speaker"]) if m.type == type_}
        right += len(got.intersection(row[field]))
        found += len(got)
        labelled += len(row[field])
    return right / found, right / labelled


@pytest.mark.parametrize(
    ("type_", "field", "least_precision", "least_recall"),
    [("name", "names", 0.94, 0.90), ("phrase", "topics", 0.90, 0.88)],
)
def test_found_and_labelled_agree(type_: str, field: str, least_precision: float, least_recall: float) -> None:
    """Measured .97/.93 for names and .93/.91 for topics; the bounds leave room for a change of one or two."""
    precision, recall = agreement(type_, field)
    assert precision >= least_precision
    assert recall >= least_recall


def test_the_sample_is_large_enough_to_say_something() -> None:
    rows = [json.loads(line) for line in SAMPLE.read_text(encoding="utf-8").splitlines()]
    assert len(rows) >= 60
    assert sum(len(row["names"]) for row in rows) >= 60
    assert sum(len(row["topics"]) for row in rows) >= 40
