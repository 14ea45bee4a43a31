"""Writes an evaluation's files: qrels, a run per system, each query's scores, the figures."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from retrieval.errors import InvalidInput
from retrieval.evaluation.folder import EvaluationFolder
from retrieval.evaluation.metrics import measures
from retrieval.evaluation.scores import ScoreTable
from retrieval.evaluation.study import Result
from retrieval.evaluation.trec import check_token, write_qrels, write_run


def check_ids(folders: Iterable[EvaluationFolder]) -> None:
    """Check that `write_files` can write any ranking of these folders.

    Raises:
        InvalidInput: an id with white space; names the folder.
    """
    for folder in folders:
        for id_ in (*(query.id for query in folder.judged), *(row.id for row in folder.corpus)):
            try:
                check_token(id_)
            except InvalidInput as exc:
                raise InvalidInput(f"{folder.path}: {exc}; without --out it may have any") from exc


def write_files(out: Path, result: Result) -> list[Path]:
    """Write `qrels.trec`, `run.SYSTEM.trec`, `per_query.csv`, `summary.json` and `packs.csv`; returns their paths.

    The qrels hold the queries that were run. Runs hold the rankings as they were judged (see
    `runner.credited`), so that other tools arrive at the same figures.

    Raises:
        InvalidInput: an id with white space, which TREC files cannot hold.
    """
    out.mkdir(parents=True, exist_ok=True)
    written = [out / "qrels.trec"]
    write_qrels(written[0], {query.id: query.grades for query in result.scores.queries})
    for system in [row.system for row in result.summary.running]:  # external runs are files already
        written.append(out / f"run.{system}.trec")
        rankings = {answer.query.id: answer.ranking for answer in result.answers[system]}
        write_run(written[-1], rankings, tag=f"trivet-{system}")
    written.append(out / "per_query.csv")
    _write_scores(written[-1], result)
    if result.packs is not None:
        written.append(out / "packs.csv")
        _write_packs(written[-1], result.packs)
    written.append(out / "summary.json")
    write_json(written[-1], result.summary)
    return written


def write_json(path: Path, value: Any) -> None:
    """Write a value of any type that msgspec supports as indented JSON."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")


def _write_scores(path: Path, result: Result) -> None:
    """One line per system and query."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        names = measures(result.summary.top_k)
        writer.writerow(["system", "qid", "namespace", "type", "intent", "relevant", *names, "total_ms", "degraded"])
        for system, given in result.answers.items():
            for answer, scores in zip(given, result.scores.values[system], strict=True):
                query = answer.query
                writer.writerow(
                    [system, query.id, query.namespace, query.type, answer.intent or "", len(query.grades)]
                    + [f"{value:.6f}" for value in scores]
                    + [f"{answer.total_ms:.3f}", " ".join(answer.degraded)]
                )


def _write_packs(path: Path, packs: ScoreTable) -> None:
    """One line per system, query and budget."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["system", "qid", "budget", "evidence_recall", "tokens_used"])
        budgets = [name.partition("@")[2] for name in packs.measures[: len(packs.measures) // 2]]
        for system, values in packs.values.items():
            for query, row in zip(packs.queries, values.tolist(), strict=True):
                for budget, recall, tokens in zip(budgets, row[: len(budgets)], row[len(budgets) :], strict=True):
                    writer.writerow([system, query.id, budget, f"{recall:.6f}", f"{tokens:.0f}"])
