"""Replays saved queries under a profile, all of them at once.

The noise cut is the pipeline's own function; the arithmetic of `ranking.weighting` and `ranking.fusion` is here on
arrays, with an axis for the queries or the weights. Some things differ slightly from serving: duplicates are
only known among the best of the saved rankings; a profile whose recipes differ in fan-out gets its learned weights and
rescored candidates from the nearest saved fan-out; a leg without weight was run all the same, and the graph leg used
its results. Source caps, variety and the order by time are ignored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from classifier.candidates import BLEND_K
from classifier.intents import INTENTS
from retrieval.evaluation.metrics import dcg
from retrieval.profiles.profile import Profile, Recipe
from retrieval.ranking.noise import least_score
from retrieval.ranking.rrf import FIRST_RANK
from retrieval.ranking.weighting import FRAGMENTED_WEIGHT, FRAGMENTS_FROM, FRAGMENTS_TO
from retrieval.tuning.runs import Rescoring, SavedQuery
from retrieval.types.search import Leg

CUTOFF = 10
"""Ranks that count."""

LEAST_DEPTH = 2 * CUTOFF
"""The pipeline fuses at least this many of each ranking for an answer of `CUTOFF`."""

UNRANKED = 1_000_000
"""The rank of a candidate that a leg did not find."""

SAME = 1e-12
"""Scores that differ by less are equal: the difference comes from the order of summation."""

_ASIDE = 1e-10
"""Subtracted from a blended score per fused rank, so that equal scores stay in the order of the fusion."""

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

DISCOUNT: Floats = np.append(1 / np.log2(np.arange(CUTOFF) + 2), 0.0)
"""The discount of each rank, from the first; the last entry is for all ranks beyond."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gold:
    """The relevant memories that any leg found, one entry each.

    Attributes:
        row, column: the query and the candidate that stands for the memory.
        offset: how many relevant memories the same candidate stands for before this one.
        gain: its gain as a share of the ideal DCG.
    """

    row: Ints
    column: Ints
    offset: Ints
    gain: Floats


@dataclass(frozen=True, kw_only=True, slots=True)
class RescoredRow:
    """The rescorer's output for a query.

    Attributes:
        share: how far to follow it.
        scores: (c,), the lowest for candidates without one.
        identified: (c,) whether a candidate comes first because it contains an identifier of the query.
    """

    share: float
    scores: Floats
    identified: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplayBatch:
    """Saved queries as arrays; `c` candidates at most, in the order of their ids.

    Attributes:
        rescored: by row, if a rescorer ran.
        ranks: (n, 3, c) from 1; `UNRANKED` if a leg did not find it.
        kept: (n, 3) how many of each leg's hits pass its noise cut.
        alone: (n,) whether only one leg found anything, which is then not cut.
        places: (n, c) how many ranks of an answer a candidate takes.
        copies: by row, the columns of duplicates, each with the column of the candidate kept in its place.
        gold: the relevant memories.
        probabilities: (n, 4) of the intents.
        in_domain: (n,) similarity of the query to the classifier's training data.
        fragment_shares: (n,) how much of the query the embedder reads in fragments.
        learned: (depths, n, 3) weights predicted from the legs' results.
        learned_depths: the depths, ascending.
    """

    rescored: Mapping[int, RescoredRow]
    ranks: NDArray[np.int32]
    kept: Ints
    alone: NDArray[np.bool_]
    places: NDArray[np.int32]
    copies: Mapping[int, Sequence[tuple[int, int]]]
    gold: Gold
    probabilities: Floats
    in_domain: Floats
    fragment_shares: Floats
    learned: Floats
    learned_depths: Ints

    def __len__(self) -> int:
        return len(self.probabilities)


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipes:
    """A recipe per query: weights (n, 3) in the order of `Leg`, rrf_k (n,), fan_out (n,)."""

    weights: Floats
    rrf_k: Floats
    fan_out: Ints

    @classmethod
    def same(cls, recipe: Recipe, n: int) -> Recipes:
        """One recipe for all of n queries."""
        return cls(
            weights=np.tile(weights_of(recipe), (n, 1)),
            rrf_k=np.full(n, float(recipe.rrf_k)),
            fan_out=np.full(n, recipe.fan_out, np.intp),
        )


