"""TREC files: what is written can be read."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from retrieval.errors import InvalidInput
from retrieval.evaluation.trec import write_qrels, write_run
from tests.trec import read_qrels, read_run


def test_run_round_trip(tmp_path: Path) -> None:
    """Order survives; scores do to 32 bits."""
    rankings = {"q1": [("conv:D1:1", 0.75), ("b", 0.5)], "q2": [("ü", -0.25)]}
    write_run(tmp_path / "run", rankings, tag="trivet")
    found = read_run(tmp_path / "run")
    assert found == rankings
    assert (tmp_path / "run").read_text(encoding="utf-8").splitlines()[0] == "q1 Q0 conv:D1:1 1 0.75 trivet"


def test_tied_and_rising_scores_are_written_strictly_descending(tmp_path: Path) -> None:
    """A reader that sorts by 32-bit scores and breaks ties its own way gets the same order."""
    ranking = [("z", 0.5), ("a", 0.5), ("m", 0.5 - 1e-12), ("k", 0.6), ("b", 0.1)]
    write_run(tmp_path / "run", {"q": ranking}, tag="t")
    found = read_run(tmp_path / "run")["q"]
    assert [id_ for id_, _ in found] == ["z", "a", "m", "k", "b"]
    scores = [np.float32(score) for _, score in found]
    assert all(above > below for above, below in pairwise(scores))


def test_qrels_round_trip(tmp_path: Path) -> None:
    """Grades survive, 0 included."""
    qrels = {"q1": {"a": 1, "b": 0}, "q2": {"c": 3}}
    write_qrels(tmp_path / "qrels", qrels)
    assert read_qrels(tmp_path / "qrels") == qrels


@pytest.mark.parametrize("bad", ["a b", "", " a", "a\n", "a\u00a0b"])
def test_ids_with_white_space_are_refused(tmp_path: Path, bad: str) -> None:
    """They would shift the columns."""
    with pytest.raises(InvalidInput, match="white space"):
        write_run(tmp_path / "run", {"q": [(bad, 1.0)]}, tag="t")
    with pytest.raises(InvalidInput, match="white space"):
        write_qrels(tmp_path / "qrels", {bad: {"a": 1}})
