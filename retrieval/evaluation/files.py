"""What an evaluation leaves on disk: qrels, a run per system, every query's scores, the summary."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from retrieval.evaluation.metrics import measures
from retrieval.evaluation.runner import Answer
from retrieval.evaluation.summary import Summary, score
from retrieval.evaluation.trec import write_qrels, write_run


def write_files(out: Path, summary: Summary, answers: Mapping[str, Sequence[Answer]]) -> list[Path]:
    """Write `qrels.trec`, `run.SYSTEM.trec`, `per_query.csv` and `summary.json` into `out`.

    The qrels hold the queries that were run. Runs hold the rankings as they were judged (see
    `runner.credited`), so that other tools arrive at the same figures.

    Returns:
        The files' paths.

    Raises:
        InvalidInput: an id with white space, which TREC files cannot hold.
    """
    out.mkdir(parents=True, exist_ok=True)
    written = [out / "qrels.trec"]
    queries = [answer.query for answer in next(iter(answers.values()))]
    write_qrels(written[0], {query.id: query.grades for query in queries})
    for system, given in answers.items():
        written.append(out / f"run.{system}.trec")
        write_run(written[-1], {answer.query.id: answer.ranking for answer in given}, tag=f"trivet-{system}")
    written.append(out / "per_query.csv")
    _write_scores(written[-1], answers, summary.top_k)
    written.append(out / "summary.json")
    written[-1].write_bytes(msgspec.json.format(msgspec.json.encode(summary), indent=1) + b"\n")
    return written


def _write_scores(path: Path, answers: Mapping[str, Sequence[Answer]], top_k: int) -> None:
    """One line per system and query."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["system", "qid", "namespace", "type", "intent", "relevant", *measures(top_k), "total_ms", "degraded"]
        )
        for system, given in answers.items():
            for answer, scores in zip(given, score(given, top_k), strict=True):
                query = answer.query
                writer.writerow(
                    [system, query.id, query.namespace, query.type, answer.intent or "", len(query.relevant)]
                    + [f"{value:.6f}" for value in scores]
                    + [f"{answer.total_ms:.3f}", " ".join(answer.degraded)]
                )
