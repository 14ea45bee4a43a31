"""How sure a mean over queries is, and whether two systems differ. Everything is seeded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

RESAMPLES = 2_000
CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """A mean and the bounds of its 95 % confidence interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """System a against system b on the same queries.

    Attributes:
        difference: mean of a - b, with its interval.
        p_value: two-sided, of the hypothesis that the sign of each query's difference is chance.
        wins, ties, losses: queries where a is above, equal to, below b.
    """

    difference: Interval
    p_value: float
    wins: int
    ties: int
    losses: int


def bootstrap(values: Matrix, strata: Sequence[str], *, seed: int, resamples: int = RESAMPLES) -> list[Interval]:
    """Percentile bootstrap over queries, of the mean over strata of each stratum's mean.

    Every column is resampled with the same queries. With one stratum it is the plain mean over
    queries; with a stratum per namespace the macro mean, where queries are drawn within each.
    Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13.

    Args:
        values: (queries, columns) scores, at least one row.
        strata: the stratum of each row.
        seed: of the generator.
        resamples: how many samples with replacement are drawn.

    Returns:
        One interval per column.
    """
    rng = np.random.default_rng(seed)
    groups = np.asarray(strata)
    names = np.unique(groups)
    means = np.zeros(values.shape[1])
    samples = np.zeros((resamples, values.shape[1]))
    for name in names:
        rows = values[groups == name]
        n = len(rows)
        draws = rng.multinomial(n, np.full(n, 1.0 / n), size=resamples)
        samples += (draws @ rows) / n
        means += rows.mean(axis=0)
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = np.quantile(samples / len(names), [tail, 1.0 - tail], axis=0)
    return [
        Interval(mean=float(m), low=float(a), high=float(b))
        for m, a, b in zip(means / len(names), low, high, strict=True)
    ]


def compare(
    a: Sequence[float] | Matrix, b: Sequence[float] | Matrix, *, seed: int, resamples: int = 10_000
) -> Comparison:
    """Paired randomisation test: the share of random sign flips at least as extreme as what was seen.

    p = (1 + hits) / (1 + resamples), so never 0. Smucker, Allan and Carterette, CIKM 2007,
    doi:10.1145/1321440.1321528.

    Args:
        a: scores of one system, one per query.
        b: scores of the other, the same queries in the same order.
        seed: of the generator.
        resamples: how many sign flips are drawn.
    """
    differences = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    rng = np.random.default_rng(seed)
    observed = abs(differences.sum())
    changed = differences[differences != 0.0]
    hits = 0
    for start in range(0, resamples, 1_000):
        signs = rng.choice([-1.0, 1.0], size=(min(1_000, resamples - start), len(changed)))
        hits += int(np.count_nonzero(np.abs(signs @ changed) >= observed - 1e-12))
    interval = bootstrap(differences[:, None], ["all"] * len(differences), seed=seed)[0]
    return Comparison(
        difference=interval,
        p_value=(1 + hits) / (1 + resamples),
        wins=int(np.count_nonzero(differences > 0)),
        ties=int(np.count_nonzero(differences == 0)),
        losses=int(np.count_nonzero(differences < 0)),
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction for several tests. Scandinavian J. of Statistics 6(2), 1979.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    corrected = [0.0] * len(p_values)
    running = 0.0
    for step, i in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - step) * p_values[i]))
        corrected[i] = running
    return corrected
