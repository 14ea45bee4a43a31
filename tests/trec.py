"""TREC files as trec_eval reads them."""

from __future__ import annotations

from pathlib import Path


def read_run(path: Path) -> dict[str, list[tuple[str, float]]]:
    """Rankings by qid, by score: the rank column says nothing."""
    rankings: dict[str, list[tuple[str, float]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        qid, _, id_, _, score, _ = line.split()
        rankings.setdefault(qid, []).append((id_, float(score)))
    return {qid: sorted(ranking, key=lambda pair: -pair[1]) for qid, ranking in rankings.items()}


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Grades by qid and id."""
    qrels: dict[str, dict[str, int]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        qid, _, id_, grade = line.split()
        qrels.setdefault(qid, {})[id_] = int(grade)
    return qrels
