"""The figures of an evaluation: per system and group of queries, with confidence intervals."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from retrieval.evaluation.intervals import Comparison, Interval, Matrix, bootstrap, compare, holm
from retrieval.evaluation.metrics import measures
from retrieval.evaluation.runner import Answer, Ingestion
from retrieval.models_dir import models_dir

OVERALL = "all"
MACRO = "macro over namespaces"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """A system's figures over one group of queries.

    Attributes:
        group: `all`, `macro over namespaces`, or a query type.
        system: its name.
        queries: how many were scored.
        measures: each measure's mean and interval.
    """

    group: str
    system: str
    queries: int
    measures: Mapping[str, Interval]


@dataclass(frozen=True, kw_only=True, slots=True)
class Running:
    """How a system ran: median and 95th percentile milliseconds, and searches by leg that failed."""

    system: str
    median_ms: float
    p95_ms: float
    degraded: Mapping[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Versus:
    """The first system named against the second; `corrected_p` is Holm's over the report's tests."""

    system: str
    baseline: str
    measure: str
    comparison: Comparison
    corrected_p: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """An evaluation folder's report.

    Attributes:
        dataset: its name.
        language: of the analysis.
        skipped: queries left out because nothing is relevant to them.
        sampled: whether `--limit` left others out.
        models: sha256 of each model file, by path in `models/`.
    """

    dataset: str
    language: str
    queries: int
    skipped: int
    sampled: bool
    namespaces: int
    top_k: int
    seed: int
    ingestion: Ingestion
    cells: Sequence[Cell]
    running: Sequence[Running]
    versus: Sequence[Versus]
    models: Mapping[str, str]

    def cell(self, group: str, system: str) -> Cell:
        """The figures of a system over a group."""
        return next(cell for cell in self.cells if cell.group == group and cell.system == system)


def score(answers: Sequence[Answer], top_k: int) -> Matrix:
    """(answers, measures) scores, columns in the order of `measures(top_k)`."""
    chosen = measures(top_k)
    return np.array(
        [
            [measure([id_ for id_, _ in answer.ranking], answer.query.grades) for measure in chosen.values()]
            for answer in answers
        ],
        dtype=np.float64,
    ).reshape(len(answers), len(chosen))


def cells(answers: Mapping[str, Sequence[Answer]], *, top_k: int, seed: int) -> list[Cell]:
    """Every system's figures: overall, macro over namespaces where there are several, per type.

    All systems share their resamples, so that their intervals can be set side by side.
    """
    names = list(measures(top_k))
    systems = list(answers)
    scores = np.hstack([score(answers[system], top_k) for system in systems])
    queries = [answer.query for answer in answers[systems[0]]]
    groups: dict[str, list[int]] = {OVERALL: list(range(len(queries)))}
    for row, query in enumerate(queries):
        groups.setdefault(query.type, []).append(row)
    table: list[tuple[str, list[int], list[str]]] = [
        (group, rows, [OVERALL] * len(rows)) for group, rows in groups.items()
    ]
    namespaces = [query.namespace for query in queries]
    if len(set(namespaces)) > 1:
        table.insert(1, (MACRO, groups[OVERALL], namespaces))
    found = []
    for group, rows, strata in table:
        intervals = bootstrap(scores[rows], strata, seed=seed)
        for index, system in enumerate(systems):
            own = intervals[index * len(names) : (index + 1) * len(names)]
            found.append(
                Cell(group=group, system=system, queries=len(rows), measures=dict(zip(names, own, strict=True)))
            )
    return found


def running(answers: Mapping[str, Sequence[Answer]]) -> list[Running]:
    """Times and failed legs of each system."""
    table = []
    for system, given in answers.items():
        times = [answer.total_ms for answer in given]
        legs = [leg for answer in given for leg in answer.degraded]
        table.append(
            Running(
                system=system,
                median_ms=median(times),
                p95_ms=float(np.quantile(times, 0.95)),
                degraded={leg: legs.count(leg) for leg in sorted(set(legs))},
            )
        )
    return table


def versus(answers: Mapping[str, Sequence[Answer]], system: str, *, top_k: int, seed: int) -> list[Versus]:
    """`system` against each other one in nDCG@10 and recall@10, with Holm's correction over all."""
    names = list(measures(top_k))
    scores = {name: score(given, top_k) for name, given in answers.items()}
    tests = []
    for other in answers:
        for measure in ("ndcg@10", "recall@10"):
            column = names.index(measure)
            if other != system:
                result = compare(scores[system][:, column], scores[other][:, column], seed=seed)
                tests.append((other, measure, result))
    corrected = holm([result.p_value for _, _, result in tests])
    return [
        Versus(system=system, baseline=other, measure=measure, comparison=result, corrected_p=p)
        for (other, measure, result), p in zip(tests, corrected, strict=True)
    ]


def model_checksums() -> dict[str, str]:
    """sha256 of each bundled ONNX file, by its path below the folder of the models."""
    folder = models_dir()
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*.onnx"))
    }