def served_depth(queries: Sequence[SavedQuery], fan_out: int) -> int:
    """The saved fan-out to replay a fan-out with: the same, or the next larger one, or else the largest."""
    depths = queries[0].depths
    return min((depth for depth in depths if depth >= fan_out), default=depths[-1])


def batch_of(queries: Sequence[SavedQuery], profile: Profile, depth: int | None = None) -> ReplayBatch:
    """At least one query as arrays, with the noise cut of a profile, and rescored if the profile says so.

    `depth` is the saved fan-out to use; None for the profile's.
    """
    depth = depth or served_depth(queries, profile.fan_out)
    rescoring = profile.rescore and profile.models.rescorer is not None
    hits = [{leg: query.hits(leg, depth) for leg in Leg} for query in queries]
    # the candidates' columns are in the order of their ids, which breaks ties
    columns = [
        {id_: at for at, id_ in enumerate(sorted({id_ for own in each.values() for id_, _ in own}))} for each in hits
    ]
    width = max(1, *(len(each) for each in columns))
    ranks = np.full((len(queries), len(Leg), width), UNRANKED, np.int32)
    places = np.ones((len(queries), width), np.int32)
    gold: list[tuple[int, int, int, float]] = []
    copies: dict[int, list[tuple[int, int]]] = {}
    for row, (query, column) in enumerate(zip(queries, columns, strict=True)):
        for at, own in enumerate(hits[row].values()):
            ranks[row, at, [column[id_] for id_, _ in own]] = np.arange(1, len(own) + 1)
        leader = _leaders(query, column)
        if leader:
            copies[row] = list(leader.items())
        gold += _gold(query, row, column, leader)
    for row, at, offset, _ in gold:
        places[row, at] = max(places[row, at], offset + 1)
    rows, gold_columns, offsets, gains = list(zip(*gold, strict=True)) or [(), (), (), ()]
    said = [query.rescored.get(depth) if rescoring else None for query in queries]
    return ReplayBatch(
        rescored={row: _rescored(each, columns[row], width) for row, each in enumerate(said) if each is not None},
        ranks=ranks,
        kept=np.array([[_above_noise(own, leg, profile) for leg, own in each.items()] for each in hits], np.intp),
        alone=np.array([sum(map(bool, each.values())) == 1 for each in hits]),
        places=places,
        copies=copies,
        gold=Gold(
            row=np.array(rows, np.intp),
            column=np.array(gold_columns, np.intp),
            offset=np.array(offsets, np.intp),
            gain=np.array(gains, np.float64),
        ),
        probabilities=np.array([query.probabilities for query in queries], np.float64),
        in_domain=np.array([query.in_domain for query in queries], np.float64),
        fragment_shares=np.array([query.fragment_share for query in queries], np.float64),
        learned=np.array([[query.learned[at] for query in queries] for at in queries[0].depths], np.float64),
        learned_depths=np.array(queries[0].depths, np.intp),
    )


def importance(queries: Sequence[SavedQuery]) -> Floats:
    """The weight of each query, summing to their number; every set has equal weight, whatever its size."""
    weights = np.array([query.weight for query in queries], np.float64)
    sets = np.array([query.set for query in queries])
    names = np.unique(sets)
    for name in names:
        weights[sets == name] /= weights[sets == name].sum() * len(names)
    return weights * len(queries)


def weights_of(recipe: Recipe) -> Floats:
    """Weights (3,) that sum to 1."""
    weights = np.array([recipe.weights.get(leg, 0.0) for leg in Leg], np.float64)
    total: float = weights.sum()
    return weights / total


