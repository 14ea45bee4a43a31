"""What a profile would have answered to saved queries, all of them at once.

The arithmetic is that of `noise`, `weighting`, `fusion` and `blending`, on arrays. Some things are nearly but not
quite as served: memories that say the same thing are known among the best of the saved rankings only; a profile
whose recipes differ in fan-out weighs legs and candidates by what is found at the nearest that was asked; a leg
without weight was asked all the same, and the graph leg leans on it. Caps of sources and variety play no part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from classifier.intents import INTENTS
from retrieval.blending import BLEND_K
from retrieval.fusion import FIRST_RANK
from retrieval.profiles import Profile, Recipe
from retrieval.tuning.batch import CUTOFF, DISCOUNT, NOWHERE, Batch, Floats, Ints, Rescorings
from retrieval.types import Leg

LEAST_DEPTH = 2 * CUTOFF
"""The pipeline never fuses shorter heads of the rankings for an answer of `CUTOFF`."""

SAME = 1e-12
"""Scores this near are equal, however they were added up."""

_ASIDE = 1e-10
"""What a fused rank takes off a blended score: of equal ones the better fused comes first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipes:
    """A recipe per query: weights (n, 3) in the order of `Leg`, rrf_k (n,), fan_out (n,)."""

    weights: Floats
    rrf_k: Floats
    fan_out: Ints

    @classmethod
    def same(cls, recipe: Recipe, n: int) -> Recipes:
        """One recipe for all."""
        weights = weights_of(recipe)
        return cls(
            weights=np.tile(weights, (n, 1)),
            rrf_k=np.full(n, float(recipe.rrf_k)),
            fan_out=np.full(n, recipe.fan_out, np.intp),
        )


def weights_of(recipe: Recipe) -> Floats:
    """Weights (3,) that sum to 1."""
    weights = np.array([recipe.weights.get(leg, 0.0) for leg in Leg], np.float64)
    total: float = weights.sum()
    return weights / total


def fixed_recipes(batch: Batch, profile: Profile) -> Recipes:
    """What mode `hybrid` fuses with."""
    return Recipes.same(profile.fixed, len(batch))


def adaptive_recipes(batch: Batch, profile: Profile) -> Recipes:
    """What mode `adaptive` fuses with: the intents' recipes mixed, then moved towards the learned weights."""
    each = [profile.per_intent[intent] for intent in INTENTS]
    lam = np.minimum(1.0, profile.shrink * batch.belief)
    shares = batch.probabilities / batch.probabilities.sum(axis=1, keepdims=True)

    def mixed(of_intents: Floats, fixed: Floats | float) -> Floats:
        by_intent = lam[:, None] * (shares @ of_intents.reshape(len(each), -1))
        result: Floats = by_intent + (1.0 - lam)[:, None] * np.atleast_1d(fixed)
        return result

    weights = mixed(np.array([weights_of(recipe) for recipe in each]), weights_of(profile.fixed))
    fan_out = mixed(np.array([float(recipe.fan_out) for recipe in each]), float(profile.fixed.fan_out))[:, 0]
    rrf_k = mixed(np.array([float(recipe.rrf_k) for recipe in each]), float(profile.fixed.rrf_k))[:, 0]
    depth = np.round(fan_out).astype(np.intp)
    learned = learned_at(batch, depth)
    trust = profile.trust * batch.familiar[:, np.newaxis]
    return Recipes(weights=(1 - trust) * weights + trust * learned, rrf_k=rrf_k, fan_out=depth)


def learned_at(batch: Batch, fan_out: Ints) -> Floats:
    """The learned weights (n, 3) for rankings of that length: of the deepest saved that is not deeper."""
    at = np.searchsorted(batch.learned_depths, np.maximum(fan_out, LEAST_DEPTH), side="right") - 1
    learned: Floats = batch.learned[np.maximum(at, 0), np.arange(len(batch))]
    return learned


