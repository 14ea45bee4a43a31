"""The never-worse gate: a profile goes live only if a paired test does not find it worse than what it replaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from retrieval.evaluation import intervals
from retrieval.profiles import Profile
from retrieval.types import Zoned

MEASURE = "ndcg@10"
LEAST_QUERIES = 50
"""Fewer cannot show a harm that is worth fearing."""

SIGNIFICANT = 0.05
"""Uncorrected for the number of intents: a gate that errs should err by refusing."""

_EVEN = 1e-9
"""Differences of means below this are what the order of adding up leaves."""

Scores = NDArray[np.float64]


class Comparison(Struct, frozen=True, kw_only=True):
    """Candidate against baseline on the same queries.

    Attributes:
        n: queries.
        candidate: its mean.
        baseline: its mean.
        difference: candidate less baseline.
        low: lower end of the difference's 95 % confidence interval.
        high: its upper end.
        p: two-sided, of the paired randomisation test.
        wins: queries on which the candidate is better.
        ties: on which both are as good.
        losses: on which the baseline is better.
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
        candidate_sha256: `Profile.fingerprint` of what was measured.
        baseline: what it was compared with: the fixed recipe of a profile.
        n: queries with gold.
        folds: on how many folds the candidate's rankings were held out; 0 where nothing was fitted on these queries.
        seed: of the folds, the tests and the intervals.
        measure: what was compared.
        overall: on all queries; every evaluation set counts alike.
        intents: on the queries of each intent that has any.
        reasons: what speaks against it, in sentences; empty where it passed.
        created_at: when it was measured.
        live: what else it was compared with: the live version as it answers; None where there is none.
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
    overall: Comparison
    intents: dict[str, Comparison]
    reasons: list[str]
    created_at: Zoned
    live: Annotated[str | None, Meta(description="the live version as it answers; null: there was none")] = None
    against_live: Comparison | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """Queries with gold and what was scored on them, one entry per query in every field.

    Attributes:
        sets: the evaluation set; each counts alike.
        intents: as labelled, else as classified.
        candidate: scores in `MEASURE`.
        baseline: scores of the fixed recipe.
        live: scores of the live version as it answers; None where there is none.
        weights: how much a query counts against the others of its set, > 0; None for all alike.
    """

    sets: Sequence[str]
    intents: Sequence[str]
    candidate: Scores
    baseline: Scores
    live: Scores | None = None
    weights: Scores | None = None


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

    It passes if there are at least 50 queries, its mean is not below the baseline's, and it is
    significantly worse on no intent; against the live version the same holds where there is one.

    Args:
        trial: the scores.
        candidate: the profile.
        baseline: what `trial.baseline` is of, in words.
        live: what `trial.live` is of.
        folds: on how many folds the candidate's scores were held out, 0 if nothing was fitted on these queries.
        seed: of the tests and intervals.
        now: the report's time; None for this moment.

    Raises:
        ValueError: there are no queries, or not an intent and a score of each system for every one.
    """
    n = len(trial.sets)
    if n == 0 or not len(trial.intents) == len(trial.candidate) == len(trial.baseline) == n:
        raise ValueError("a trial needs at least one query, and an intent and a score of each system for every one")
    overall, intents = _compared(trial, trial.baseline, seed)
    reasons = [] if n >= LEAST_QUERIES else [f"{n} queries have gold; the gate wants at least {LEAST_QUERIES}"]
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


def _compared(trial: Trial, baseline: Scores, seed: int) -> tuple[Comparison, dict[str, Comparison]]:
    """On all queries, and on those of each intent."""
    labels = np.asarray(trial.intents)
    intents = {str(intent): np.flatnonzero(labels == intent) for intent in np.unique(labels)}
    return comparison(trial, baseline, np.arange(len(labels)), seed=seed), {
        intent: comparison(trial, baseline, rows, seed=seed) for intent, rows in intents.items()
    }


def comparison(trial: Trial, baseline: Scores, rows: NDArray[np.intp], *, seed: int) -> Comparison:
    """The candidate against a baseline on some of the queries.

    A weighted mean is the plain mean of scores that are scaled by weights of mean 1.
    """
    sets = np.asarray([trial.sets[row] for row in rows])
    scale = np.ones(len(rows)) if trial.weights is None else _mean_one(trial.weights[rows], sets)
    ours, theirs = trial.candidate[rows] * scale, baseline[rows] * scale
    found = intervals.compare(ours[:, None], theirs[:, None], sets.tolist(), seed=seed)[0]
    return Comparison(
        n=len(rows),
        candidate=_macro(ours, sets),
        baseline=_macro(theirs, sets),
        difference=found.difference.mean,
        low=found.difference.low,
        high=found.difference.high,
        p=found.p_value,
        wins=found.wins,
        ties=found.ties,
        losses=found.losses,
    )


def _mean_one(weights: Scores, sets: NDArray[np.str_]) -> Scores:
    """The weights, scaled to a mean of 1 in every set."""
    scaled = weights.astype(np.float64)
    for name in np.unique(sets):
        scaled[sets == name] /= scaled[sets == name].mean()
    return scaled


def _macro(values: Scores, sets: NDArray[np.str_]) -> float:
    """The mean over sets of each set's mean."""
    return float(np.mean([values[sets == name].mean() for name in np.unique(sets)]))


def _objections(overall: Comparison, intents: Mapping[str, Comparison], baseline: str) -> list[str]:
    """What speaks against the candidate, in sentences."""
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