def adaptive_recipes(batch: ReplayBatch, profile: Profile) -> Recipes:
    """The recipes of mode `adaptive`: the intents' recipes mixed as by `Mixture`, moved towards the learned weights.

    The vector leg counts less for queries that the embedder reads in fragments.
    """
    shares = batch.probabilities
    entropy = -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=1)
    belief = np.clip(profile.shrink * (1 - entropy / np.log(len(INTENTS))) * batch.in_domain, 0.0, 1.0)[:, None]
    recipes = [*(profile.per_intent[intent] for intent in INTENTS), profile.fixed]
    numbers = np.array([[*weights_of(each), each.rrf_k, each.fan_out] for each in recipes])
    mixed = belief * (shares @ numbers[:-1]) + (1 - belief) * numbers[-1]
    fan_out = np.rint(mixed[:, 4]).astype(np.intp)
    weights = (1 - profile.learned_share) * mixed[:, :3] + profile.learned_share * learned_at(batch, fan_out)
    fragmented = np.clip((batch.fragment_shares - FRAGMENTS_FROM) / (FRAGMENTS_TO - FRAGMENTS_FROM), 0.0, 1.0)
    weights[:, [*Leg].index(Leg.VECTOR)] *= 1 - fragmented * (1 - FRAGMENTED_WEIGHT)
    return Recipes(weights=weights / weights.sum(axis=1, keepdims=True), rrf_k=mixed[:, 3], fan_out=fan_out)


def learned_at(batch: ReplayBatch, fan_out: Ints) -> Floats:
    """The learned weights (n, 3) for rankings of that length: those of the greatest saved depth up to it."""
    at = np.searchsorted(batch.learned_depths, np.maximum(fan_out, LEAST_DEPTH), side="right") - 1
    learned: Floats = batch.learned[np.maximum(at, 0), np.arange(len(batch))]
    return learned


def quality(batch: ReplayBatch, recipes: Recipes) -> Floats:
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
    summed = np.bincount(gold.row, weights=gained, minlength=len(batch))
    return np.round(summed, 12)  # the order of summation makes no winner


class JudgedQueries:
    """Queries with the results of a profile's legs; judges profiles with the same legs and noise cut by nDCG@10."""

    def __init__(self, queries: Sequence[SavedQuery], base: Profile) -> None:
        self._queries = queries
        self._base = base
        self._batches: dict[int, ReplayBatch] = {}

    def adaptive(self, profile: Profile) -> Floats:
        """Each query in mode adaptive; arrays are built once per fan-out."""
        depth = served_depth(self._queries, profile.fan_out)
        if depth not in self._batches:
            self._batches[depth] = batch_of(self._queries, self._base, depth)
        batch = self._batches[depth]
        return quality(batch, adaptive_recipes(batch, profile))

    def fixed(self, recipe: Recipe) -> Floats:
        """Each query with the same recipe, as in mode hybrid without the rescorer."""
        plain = structs.replace(self._base, rescore=False)
        batch = batch_of(self._queries, plain, served_depth(self._queries, recipe.fan_out))
        return quality(batch, Recipes.same(recipe, len(batch)))


def reciprocals(batch: ReplayBatch, fan_out: Ints, supported: NDArray[np.bool_], rrf_k: Floats) -> Floats:
    """1 / (rrf_k + rank) of every candidate in every leg, (n, 3, c); 0 beyond the fan-out and below the noise cut.

    BM25's cut keeps all candidates that contain an identifier of the query.
    `supported` (n, 3) says whether a leg has any weight.
    """
    depth = np.maximum(fan_out, LEAST_DEPTH)[:, None]
    kept = np.minimum(batch.kept, depth)
    bm25 = [*Leg].index(Leg.BM25)
    for row, said in batch.rescored.items():
        held = batch.ranks[row, bm25, said.identified]
        kept[row, bm25] = max([kept[row, bm25], *held[held <= depth[row]]])
    own = np.where(supported[:, :, None], batch.ranks, UNRANKED)
    left = np.asarray((own <= kept[:, :, None]).any(axis=1))
    for row, copies in batch.copies.items():
        for column, leader in copies:
            left[row, leader] |= left[row, column]
            left[row, column] = False
    short = (left.sum(axis=1) < CUTOFF) | batch.alone
    kept = np.where(short[:, None], depth, kept)
    result: Floats = np.where(batch.ranks <= kept[:, :, None], 1.0 / (rrf_k[:, None, None] + batch.ranks), 0.0)
    return result


