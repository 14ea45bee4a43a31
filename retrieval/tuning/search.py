"""The search for a better profile: recipes looked up on a grid, how far to follow them chosen by cross-validation.

A study is the search on all queries, and on parts of them to measure its effect on unseen queries.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from classifier.intents import INTENTS
from retrieval.evaluation.runner import Progress
from retrieval.profiles.profile import Profile
from retrieval.tuning.grid import TRUSTS, GridTable, distances, recipe_at, tabulate
from retrieval.tuning.replay import (
    SAME,
    Floats,
    JudgedQueries,
    ReplayBatch,
    adaptive_recipes,
    batch_of,
    importance,
    quality,
)
from retrieval.tuning.runs import SavedQuery

MARGIN = 0.001
"""Recipes whose nDCG@10 differs by less are equally good; the one nearest to the current recipe wins."""

PRIORS = (None, 400.0, 100.0, 25.0)
"""Weight of the mean over all intents, in queries, against an intent's own; None: all intents are alike."""

SHRINKS = (0.5, 1.0)
INNER_FOLDS = 5

SHARES = (0.1, 0.25, 0.5, 1.0)
"""Shares of the training queries, for the learning curve."""

Rows = NDArray[np.intp]


class FitSettings(Struct, frozen=True, kw_only=True):
    """How far a fit follows the data: trust and shrink of the profile, a prior of `PRIORS`."""

    trust: float
    shrink: float
    prior: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Data:
    """The data of a search: saved queries, also as arrays, their nDCG under the grid, the profile to start from."""

    queries: Sequence[SavedQuery]
    batch: ReplayBatch
    table: GridTable
    base: Profile


@dataclass(frozen=True, kw_only=True, slots=True)
class Fit:
    """A fitted profile; `settings` is None if nothing tried is better than the base."""

    profile: Profile
    settings: FitSettings | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Study:
    """The results of a study.

    Attributes:
        parts: the held-out folds, as row numbers.
        held_out: by share of the training queries, nDCG@10 of each query by a fit that has not seen its fold.
        fits: by fold, from all its training queries.
        final: the fit of all queries; the base if the fits do not surpass it on unseen queries.
    """

    data: Data
    parts: Sequence[Rows]
    held_out: dict[float, Floats]
    fits: Sequence[Fit]
    final: Fit


def data_of(queries: Sequence[SavedQuery], base: Profile, progress: Progress = lambda _: None) -> Data:
    """The search data of queries that the base's legs answered.

    `progress` is called for each query and fan-out.
    """
    table = tabulate(queries, base, sorted({*TRUSTS, base.learned_share}), progress)
    return Data(queries=queries, batch=batch_of(queries, base), table=table, base=base)


def study(data: Data, *, count: int, seed: int, progress: Progress = lambda _: None) -> Study:
    """Fit without each fold, on all and on parts of the other queries, then on everything.

    `progress` is called for each fit; there are at most `count * len(SHARES) + 1`.
    """
    n = len(data.queries)
    parts = folds(data.queries, count, seed=seed)
    held_out = {share: np.zeros(n) for share in SHARES}
    fits: list[Fit] = []
    for part in parts:
        learned_from = np.random.default_rng(seed).permutation(without(part, n))
        judged = JudgedQueries([data.queries[row] for row in part], data.base)
        for share in SHARES:
            rows = np.sort(learned_from[: max(1, round(share * len(learned_from)))])
            found = fit(data, rows, seed=seed) if len(rows) else Fit(profile=data.base, settings=None)
            held_out[share][part] = judged.adaptive(found.profile)
            progress(1)
        fits.append(found)
    present = quality(data.batch, adaptive_recipes(data.batch, data.base))
    surpassed = float(((held_out[SHARES[-1]] - present) * importance(data.queries)).mean()) > SAME
    final = fit(data, np.arange(n), seed=seed) if surpassed else Fit(profile=data.base, settings=None)
    progress(1)
    return Study(data=data, parts=parts, held_out=held_out, fits=fits, final=final)


def candidates(table: GridTable) -> list[FitSettings]:
    """The settings to try, the simplest first."""
    return [
        FitSettings(trust=trust, shrink=shrink, prior=prior)
        for prior in PRIORS
        for trust in table.trusts
        for shrink in (SHRINKS if prior is not None else SHRINKS[-1:])
    ]


