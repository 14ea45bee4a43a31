"""How sure a mean over queries is, and whether two systems differ. Everything is seeded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval.types.evaluation import Estimate

Scores = NDArray[np.float64]

RESAMPLES = 2_000
SIGN_FLIPS = 10_000
CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True, slots=True)
class PairedTest:
    """System a against system b on the same queries: the mean of a - b, and where a is above, equal to, below b.

    `p_value` is two-sided, of the hypothesis that the sign of each query's difference is chance.
    """

    queries: int
    difference: Estimate
    p_value: float
    wins: int
    ties: int
    losses: int


def bootstrap(values: Scores, strata: Sequence[str], *, seed: int) -> list[Estimate]:
    """Percentile bootstrap over queries of the mean over strata of each stratum's mean; one interval per column.

    Every column is resampled with the same queries. With one stratum it is the plain mean over
    queries; with a stratum per namespace the macro mean, where queries are drawn within each.
    Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13. Of n rows n - 1 are
    drawn, so that strata of few queries do not look surer than they are: Rao and Wu, JASA 83(401),
    1988. A stratum of one row says nothing about its spread and adds none.

    `values` are (queries, columns) scores of at least one row, `strata` the stratum of each row.
    """
    rng = np.random.default_rng(seed)
    groups = np.asarray(strata)
    names = np.unique(groups)
    means = np.zeros(values.shape[1])
    samples = np.zeros((RESAMPLES, values.shape[1]))
    for name in names:
        rows = values[groups == name]
        n = len(rows)
        drawn = max(1, n - 1)
        draws = rng.multinomial(drawn, np.full(n, 1.0 / n), size=RESAMPLES)
        samples += (draws @ rows) / drawn
        means += rows.mean(axis=0)
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = np.quantile(samples / len(names), [tail, 1.0 - tail], axis=0)
    return [
        Estimate(mean=float(m), low=float(a), high=float(b))
        for m, a, b in zip(means / len(names), low, high, strict=True)
    ]


def macro_mean(values: Scores, strata: Sequence[str] | NDArray[np.str_]) -> float:
    """The mean over strata of each stratum's mean."""
    groups = np.asarray(strata)
    return float(np.mean([values[groups == name].mean() for name in np.unique(groups)]))


def compare(a: Scores, b: Scores, strata: Sequence[str], *, seed: int) -> list[PairedTest]:
    """Paired randomisation test: the share of random sign flips at least as extreme as the observed mean, per column.

    The statistic is the mean over strata of each stratum's mean difference, as in `bootstrap`.
    p = (1 + hits) / (1 + flips), so never 0. All columns share their flips. Smucker, Allan and
    Carterette, CIKM 2007, doi:10.1145/1321440.1321528.

    `a` and `b` are (queries, columns) scores of the same queries, at least one, in the same order.
    """
    differences = a - b
    sizes = Counter(strata)
    weights = np.array([1.0 / (len(sizes) * sizes[stratum]) for stratum in strata])
    weighted = differences * weights[:, None]
    observed = np.abs(weighted.sum(axis=0))
    rng = np.random.default_rng(seed)
    hits = np.zeros(differences.shape[1])
    for start in range(0, SIGN_FLIPS, 1_000):
        signs = rng.integers(0, 2, size=(min(1_000, SIGN_FLIPS - start), len(weighted)), dtype=np.int8) * 2.0 - 1.0
        hits += np.count_nonzero(np.abs(signs @ weighted) >= observed - 1e-12, axis=0)
    return [
        PairedTest(
            queries=len(column),
            difference=interval,
            p_value=float((1 + hit) / (1 + SIGN_FLIPS)),
            wins=int(np.count_nonzero(column > 0)),
            ties=int(np.count_nonzero(column == 0)),
            losses=int(np.count_nonzero(column < 0)),
        )
        for column, interval, hit in zip(differences.T, bootstrap(differences, strata, seed=seed), hits, strict=True)
    ]


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction for several tests. Scandinavian J. of Statistics 6(2), 1979.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    given = np.array(p_values, np.float64)
    order = np.argsort(given, kind="stable")
    corrected = np.empty_like(given)
    corrected[order] = np.maximum.accumulate(np.minimum(1.0, given[order] * np.arange(len(given), 0, -1)))
    return [float(p_value) for p_value in corrected]
