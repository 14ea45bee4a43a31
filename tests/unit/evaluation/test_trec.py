"""TREC files: what is written can be read."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from retrieval.errors import InvalidInput
from retrieval.evaluation.trec import read_qrels, read_run, write_qrels, write_run


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


def test_a_run_is_read_by_its_scores(tmp_path: Path) -> None:
    """Whatever its ranks and the order of its lines say; equal scores stay in the order of the file."""
    (tmp_path / "run").write_text("q1 Q0 a 1 .5 x\n\nq2 Q0 d 1 1 x\nq1\tQ0 c 2 .75 x\nq1 Q0 b 3 5e-1 x\r\n")
    assert read_run(tmp_path / "run") == {"q1": [("c", 0.75), ("a", 0.5), ("b", 0.5)], "q2": [("d", 1.0)]}


@pytest.mark.parametrize(
    ("read", "line", "message"),
    [
        (read_run, "q1 0 a 1", ":2: must be 'qid Q0 id rank score tag'"),
        (read_run, "q1 Q0 a 1 high x", ":2: the score 'high' is no number"),
        (read_run, "q1 Q0 a 1 nan x", ":2: the score 'nan' is no number"),
        (read_run, "q1 Q0 b 2 .1 x", ":2: the id 'b' is ranked twice for query 'q1'"),
        (read_qrels, "q1 0 a", ":2: must be 'qid 0 id grade'"),
        (read_qrels, "q1 0 a 0.5", ":2: the grade '0.5' is no whole number"),
        (read_qrels, "q1 0 b 0", ":2: the id 'b' has two grades for query 'q1'"),
        (read_qrels, "\x80", "not UTF-8"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, read: Callable[[Path], object], line: str, message: str) -> None:
    first = "q1 Q0 b 1 .5 x" if read is read_run else "q1 0 b 1"
    (tmp_path / "file").write_bytes(f"{first}\n{line}\n".encode("latin-1"))
    with pytest.raises(InvalidInput, match=re.escape(message)):
        read(tmp_path / "file")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="none: No such file"):
        read_run(tmp_path / "none")
