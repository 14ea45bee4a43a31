"""TREC run and qrels files: what trec_eval, ranx and ir_measures read.

A run line is `qid Q0 docid rank score tag`, a qrels line `qid 0 docid grade`, separated by blanks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from retrieval.errors import InvalidInput
from retrieval.evaluation.metrics import Grades

FIRST_RANK = 1
Scored = tuple[str, float]
"""An id and its score."""


def write_run(path: Path, rankings: Mapping[str, Sequence[Scored]], *, tag: str) -> None:
    """Write best-first rankings by qid.

    Readers order by score and most hold it in 32 bits, so scores are written strictly
    descending at that precision: one that is not below its predecessor's is lowered to the next
    number below it. A query without results has no line; readers that average over the run's
    queries alone leave it out.

    Raises:
        InvalidInput: an id with white space, which the format cannot hold.
    """
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for qid, ranking in rankings.items():
            above = np.float32(np.inf)
            for rank, (id_, raw) in enumerate(ranking, start=FIRST_RANK):
                above = min(np.float32(raw), np.nextafter(above, np.float32(-np.inf)))
                file.write(f"{_token(qid)} Q0 {_token(id_)} {rank} {above!s} {_token(tag)}\n")


def read_run(path: Path) -> dict[str, list[Scored]]:
    """Rankings by qid, score descending, equal scores in file order.

    Raises:
        InvalidInput: a line that is no run line, with file and number.
    """
    rankings: dict[str, list[Scored]] = {}
    for number, parts in _lines(path, 6):
        try:
            score = float(parts[4])
        except ValueError as exc:
            raise InvalidInput(f"{path}:{number}: the score {parts[4]!r} is no number") from exc
        rankings.setdefault(parts[0], []).append((parts[2], score))
    return {qid: sorted(ranking, key=lambda pair: -pair[1]) for qid, ranking in rankings.items()}


def write_qrels(path: Path, qrels: Mapping[str, Grades]) -> None:
    """Write grades by qid and id.

    Raises:
        InvalidInput: an id with white space, which the format cannot hold.
    """
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for qid, grades in qrels.items():
            for id_, grade in grades.items():
                file.write(f"{_token(qid)} 0 {_token(id_)} {grade}\n")


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Grades by qid and id.

    Raises:
        InvalidInput: a line that is no qrels line, with file and number.
    """
    qrels: dict[str, dict[str, int]] = {}
    for number, parts in _lines(path, 4):
        try:
            grade = int(parts[3])
        except ValueError as exc:
            raise InvalidInput(f"{path}:{number}: the grade {parts[3]!r} is no whole number") from exc
        qrels.setdefault(parts[0], {})[parts[2]] = grade
    return qrels


def _token(value: str) -> str:
    """`value` if it can stand between blanks."""
    if not value or value.split() != [value]:
        raise InvalidInput(f"a TREC file cannot hold the id {value!r}: it is empty or has white space")
    return value


def _lines(path: Path, columns: int) -> list[tuple[int, list[str]]]:
    """Line numbers with their columns; empty lines are left out."""
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        parts = line.split()
        if parts and len(parts) != columns:
            raise InvalidInput(f"{path}:{number}: {columns} columns expected, not {len(parts)}")
        if parts:
            rows.append((number, parts))
    return rows
