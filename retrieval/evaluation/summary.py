"""The figures of an evaluation, as they are printed and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from retrieval.evaluation.comparisons import OutcomeCounts, Versus, YardstickVerdict
from retrieval.evaluation.packs import BudgetCell
from retrieval.evaluation.runner import Ingestion, JudgedAnswer
from retrieval.evaluation.scores import Cell


@dataclass(frozen=True, kw_only=True, slots=True)
class Running:
    """How a system ran: median and 95th percentile milliseconds, and failed searches by leg."""

    system: str
    median_ms: float
    p95_ms: float
    degraded: Mapping[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """The figures of one set, or of several with equal weight.

    Attributes:
        cells: means per group and system.
        versus: the judged system against every other one.
        stages: stages of the ranking against each other.
        outcomes: wins, ties and losses in these two kinds of tests, by group of queries.
        ablations: `adaptive` against itself without one part.
        verdicts: `adaptive` against the best single leg and equal weights.
        budgets: evidence in context packs, if budgets were given.
    """

    queries: int
    judged: str
    cells: Sequence[Cell]
    versus: Sequence[Versus]
    stages: Sequence[Versus]
    outcomes: Sequence[OutcomeCounts]
    ablations: Sequence[Versus]
    verdicts: Sequence[YardstickVerdict]
    budgets: Sequence[BudgetCell]

    def cell(self, group: str, system: str) -> Cell:
        """The figures of a system over a group."""
        return next(cell for cell in self.cells if cell.group == group and cell.system == system)


@dataclass(frozen=True, kw_only=True, slots=True)
class Provenance:
    """What figures come from: profiles by system with their versions, and the sha256 of each model."""

    date: str
    seed: int
    profile: str
    profiles: Mapping[str, str]
    versions: Mapping[str, str]
    models: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """An evaluation folder's report; `skipped` queries have no relevant memories, `sampled` is set by `--limit`."""

    dataset: str
    language: str
    embedder: str
    skipped: int
    sampled: bool
    namespaces: int
    top_k: int
    ingestion: Ingestion
    running: Sequence[Running]
    figures: Figures
    provenance: Provenance


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """A whole run: a summary per folder, and the mean over the folders if there are several."""

    provenance: Provenance
    sets: Sequence[Summary]
    macro: Figures | None


def running(answers: Mapping[str, Sequence[JudgedAnswer]]) -> list[Running]:
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
