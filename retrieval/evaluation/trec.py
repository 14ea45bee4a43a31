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


def check_token(value: str) -> str:
    """`value` if it can stand between blanks.

    Raises:
        InvalidInput: it cannot.
    """
    if not value or value.split() != [value]:
        raise InvalidInput(f"a TREC file cannot hold the id {value!r}: it is empty or has white space")
    return value