def quality(batch: Batch, recipes: Recipes) -> Floats:
    """nDCG@10 of every query, shape (n,)."""
    reciprocal = reciprocals(batch, recipes.fan_out, recipes.weights > 0, recipes.rrf_k)
    scores = np.einsum("nl,nlc->nc", recipes.weights, reciprocal)
    for row in batch.copies.keys() | batch.rescored.keys():
        scores[row] = final_scores(batch, row, scores[row : row + 1])[0]
    gold = batch.gold
    own = scores[gold.row, gold.column][:, None]
    earlier = np.arange(scores.shape[1]) < gold.column[:, None]
    before = np.where(earlier, scores[gold.row] >= own - SAME, scores[gold.row] > own + SAME)
    place = (before * batch.places[gold.row]).sum(axis=1) + gold.offset
    gained = np.where(own[:, 0] > 0, DISCOUNT[np.minimum(place, CUTOFF)], 0.0) * gold.gain
    summed: Floats = np.bincount(gold.row, weights=gained, minlength=len(batch)).astype(np.float64)
    return summed


def reciprocals(batch: Batch, fan_out: Ints, supported: NDArray[np.bool_], rrf_k: Floats) -> Floats:
    """1 / (rrf_k + rank) of every candidate in every leg, (n, 3, c); 0 beyond the fan-out and in the noise.

    Args:
        batch: the queries.
        fan_out: (n,) heads of the rankings that are fused.
        supported: (n, 3) whether a leg has any weight.
        rrf_k: (n,) the fusion's constant.
    """
    depth = np.maximum(fan_out, LEAST_DEPTH)[:, None]
    heard = np.minimum(batch.heard, depth)
    own = np.where(supported[:, :, None], batch.ranks, NOWHERE)
    left = np.asarray((own <= heard[:, :, None]).any(axis=1))
    for row, copies in batch.copies.items():
        for column, leader in copies:
            left[row, leader] |= left[row, column]
            left[row, column] = False
    short = (left.sum(axis=1) < CUTOFF) | batch.alone
    heard = np.where(short[:, None], depth, heard)
    result: Floats = np.where(batch.ranks <= heard[:, :, None], 1.0 / (rrf_k[:, None, None] + batch.ranks), 0.0)
    return result


def final_scores(batch: Batch, row: int, fused: Floats) -> Floats:
    """The scores (m, c) that order a query's answer: rescored, and of memories that say the same thing one is left.

    Args:
        batch: the queries.
        row: the query.
        fused: (m, c) fused scores under several weights, 0 for what is not among the fused. It is written over.
    """
    said = batch.rescored.get(row)
    scores = fused if said is None else _blended(fused, said)
    for column, leader in batch.copies.get(row, ()):
        scores[:, leader] = np.maximum(scores[:, leader], scores[:, column])
        scores[:, column] = 0.0
    return scores


def _blended(fused: Floats, said: Rescorings) -> Floats:
    """`blending.blend` on arrays."""
    there = np.flatnonzero(fused.max(axis=0) > 0)
    place = _places(-np.round(fused[:, there], 12))
    levels = np.unique(-said.scores[there], return_inverse=True)[1].astype(np.float64)
    rank = levels[np.newaxis, :] + FIRST_RANK
    if len(np.unique(levels)) < len(levels):  # candidates that the rescorer finds equal stay in the fusion's order
        rank = _places(levels * NOWHERE + place)
    share = said.confidence
    scores = np.zeros(fused.shape)
    scores[:, there] = (1 - share) / (BLEND_K + place) + share / (BLEND_K + rank) - _ASIDE * place
    return scores


def _places(keys: Floats) -> Floats:
    """The place of every key (m, c) in its row, from 1; equal keys keep their order."""
    places = np.empty(keys.shape)
    numbers = np.arange(FIRST_RANK, keys.shape[1] + FIRST_RANK, dtype=np.float64)
    np.put_along_axis(places, np.argsort(keys, axis=1, kind="stable"), numbers[np.newaxis, :], axis=1)
    return places
