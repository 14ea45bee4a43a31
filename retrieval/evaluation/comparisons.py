"""Paired tests between systems, corrected for their number; wins and losses by query type; verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval.evaluation.scores import MACRO_SETS, OVERALL, ScoreTable, type_group
from retrieval.significance import PairedTest, compare, holm, macro_mean
from retrieval.types.evaluation import Verdict
from retrieval.types.search import Leg

MEASURES = ("ndcg@10", "recall@10")
"""The measures that are tested."""

SIGNIFICANT = 0.05

BEST_LEG = "best single leg"
EQUAL = "equal weights"


@dataclass(frozen=True, kw_only=True, slots=True)
class Versus:
    """A test of a system against a baseline; `corrected_p` has Holm's correction over the tests made together."""

    system: str
    baseline: str
    measure: str
    comparison: PairedTest
    corrected_p: float

    @property
    def pair(self) -> str:
        """The systems compared, such as `adaptive - bm25`."""
        return f"{self.system} - {self.baseline}"

    @property
    def verdict(self) -> Verdict:
        """Whether the system is significantly better or worse than the second."""
        if self.corrected_p >= SIGNIFICANT:
            return "not different"
        return "better" if self.comparison.difference.mean > 0.0 else "worse"


@dataclass(frozen=True, kw_only=True, slots=True)
class YardstickVerdict:
    """Whether a system is significantly worse than the best leg or equal weights, corrected over a set's verdicts."""

    yardstick: str
    versus: Versus
    worse: bool


def pair_names(tests: Sequence[Versus]) -> dict[str, str]:
    """The display name of each pair: only the baseline if all tests have the same system."""
    alone = len({test.system for test in tests}) == 1
    return {test.pair: test.baseline if alone else test.pair for test in tests}


def versus(table: ScoreTable, tests: Sequence[tuple[str, str, str]], *, seed: int) -> list[Versus]:
    """Test (system, baseline, measure) triples together, with Holm's correction over all of them.

    Queries are paired, and all sets of the table have equal weight.
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
    """`system` against each baseline."""
    return against_pairs(table, [(system, other) for other in baselines if other != system], seed=seed)


def against_pairs(table: ScoreTable, pairs: Sequence[tuple[str, str]], *, seed: int) -> list[Versus]:
    """The first system of each pair against the second."""
    return versus(table, [(*pair, measure) for pair in pairs for measure in MEASURES], seed=seed)


def verdicts(table: ScoreTable, system: str, equal_weights: str, *, seed: int) -> list[YardstickVerdict]:
    """`system` against the best single leg of each measure, and against equal weights.

    The best leg is chosen on the tested queries, which puts the system at a disadvantage.
    """
    tests: list[tuple[str, str, str]] = []
    legs = [leg for leg in Leg if leg in table.values]
    for measure in MEASURES:
        if legs:
            best = max(legs, key=lambda leg: macro_mean(table.column(leg, measure)[:, 0], table.sets))
            tests.append((system, best.value, measure))
        if equal_weights in table.values:
            tests.append((system, equal_weights, measure))
    return [
        YardstickVerdict(
            yardstick=EQUAL if test.baseline == equal_weights else BEST_LEG,
            versus=test,
            worse=test.verdict == "worse",
        )
        for test in versus(table, tests, seed=seed)
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class OutcomeCounts:
    """How many queries of a group the system wins, ties and loses against the baseline.

    A group is a query type or `all`; over several sets, a set or `macro over sets` with the mean of the sets' shares.
    """

    group: str
    system: str
    baseline: str
    measure: str
    queries: int
    wins: int
    ties: int
    losses: int
    won: float
    tied: float
    lost: float

    @property
    def pair(self) -> str:
        """The systems compared, such as `adaptive - bm25`."""
        return f"{self.system} - {self.baseline}"


def outcomes(table: ScoreTable, tests: Iterable[Versus]) -> list[OutcomeCounts]:
    """The outcomes of each test by query type and overall; over several sets, by set and on average."""
    sets = list(dict.fromkeys(table.sets))
    if len(sets) > 1:
        groups, whole = list(table.sets), MACRO_SETS
    else:
        groups, whole = [type_group(query) for query in table.queries], OVERALL
    return [outcome for test in tests for outcome in _of_test(table, test, groups, whole)]


def _of_test(table: ScoreTable, test: Versus, groups: Sequence[str], whole: str) -> list[OutcomeCounts]:
    ours, theirs = (table.column(name, test.measure) for name in (test.system, test.baseline))
    signs = np.sign(ours - theirs) == [1.0, 0.0, -1.0]
    labels = np.asarray(groups)
    parts = {group: signs[labels == group] for group in dict.fromkeys(groups)}
    macro = np.mean([part.mean(axis=0) for part in parts.values()], axis=0)
    return [
        *(_outcome(test, group, part, part.mean(axis=0)) for group, part in parts.items()),
        _outcome(test, whole, signs, macro if whole == MACRO_SETS else signs.mean(axis=0)),
    ]


def _outcome(test: Versus, group: str, signs: NDArray[np.bool_], shares: NDArray[np.float64]) -> OutcomeCounts:
    """The counts of a group; each row of `signs` says whether a query is won, tied or lost."""
    wins, ties, losses = signs.sum(axis=0).tolist()
    won, tied, lost = shares.tolist()
    return OutcomeCounts(
        group=group,
        system=test.system,
        baseline=test.baseline,
        measure=test.measure,
        queries=len(signs),
        wins=wins,
        ties=ties,
        losses=losses,
        won=won,
        tied=tied,
        lost=lost,
    )
