"""The search for a better profile: recipes by look-up on a grid, how far to follow them by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from classifier.intents import INTENTS
from retrieval.profiles import Profile
from retrieval.tuning.batch import Batch, Floats, batch_of, importance, served_depth
from retrieval.tuning.folds import Rows, folds, without
from retrieval.tuning.grid import Table, distances, recipe_at
from retrieval.tuning.replay import adaptive_recipes, quality
from retrieval.tuning.runs import SavedQuery

MARGIN = 0.001
"""Recipes whose nDCG@10 differs by less are equally good; the one nearest to what there is wins."""

PRIORS = (None, 400.0, 100.0, 25.0)
"""How many queries of all intents an intent's own are weighed against; None: all intents are alike."""

SHRINKS = (0.5, 1.0)
INNER_FOLDS = 5

Progress = Callable[[int], None]


class Settings(Struct, frozen=True, kw_only=True):
    """How far a fit follows what it sees.

    Attributes:
        trust, shrink: the profile's.
        prior: of `PRIORS`.
    """

    trust: float
    shrink: float
    prior: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Data:
    """What is searched on.

    Attributes:
        queries: saved with the profile's legs.
        batch: the same as arrays.
        table: their worth under the grid.
        base: the profile that the search starts from, and stays at if nothing better is there.
    """

    queries: Sequence[SavedQuery]
    batch: Batch
    table: Table
    base: Profile


@dataclass(frozen=True, kw_only=True, slots=True)
class Fit:
    """A fitted profile; `settings` is None where the base is as good as anything that was tried."""

    profile: Profile
    settings: Settings | None


class Judged:
    """Queries on which profiles of the same legs are judged; arrays are made once for every fan-out."""

    def __init__(self, queries: Sequence[SavedQuery], base: Profile) -> None:
        self._queries = queries
        self._base = base
        self._batches: dict[int, Batch] = {}

    def adaptive(self, profile: Profile) -> Floats:
        """nDCG@10 of each query in mode adaptive."""
        depth = served_depth(self._queries, profile.fan_out)
        if depth not in self._batches:
            self._batches[depth] = batch_of(self._queries, self._base, depth)
        batch = self._batches[depth]
        return quality(batch, adaptive_recipes(batch, profile))


def candidates(table: Table) -> list[Settings]:
    """What is tried, the simplest first."""
    return [
        Settings(trust=trust, shrink=shrink, prior=prior)
        for prior in PRIORS
        for trust in table.trusts
        for shrink in (SHRINKS if prior is not None else SHRINKS[-1:])
    ]


def fit(data: Data, rows: Rows, *, seed: int) -> Fit:
    """The best profile by what some of the queries show.

    How far to follow them is chosen on inner folds: settings win by their mean there, and only if that is above
    the base's by more than the standard error of the difference.
    """
    tried = candidates(data.table)
    queries = [data.queries[row] for row in rows]
    held_out = np.zeros((len(tried), len(rows)))
    parts = folds(queries, INNER_FOLDS, seed=seed)
    if len(parts) < 2:
        return Fit(profile=data.base, settings=None)
    for part in parts:
        learned_from = rows[without(part, len(rows))]
        judged = Judged([queries[at] for at in part], data.base)
        made = Fitter(data, learned_from)
        for at, settings in enumerate(tried):
            held_out[at, part] = judged.adaptive(made.profile(settings))
    present = quality(data.batch, adaptive_recipes(data.batch, data.base))[rows]
    weights = importance(queries)
    gains = (held_out - present) * weights
    best = _simplest_of_best(gains.mean(axis=1))
    if gains[best].mean() <= gains[best].std(ddof=1) / np.sqrt(len(rows)):
        return Fit(profile=data.base, settings=None)
    return Fit(profile=Fitter(data, rows).profile(tried[best]), settings=tried[best])


class Fitter:
    """Makes profiles of some rows; what all settings share is computed once.

    Attributes:
        fixed_worth: of every recipe of the grid, flat, with no trust in the learned weights.
        fixed: the recipe for what nothing is known of.
    """

    def __init__(self, data: Data, rows: Rows) -> None:
        weights = importance([data.queries[row] for row in rows])
        shares = data.batch.probabilities[rows] * weights[:, None]
        values = data.table.values[:, rows].astype(np.float64)
        self._base = data.base
        self._trusts = data.table.trusts
        self._counts = shares.sum(axis=0)
        self._overall = np.einsum("n,tnr->tr", weights, values, optimize=True) / len(rows)
        self._by_intent = np.einsum("ni,tnr->tir", shares, values, optimize=True)
        self.fixed_worth: Floats = self._overall[self._trusts.index(0.0)]
        self.fixed = recipe_at(_nearest_of_best(self.fixed_worth, distances(data.base.fixed)))

    def worth(self, settings: Settings, number: int) -> Floats:
        """What every recipe of the grid is worth for an intent, flat: queries count by its probability.

        Args:
            settings: its `prior` is how many queries of all intents the intent's own are weighed against.
            number: of the intent, in the order of `INTENTS`.
        """
        at = self._trusts.index(settings.trust)
        overall: Floats = self._overall[at]
        if settings.prior is None:
            return overall
        seen: Floats = self._by_intent[at, number] + settings.prior * overall
        return seen / float(self._counts[number] + settings.prior)

    def profile(self, settings: Settings) -> Profile:
        """The profile of these settings, with the base's name and version."""
        away = distances(self.fixed)
        recipes = {
            intent: recipe_at(_nearest_of_best(self.worth(settings, number), away))
            for number, intent in enumerate(INTENTS)
        }
        return replace(self._base, fixed=self.fixed, per_intent=recipes, trust=settings.trust, shrink=settings.shrink)


def _nearest_of_best(worth: Floats, away: Floats) -> int:
    """The recipe nearest to what there is among those that are as good as the best."""
    good = np.flatnonzero(worth >= worth.max() - MARGIN)
    return int(good[np.argmin(away[good])])


def _simplest_of_best(means: NDArray[np.float64]) -> int:
    """The first of those that are as good as the best."""
    return int(np.flatnonzero(means >= means.max() - MARGIN)[0])
