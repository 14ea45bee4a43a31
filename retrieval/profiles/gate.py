"""The never-worse gate: a profile goes live only if a paired test does not find it worse than what it replaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from retrieval.plurals import counted
from retrieval.profiles.profile import Profile
from retrieval.significance import Scores, compare, macro_mean
from retrieval.types.memory import Zoned

MEASURE = "ndcg@10"
LEAST_QUERIES = 50
"""Fewer queries cannot detect a harm worth preventing."""

SIGNIFICANT = 0.05
"""Significance level, not corrected for the number of intents: a gate should rather reject too often."""

_EVEN = 1e-9
"""Differences of means below this are rounding errors."""


class PairedComparison(Struct, frozen=True, kw_only=True):
    """Candidate against baseline on the same queries.

    Attributes:
        n: number of queries.
        candidate: its mean score.
        baseline: its mean score.
        difference: candidate minus baseline.
        low: lower end of the difference's 95 % confidence interval.
        high: its upper end.
        p: two-sided p-value of the paired randomisation test.
        wins: queries on which the candidate is better.
        ties: queries on which both score the same.
        losses: queries on which the baseline is better.
    """

    n: int
    candidate: float
    baseline: float
    difference: float
    low: float
    high: float
    p: float
    wins: int
    ties: int
    losses: int

    @property
    def worse(self) -> bool:
        """Whether the candidate is significantly below the baseline."""
        return self.difference < -_EVEN and self.p < SIGNIFICANT


class GateReport(Struct, frozen=True, kw_only=True):
    """Whether a candidate may become live, and why.

    Attributes:
        passed: whether it may.
        candidate: its label.
        candidate_sha256: `Profile.fingerprint` of the measured parameters.
        baseline: what it was compared with: a profile's fixed recipe, by its `fixed_name`.
        n: number of queries with gold.
        folds: number of folds that held out the candidate's rankings; 0 if nothing was fitted on these queries.
        seed: of the folds, the tests and the intervals.
        measure: the measure compared.
        overall: on all queries, with equal weight for every evaluation set.
        intents: by intent, on its queries.
        reasons: objections, in sentences; empty if it passed.
        created_at: when it was measured.
        live: the live version, the second baseline; None if there is none.
        against_live: on all queries, with `live` as the baseline.
    """

    passed: bool
    candidate: str
    candidate_sha256: Annotated[str, Meta(description="of the parameters that were measured")]
    baseline: str
    n: int
    folds: Annotated[int, Meta(description="0: nothing was fitted on these queries")]
    seed: int
    measure: str
    overall: PairedComparison
    intents: dict[str, PairedComparison]
    reasons: list[str]
    created_at: Zoned
    live: Annotated[str | None, Meta(description="the live version; null: there was none")] = None
    against_live: PairedComparison | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """Queries with gold and their scores in `MEASURE`, one entry per query in every field.

    Attributes:
        sets: the evaluation set; each set has equal weight.
        intents: as labelled, or else as classified.
        baseline: scores of the fixed recipe.
        weights: weight of each query relative to the others of its set, > 0; None for equal weights.
    """

    sets: Sequence[str]
    intents: Sequence[str]
    candidate: Scores
    baseline: Scores
    live: Scores | None = None
    weights: Scores | None = None


def fixed_name(label: str) -> str:
    """What the fixed recipe of a profile is called."""
    return f"{label} fixed"


def judge(
    trial: Trial,
    *,
    candidate: Profile,
    baseline: str,
    live: str | None = None,
    folds: int,
    seed: int,
    now: datetime | None = None,
) -> GateReport:
    """Judge a candidate.

    It passes if there are at least 50 queries, its mean is not below the baseline's, and it is significantly worse on
    no intent. The same must hold against the live version, if there is one.

    `baseline` and `live` name what the trial scores by those names; `folds` is the number of folds that held out the
    candidate's scores, 0 if nothing was fitted on these queries; `now` is the report's time, by default the current.

    Raises:
        ValueError: there are no queries, or the fields differ in length.
    """
    n = len(trial.sets)
    if n == 0 or not len(trial.intents) == len(trial.candidate) == len(trial.baseline) == n:
        raise ValueError("a trial needs at least one query, and an intent and a score of each system for every one")
    overall, intents = _compared(trial, trial.baseline, seed)
    reasons = []
    if n < LEAST_QUERIES:
        reasons.append(
            f"{counted(n, 'query has', 'queries have')} relevant memories; the gate wants at least {LEAST_QUERIES}"
        )
    reasons += _objections(overall, intents, baseline)
    against_live = None
    if trial.live is not None and live is not None:
        against_live, by_intent = _compared(trial, trial.live, seed)
        reasons += _objections(against_live, by_intent, live)
    return GateReport(
        passed=not reasons,
        candidate=candidate.label,
        candidate_sha256=candidate.fingerprint,
        baseline=baseline,
        n=n,
        folds=folds,
        seed=seed,
        measure=MEASURE,
        overall=overall,
        intents=intents,
        reasons=reasons,
        created_at=now or datetime.now(UTC),
        live=live,
        against_live=against_live,
    )


def _compared(trial: Trial, baseline: Scores, seed: int) -> tuple[PairedComparison, dict[str, PairedComparison]]:
    """The comparison on all queries, and by intent."""
    labels = np.asarray(trial.intents)
    return comparison(trial, baseline, np.arange(len(labels)), seed=seed), {
        str(intent): comparison(trial, baseline, np.flatnonzero(labels == intent), seed=seed)
        for intent in np.unique(labels)
    }


def comparison(trial: Trial, baseline: Scores, rows: NDArray[np.intp], *, seed: int) -> PairedComparison:
    """Compare the candidate with a baseline on some of the queries.

    A weighted mean is computed as the plain mean of scores scaled by weights of mean 1.
    """
    sets = np.asarray([trial.sets[row] for row in rows])
    scale = np.ones(len(rows)) if trial.weights is None else mean_one(trial.weights[rows], sets)
    ours, theirs = trial.candidate[rows] * scale, baseline[rows] * scale
    found = compare(ours[:, None], theirs[:, None], sets.tolist(), seed=seed)[0]
    return PairedComparison(
        n=len(rows),
        candidate=macro_mean(ours, sets),
        baseline=macro_mean(theirs, sets),
        difference=found.difference.mean,
        low=found.difference.low,
        high=found.difference.high,
        p=found.p_value,
        wins=found.wins,
        ties=found.ties,
        losses=found.losses,
    )


def mean_one(weights: Scores, sets: NDArray[np.str_]) -> Scores:
    """Scale the weights to a mean of 1 in every set."""
    scaled = weights.astype(np.float64)
    for name in np.unique(sets):
        scaled[sets == name] /= scaled[sets == name].mean()
    return scaled


def _objections(overall: PairedComparison, intents: Mapping[str, PairedComparison], baseline: str) -> list[str]:
    """Objections to the candidate, in sentences."""
    found = []
    if overall.difference < -_EVEN:
        found.append(
            f"over all {overall.n} queries its {MEASURE} is {-overall.difference:.4f} below that of {baseline} "
            f"({overall.candidate:.4f} against {overall.baseline:.4f}, p = {overall.p:.3f})"
        )
    found += [
        f"on the {each.n} queries of intent {intent} it is significantly worse than {baseline} "
        f"({each.candidate:.4f} against {each.baseline:.4f}, p = {each.p:.3f})"
        for intent, each in intents.items()
        if each.worse
    ]
    return found
