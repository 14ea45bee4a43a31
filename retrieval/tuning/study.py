"""A tuning from saved runs to figures: held-out folds, the learning curve, the profile that all queries ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from retrieval.evaluation.runner import Progress
from retrieval.profiles.gate import Trial
from retrieval.profiles.profile import Profile
from retrieval.tuning.grid import TRUSTS, tabulate
from retrieval.tuning.replay import SAME, Floats, JudgedQueries, adaptive_recipes, batch_of, importance, quality
from retrieval.tuning.runs import SavedQuery
from retrieval.tuning.search import Data, Fit, Rows, fit, folds, without

SHARES = (0.1, 0.25, 0.5, 1.0)
"""Of the queries that are learned from, for the learning curve."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Study:
    """What was found.

    Attributes:
        parts: the held-out folds, as row numbers.
        held_out: by share of what is learned from, nDCG@10 of each query by a fit that has not seen its fold.
        fits: by fold, of all that is learned from.
        final: the fit of all queries; the base where fits do not surpass it on queries that they have not seen.
    """

    data: Data
    parts: Sequence[Rows]
    held_out: dict[float, Floats]
    fits: Sequence[Fit]
    final: Fit


def data_of(queries: Sequence[SavedQuery], base: Profile, progress: Progress = lambda _: None) -> Data:
    """Queries that the base's legs answered with their worth under every recipe of the grid.

    `progress` is told of each query and fan-out.
    """
    table = tabulate(queries, base, sorted({*TRUSTS, base.learned_share}), progress)
    return Data(queries=queries, batch=batch_of(queries, base), table=table, base=base)


def study(data: Data, *, count: int, seed: int, progress: Progress = lambda _: None) -> Study:
    """Fit on all but each fold and on parts of that, then on everything.

    `progress` is told of each fit; there are at most `count * len(SHARES) + 1`.
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


def trial_of(queries: Sequence[SavedQuery], candidate: Floats, baseline: Floats, live: Floats | None) -> Trial:
    """Scores for the gate."""
    weights = np.array([query.weight for query in queries])
    return Trial(
        sets=[query.set for query in queries],
        intents=[query.label for query in queries],
        candidate=candidate,
        baseline=baseline,
        live=live,
        weights=None if (weights == weights[0]).all() else weights,
    )
