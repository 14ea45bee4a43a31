"""Which kinds of queries a system wins, ties and loses against another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval.evaluation.cells import MACRO_SETS, OVERALL
from retrieval.evaluation.comparisons import Versus
from retrieval.evaluation.scores import ScoreTable


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """A test's queries of one group.

    Attributes:
        group: a query type or `all`; over several sets a set or `macro over sets`.
        system: the first system of the test.
        baseline: the second.
        measure: in what they are compared.
        queries: how many there are.
        wins, ties, losses: queries where the system is above, equal to, below the baseline.
        won, tied, lost: their shares; of `macro over sets` the means of the sets' shares.
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
        """Which is held against which, such as `adaptive - bm25`."""
        return f"{self.system} - {self.baseline}"


def outcomes(table: ScoreTable, tests: Iterable[Versus]) -> list[Outcome]:
    """The outcomes of each test by type of query and in all; over several sets by set and on average."""
    sets = list(dict.fromkeys(table.sets))
    if len(sets) > 1:
        groups, whole = list(table.sets), MACRO_SETS
    else:
        groups, whole = [query.type for query in table.queries], OVERALL
    return [outcome for test in tests for outcome in _of_test(table, test, groups, whole)]


def _of_test(table: ScoreTable, test: Versus, groups: Sequence[str], whole: str) -> list[Outcome]:
    ours, theirs = (table.column(name, test.measure)[:, 0] for name in (test.system, test.baseline))
    signs = np.sign(ours - theirs)
    labels = np.asarray(groups)
    parts = [signs[labels == group] for group in dict.fromkeys(groups)]
    macro = np.mean([_shares(part) for part in parts], axis=0) if whole == MACRO_SETS else _shares(signs)
    return [
        *(_outcome(test, group, part, _shares(part)) for group, part in zip(dict.fromkeys(groups), parts, strict=True)),
        _outcome(test, whole, signs, macro),
    ]


def _shares(signs: NDArray[np.float64]) -> NDArray[np.float64]:
    """(3,) shares that are above, equal to and below 0."""
    return np.array([np.mean(signs == sign) for sign in (1.0, 0.0, -1.0)])


def _outcome(test: Versus, group: str, signs: NDArray[np.float64], shares: NDArray[np.float64]) -> Outcome:
    won, tied, lost = map(float, shares)
    return Outcome(
        group=group,
        system=test.system,
        baseline=test.baseline,
        measure=test.measure,
        queries=len(signs),
        wins=int(np.count_nonzero(signs == 1.0)),
        ties=int(np.count_nonzero(signs == 0.0)),
        losses=int(np.count_nonzero(signs == -1.0)),
        won=won,
        tied=tied,
        lost=lost,
    )