def fit(data: Data, rows: Rows, *, seed: int) -> Fit:
    """The best profile for some of the queries.

    The settings are chosen on inner folds, by their mean there; they must beat the base by more than the standard
    error of the difference.
    """
    tried = candidates(data.table)
    queries = [data.queries[row] for row in rows]
    held_out = np.zeros((len(tried), len(rows)))
    parts = folds(queries, INNER_FOLDS, seed=seed)
    if len(parts) < 2:
        return Fit(profile=data.base, settings=None)
    for part in parts:
        learned_from = rows[without(part, len(rows))]
        judged = JudgedQueries([queries[at] for at in part], data.base)
        made = Fitter(data, learned_from)
        for at, settings in enumerate(tried):
            held_out[at, part] = judged.adaptive(made.profile(settings))
    present = quality(data.batch, adaptive_recipes(data.batch, data.base))[rows]
    weights = importance(queries)
    gains = (held_out - present) * weights
    best = _nearest_of_best(gains.mean(axis=1), np.arange(len(tried)))  # the simplest is the first
    if gains[best].mean() <= gains[best].std(ddof=1) / np.sqrt(len(rows)):
        return Fit(profile=data.base, settings=None)
    return Fit(profile=Fitter(data, rows).profile(tried[best]), settings=tried[best])


class Fitter:
    """Fits profiles to some rows; what all settings share is computed once."""

    def __init__(self, data: Data, rows: Rows) -> None:
        weights = importance([data.queries[row] for row in rows])
        shares = data.batch.probabilities[rows] * weights[:, None]
        self._base = data.base
        self._trusts = data.table.trusts
        self._counts = shares.sum(axis=0)
        summed = []
        for table in data.table.values:  # one by one, as a copy of all takes a gigabyte for 5,000 queries
            values = table[rows].astype(np.float64)
            summed.append((weights @ values / len(rows), shares.T @ values))
        self._overall, self._by_intent = map(np.stack, zip(*summed, strict=True))
        self.fixed_worth: Floats = self._overall[self._trusts.index(0.0)]
        self.fixed = recipe_at(_nearest_of_best(self.fixed_worth, distances(data.base.fixed)))

    def worth(self, settings: FitSettings, number: int) -> Floats:
        """The quality of every recipe of the grid for an intent, flat; its probability weighs the queries."""
        at = self._trusts.index(settings.trust)
        overall: Floats = self._overall[at]
        if settings.prior is None:
            return overall
        seen: Floats = self._by_intent[at, number] + settings.prior * overall
        return seen / float(self._counts[number] + settings.prior)

    def profile(self, settings: FitSettings) -> Profile:
        """The profile of these settings, with the base's name and version."""
        away = distances(self.fixed)
        recipes = {
            intent: recipe_at(_nearest_of_best(self.worth(settings, number), away))
            for number, intent in enumerate(INTENTS)
        }
        return replace(
            self._base, fixed=self.fixed, per_intent=recipes, learned_share=settings.trust, shrink=settings.shrink
        )


def _nearest_of_best(worth: Floats, away: Floats | Rows) -> int:
    """Of those as good as the best, the nearest; of equally near ones, the first."""
    good = np.flatnonzero(worth >= worth.max() - MARGIN)
    return int(good[np.argmin(away[good])])


def folds(queries: Sequence[SavedQuery], count: int, *, seed: int) -> list[Rows]:
    """Split queries into at most `count` parts of about the same size; row numbers of each part, none empty.

    In a set of several namespaces each namespace stays whole, so that no held-out namespace is trained on; in others
    queries are dealt out one by one, equal texts together.
    """
    spaces = Counter(name for name, _ in {(query.set, query.namespace) for query in queries})
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row, query in enumerate(queries):
        groups[query.set, query.namespace if spaces[query.set] > 1 else query.asked].append(row)
    rng = np.random.default_rng(seed)
    names = sorted(groups)
    dealt = sorted((names[at] for at in rng.permutation(len(names))), key=lambda name: -len(groups[name]))
    parts: list[list[int]] = [[] for _ in range(count)]
    filled: Counter[tuple[str, int]] = Counter()
    for name in dealt:  # the largest first, each to the part with the least of its set, then the least of all
        at = min(range(count), key=lambda part: (filled[name[0], part], len(parts[part])))
        parts[at] += groups[name]
        filled[name[0], at] += len(groups[name])
    return [np.array(sorted(part), np.intp) for part in parts if part]


def without(rows: Rows, n: int) -> Rows:
    """The other rows of `n`."""
    return np.setdiff1d(np.arange(n), rows)