def final_scores(batch: ReplayBatch, row: int, fused: Floats) -> Floats:
    """The scores (m, c) that order a query's answer: rescored, with one of each group of duplicates left.

    `fused` has the scores (m, c) under several weights, 0 for candidates that were not fused. It is overwritten.
    """
    said = batch.rescored.get(row)
    scores = fused if said is None else _blended(fused, said)
    for column, leader in batch.copies.get(row, ()):
        scores[:, leader] = np.maximum(scores[:, leader], scores[:, column])
        scores[:, column] = 0.0
    return scores


def _blended(fused: Floats, said: RescoredRow) -> Floats:
    """`ranking.fusion.blend` on arrays, with candidates that contain an identifier of the query first."""
    share, rescored = said.share, said.scores
    there = np.flatnonzero(fused.max(axis=0) > 0)
    place = _places(-np.round(fused[:, there], 12))
    levels = np.unique(-rescored[there], return_inverse=True)[1].astype(np.float64)
    rank = levels[np.newaxis, :] + FIRST_RANK
    if len(np.unique(levels)) < len(levels):  # equal scores stay in the order of the fusion
        rank = _places(levels * UNRANKED + place)
    scores = np.zeros(fused.shape)
    scores[:, there] = (1 - share) / (BLEND_K + place) + share / (BLEND_K + rank) - _ASIDE * place
    scores[:, there] += said.identified[there]
    return scores


def _places(keys: Floats) -> Floats:
    """The rank of every key (m, c) in its row, from 1; equal keys keep their order."""
    places = np.empty(keys.shape)
    numbers = np.arange(FIRST_RANK, keys.shape[1] + FIRST_RANK, dtype=np.float64)
    np.put_along_axis(places, np.argsort(keys, axis=1, kind="stable"), numbers[np.newaxis, :], axis=1)
    return places


def _leaders(query: SavedQuery, column: Mapping[str, int]) -> dict[int, int]:
    """The column kept in the place of each duplicate's."""
    groups = [sorted(column[id_] for id_ in group if id_ in column) for group in query.duplicates]
    return {member: members[0] for members in groups for member in members[1:]}


def _gold(
    query: SavedQuery, row: int, column: Mapping[str, int], leader: Mapping[int, int]
) -> list[tuple[int, int, int, float]]:
    """Row, column, offset and share of the ideal DCG of each relevant memory that was found."""
    ideal = dcg(sorted(query.gains.values(), reverse=True)[:CUTOFF])
    taken: Counter[int] = Counter()
    found = []
    for id_ in sorted(query.gains.keys() & column.keys()):
        at = leader.get(column[id_], column[id_])
        found.append((row, at, taken[at], query.gains[id_] / ideal))
        taken[at] += 1
    return found


def _above_noise(hits: Sequence[tuple[str, float]], leg: Leg, profile: Profile) -> int:
    """How many hits pass the noise cut."""
    least = least_score(leg, hits[0][1], profile) if hits else 0.0
    return sum(score >= least for _, score in hits)


def _rescored(said: Rescoring, column: Mapping[str, int], width: int) -> RescoredRow:
    """By column; a candidate without a score comes after all others."""
    scores = np.full(width, min(said.scores.values(), default=0.0) - 1.0)
    for id_, score in said.scores.items():
        if id_ in column:
            scores[column[id_]] = score
    identified = np.zeros(width, np.bool_)
    identified[[column[id_] for id_ in said.identified if id_ in column]] = True
    return RescoredRow(share=said.share, scores=scores, identified=identified)
