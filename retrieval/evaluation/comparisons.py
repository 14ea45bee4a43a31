"""Paired tests between systems, corrected for their number, and the verdict on `adaptive`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from retrieval.evaluation.intervals import Comparison, compare, holm
from retrieval.evaluation.scores import ScoreTable
from retrieval.types import Leg

MEASURES = ("ndcg@10", "recall@10")
"""The measures that are tested."""

SIGNIFICANT = 0.05

BEST_LEG = "best single leg"
EQUAL = "equal weights"


@dataclass(frozen=True, kw_only=True, slots=True)
class Versus:
    """The first system named against the second; `corrected_p` is Holm's over the tests made together."""

    system: str
    baseline: str
    measure: str
    comparison: Comparison
    corrected_p: float

    @property
    def pair(self) -> str:
        """Which is held against which, such as `adaptive - bm25`."""
        return f"{self.system} - {self.baseline}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """Whether a system keeps up with a yardstick.

    Attributes:
        yardstick: what the baseline stands for: `BEST_LEG` or `EQUAL`.
        versus: the test; its correction is over the verdicts of the set.
        worse: whether the difference is below 0 and its corrected p below 0.05.
    """

    yardstick: str
    versus: Versus
    worse: bool


def pair_names(tests: Sequence[Versus]) -> dict[str, str]:
    """What to call each pair of tests: its baseline where all have the same system."""
    alone = len({test.system for test in tests}) == 1
    return {test.pair: test.baseline if alone else test.pair for test in tests}


def versus(table: ScoreTable, tests: Sequence[tuple[str, str, str]], *, seed: int) -> list[Versus]:
    """Test (system, baseline, measure) triples together: Holm's correction is over all of them.

    Queries are paired, and every set of the table counts alike.
    """
    if not tests:
        return []
    ours = np.hstack([table.column(system, measure) for system, _, measure in tests])
    theirs = np.hstack([table.column(baseline, measure) for _, baseline, measure in tests])
    found = compare(ours, theirs, table.sets, seed=seed)
    return [
        Versus(system=system, baseline=baseline, measure=measure, comparison=comparison, corrected_p=p)
        for (system, baseline, measure), comparison, p in zip(
            tests, found, holm([comparison.p_value for comparison in found]), strict=True
        )
    ]


def against_each(table: ScoreTable, system: str, baselines: Sequence[str], *, seed: int) -> list[Versus]:
    """`system` against each of the others."""
    return against_pairs(table, [(system, other) for other in baselines if other != system], seed=seed)


def against_pairs(table: ScoreTable, pairs: Sequence[tuple[str, str]], *, seed: int) -> list[Versus]:
    """The first system of each pair against the second."""
    return versus(table, [(*pair, measure) for pair in pairs for measure in MEASURES], seed=seed)


def verdicts(table: ScoreTable, system: str, equal_weights: str, *, seed: int) -> list[Verdict]:
    """`system` against the leg that alone is best in a measure, and against equal weights.

    That the best leg is chosen on the queries of the test works against the system.
    """
    tests: list[tuple[str, str, str]] = []
    yardsticks: list[str] = []
    legs = [leg for leg in Leg if leg in table.values]
    for measure in MEASURES:
        if legs:
            best = max(legs, key=lambda leg: _mean(table, leg, measure))
            tests.append((system, best.value, measure))
            yardsticks.append(BEST_LEG)
        if equal_weights in table.values:
            tests.append((system, equal_weights, measure))
            yardsticks.append(EQUAL)
    return [
        Verdict(
            yardstick=yardstick,
            versus=test,
            worse=test.comparison.difference.mean < 0.0 and test.corrected_p < SIGNIFICANT,
        )
        for yardstick, test in zip(yardsticks, versus(table, tests, seed=seed), strict=True)
    ]


def _mean(table: ScoreTable, system: str, measure: str) -> float:
    """The mean over sets of a system's mean in each."""
    values, sets = table.column(system, measure)[:, 0], np.asarray(table.sets)
    return float(np.mean([values[sets == name].mean() for name in np.unique(sets)]))
