"""The nDCG of every query under every recipe of a grid, so that the search looks it up instead of replaying."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval.evaluation.runner import Progress
from retrieval.profiles.profile import Profile, Recipe
from retrieval.tuning.replay import (
    CUTOFF,
    DISCOUNT,
    SAME,
    Floats,
    ReplayBatch,
    batch_of,
    final_scores,
    learned_at,
    reciprocals,
    weights_of,
)
from retrieval.tuning.runs import DEPTHS, SavedQuery
from retrieval.types.search import Leg

_STEPS = 20
MIXTURES: Floats = (
    np.array([(v, b, _STEPS - v - b) for v in range(1, _STEPS - 1) for b in range(1, _STEPS - v)], np.float64) / _STEPS
)
"""Weights of the legs in steps of 0.05, shape (171, 3), in the order of `Leg`; none is 0, since a leg without
weight does not run and the graph leg depends on the others."""

RRF_KS = (1, 2, 5, 10, 20, 60)
TRUSTS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Values of `learned_share` to try."""

SHAPE = (len(DEPTHS), len(RRF_KS), len(MIXTURES))
"""Recipes of the grid by fan-out, rrf_k and mixture."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GridTable:
    """The quality of recipes: nDCG@10, shape (trusts, n, recipes), recipes flattened from `SHAPE`."""

    trusts: tuple[float, ...]
    values: NDArray[np.float32]


def tabulate(
    queries: Sequence[SavedQuery],
    base: Profile,
    trusts: Sequence[float] = TRUSTS,
    progress: Progress = lambda _: None,
) -> GridTable:
    """Replay every recipe of the grid on every query under every trust; the legs are those of `base`."""
    n = len(queries)
    everything = np.ones((n, len(Leg)), np.bool_)
    values = np.zeros((len(trusts), n, *SHAPE), np.float32)
    for at_depth, depth in enumerate(DEPTHS):
        batch = batch_of(queries, base, depth)
        fan_out = np.full(n, depth, np.intp)
        learned = learned_at(batch, fan_out)
        shares = [reciprocals(batch, fan_out, everything, np.full(n, float(rrf_k))) for rrf_k in RRF_KS]
        for row in range(n):
            entries = np.flatnonzero(batch.gold.row == row)
            weights, at_mixture = _distinct([(1 - trust) * MIXTURES + trust * learned[row] for trust in trusts])
            found = np.flatnonzero(shares[0][row].any(axis=0))
            for at_k, share in enumerate(shares):
                worth = _worth(batch, row, entries, weights, share[row], found)
                values[:, row, at_depth, at_k] = worth[at_mixture]
            progress(1)
    return GridTable(trusts=tuple(trusts), values=values.reshape(len(trusts), n, -1))


def recipe_at(index: int) -> Recipe:
    """The recipe at a flat index of the grid."""
    depth, rrf_k, mixture = np.unravel_index(index, SHAPE)
    weights = {leg: round(float(weight), 2) for leg, weight in zip(Leg, MIXTURES[mixture], strict=True)}
    return Recipe(weights=weights, rrf_k=RRF_KS[rrf_k], fan_out=DEPTHS[depth])


def nearest_to(recipe: Recipe) -> tuple[int, int]:
    """The grid indices of the fan-out and the rrf_k nearest to a recipe's."""
    depths, ks = _doublings(recipe)
    return int(depths.argmin()), int(ks.argmin())


def distances(recipe: Recipe) -> Floats:
    """Distance of every recipe of the grid from one, flat: in weights, plus 0.1 per doubling of k and of fan-out."""
    weights = np.abs(MIXTURES - weights_of(recipe)).sum(axis=1)
    depths, ks = _doublings(recipe)
    flat: Floats = (weights + 0.1 * ks[:, None] + 0.1 * depths[:, None, None]).reshape(-1)
    return flat


def _doublings(recipe: Recipe) -> tuple[Floats, Floats]:
    """The distances of the grid's fan-outs and ks from a recipe's, in doublings."""
    return np.abs(np.log2(np.array(DEPTHS) / recipe.fan_out)), np.abs(np.log2(np.array(RRF_KS) / recipe.rrf_k))


def _distinct(mixtures: Sequence[Floats]) -> tuple[Floats, NDArray[np.intp]]:
    """All blocks stacked, a block of equal mixtures as one row; and the row of each mixture, by block."""
    kept, places, count = [], [], 0
    for block in mixtures:
        equal = bool((block == block[0]).all())
        kept.append(block[:1] if equal else block)
        places.append(np.full(len(block), count) if equal else np.arange(count, count + len(block)))
        count += len(kept[-1])
    return np.concatenate(kept), np.stack(places)


def _worth(
    batch: ReplayBatch, row: int, entries: NDArray[np.intp], weights: Floats, share: Floats, found: NDArray[np.intp]
) -> Floats:
    """nDCG@10 of one query under each row of weights (m, 3)."""
    worth = np.zeros(len(weights))
    if not len(entries):
        return worth
    plain = row not in batch.copies and row not in batch.rescored
    scores = weights @ share[:, found] if plain else final_scores(batch, row, weights @ share)
    columns = found if plain else np.arange(share.shape[1])
    places = batch.places[row, columns].astype(np.float64)
    for entry in entries:
        at = int(np.searchsorted(columns, batch.gold.column[entry]))
        if at == len(columns) or columns[at] != batch.gold.column[entry]:
            continue
        own = scores[:, at : at + 1]
        ahead = (scores[:, :at] >= own - SAME) @ places[:at] + (scores[:, at:] > own + SAME) @ places[at:]
        place = np.minimum(ahead.astype(np.intp) + batch.gold.offset[entry], CUTOFF)
        worth += np.where(own[:, 0] > 0, DISCOUNT[place], 0.0) * batch.gold.gain[entry]
    return worth
