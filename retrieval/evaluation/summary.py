"""The figures of an evaluation, as they are printed and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from retrieval.evaluation.answers import Answer
from retrieval.evaluation.cells import Cell
from retrieval.evaluation.comparisons import Verdict, Versus
from retrieval.evaluation.outcomes import Outcome
from retrieval.evaluation.packs import BudgetCell
from retrieval.evaluation.runner import Ingestion


@dataclass(frozen=True, kw_only=True, slots=True)
class Running:
    """How a system ran: median and 95th percentile milliseconds, and searches by leg that failed."""

    system: str
    median_ms: float
    p95_ms: float
    degraded: Mapping[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """The figures of one set, or of several of which each counts alike.

    Attributes:
        queries: how many were scored.
        judged: the system that is held against the others, see `Plan.judged`.
        cells: means per group and system.
        versus: the judged system against each other one.
        stages: stages of the ranking against each other.
        outcomes: what these two kinds of tests won, tied and lost by group of queries.
        ablations: `adaptive` against itself without one part: what the part brings.
        verdicts: `adaptive` against the best single leg and equal weights.
        budgets: evidence in context packs, where budgets were given.
    """

    queries: int
    judged: str
    cells: Sequence[Cell]
    versus: Sequence[Versus]
    stages: Sequence[Versus]
    outcomes: Sequence[Outcome]
    ablations: Sequence[Versus]
    verdicts: Sequence[Verdict]
    budgets: Sequence[BudgetCell]

    def cell(self, group: str, system: str) -> Cell:
        """The figures of a system over a group."""
        return next(cell for cell in self.cells if cell.group == group and cell.system == system)


@dataclass(frozen=True, kw_only=True, slots=True)
class Provenance:
    """What the figures come from.

    Attributes:
        date: when the run began, ISO 8601 in UTC.
        seed: of the sample, the intervals and the tests.
        profile: the profile of the system that is judged, with its version.
        profiles: the profile of each system, with its version.
        versions: of Trivet and what it computes with.
        models: sha256 of each model, by its path in `models/`, or by what it is to which profile.
    """

    date: str
    seed: int
    profile: str
    profiles: Mapping[str, str]
    versions: Mapping[str, str]
    models: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """An evaluation folder's report.

    Attributes:
        dataset: its name.
        language: of the analysis.
        skipped: queries left out because nothing is relevant to them.
        sampled: whether `--limit` left others out.
    """

    dataset: str
    language: str
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
    """All of a run: a summary per folder, and the mean over the folders where there are several."""

    provenance: Provenance
    sets: Sequence[Summary]
    macro: Figures | None


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
