"""TREC run and qrels files: what trec_eval, ranx and ir_measures read.

A run line is `qid Q0 docid rank score tag`, a qrels line `qid 0 docid grade`, separated by blanks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
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
                file.write(f"{check_token(qid)} Q0 {check_token(id_)} {rank} {above!s} {check_token(tag)}\n")


def write_qrels(path: Path, qrels: Mapping[str, Grades]) -> None:
    """Write grades by qid and id.

    Raises:
        InvalidInput: an id with white space, which the format cannot hold.
    """
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for qid, grades in qrels.items():
            for id_, grade in grades.items():
                file.write(f"{check_token(qid)} 0 {check_token(id_)} {grade}\n")


def read_run(path: Path) -> dict[str, list[Scored]]:
    """Rankings by qid, best first by score, equal scores in the order of the file; the rank column is ignored.

    Raises:
        InvalidInput: no such file, or a malformed line; the message names it.
    """
    rankings: dict[str, dict[str, float]] = {}
    for where, (qid, _, id_, _, score, _) in _lines(path, "qid Q0 id rank score tag"):
        ranking = rankings.setdefault(qid, {})
        if id_ in ranking:
            raise InvalidInput(f"{where}: the id {id_!r} is ranked twice for query {qid!r}")
        try:
            ranking[id_] = float(score)
        except ValueError as exc:
            raise InvalidInput(f"{where}: the score {score!r} is no number") from exc
        if math.isnan(ranking[id_]):
            raise InvalidInput(f"{where}: the score {score!r} is no number")
    return {qid: sorted(ranking.items(), key=lambda scored: -scored[1]) for qid, ranking in rankings.items()}


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Grades by qid and id.

    Raises:
        InvalidInput: no such file, or a malformed line; the message names it.
    """
    qrels: dict[str, dict[str, int]] = {}
    for where, (qid, _, id_, grade) in _lines(path, "qid 0 id grade"):
        try:
            number = int(grade)
        except ValueError as exc:
            raise InvalidInput(f"{where}: the grade {grade!r} is no whole number") from exc
        if qrels.setdefault(qid, {}).setdefault(id_, number) != number:
            raise InvalidInput(f"{where}: the id {id_!r} has two grades for query {qid!r}")
    return qrels


def _lines(path: Path, fields: str) -> Iterator[tuple[str, list[str]]]:
    """Yield where each line is, and its fields; blank lines are skipped."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as exc:
        raise InvalidInput(f"{path}: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise InvalidInput(f"{path}: not UTF-8: {exc.reason} at byte {exc.start}") from exc
    for number, line in enumerate(text.split("\n"), start=1):
        found = line.split()
        if found and len(found) != len(fields.split()):
            raise InvalidInput(f"{path}:{number}: must be {fields!r}, separated by blanks")
        if found:
            yield f"{path}:{number}", found


def check_token(value: str) -> str:
    """Return `value` if it can be a field of a line.

    Raises:
        InvalidInput: it is empty or contains white space.
    """
    if not value or value.split() != [value]:
        raise InvalidInput(f"a TREC file cannot hold the id {value!r}: it is empty or has white space")
    return value
