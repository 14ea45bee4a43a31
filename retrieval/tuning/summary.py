"""The results of a tuning, as they are printed, drawn and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from classifier.intents import INTENTS, Intent
from classifier.training.metrics import reliability
from retrieval.profiles.gate import GateReport, PairedComparison, Trial, comparison, mean_one
from retrieval.profiles.profile import Profile
from retrieval.significance import bootstrap
from retrieval.tuning.grid import MIXTURES, SHAPE, nearest_to
from retrieval.tuning.replay import Floats, weights_of
from retrieval.tuning.runs import SavedQuery
from retrieval.tuning.search import FitSettings, Fitter, Study
from retrieval.types.evaluation import Estimate

FIXED = "fixed"
"""The name of the recipe without an intent, beside those of the intents."""

HELD_OUT = "tuned (held out)"
"""The system of the fits, each on the fold that it has not seen."""

LEAST_LABELLED = 20
"""Minimum number of labelled intents for a reliability diagram."""


class Score(Struct, frozen=True, kw_only=True):
    """A system's mean nDCG@10 over all queries; every set has equal weight."""

    system: str
    ndcg: Estimate


class Group(Struct, frozen=True, kw_only=True):
    """The tuned profile against the baseline on the queries of a type or an intent."""

    by: str
    name: str
    comparison: PairedComparison


class Point(Struct, frozen=True, kw_only=True):
    """The learning curve at one share of the training folds, with the mean number of queries learned from."""

    share: float
    queries: float
    ndcg: Estimate


class Landscape(Struct, frozen=True, kw_only=True):
    """The nDCG of mixtures of the legs for an intent or `fixed`, at the k and fan-out chosen for it."""

    name: str
    mixtures: list[tuple[float, float, float]]
    ndcg: list[float]
    chosen: tuple[float, float, float]


class ConfidenceBin(Struct, frozen=True, kw_only=True):
    """Queries of about the same confidence, and how often their most probable intent is the labelled one."""

    n: int
    confidence: float
    accuracy: float


class Tuning(Struct, frozen=True, kw_only=True):
    """The results of a tuning.

    Attributes:
        label: the stored profile's; None if none was stored.
        profile: the best profile found; the base if nothing better was found.
        settings: how far the search followed the data; None if nothing better was found.
        fold_settings: the same for each fold that was held out.
        sets: number of queries by set.
        skipped: number of queries without relevant memories.
        landscapes: of the fixed recipe and of each intent.
        reliability: of the classified intents; None if too few are labelled.
        source: a description of the training data.
    """

    label: str | None
    base: str
    improved: bool
    profile: Profile
    settings: FitSettings | None
    fold_settings: list[FitSettings | None]
    sets: dict[str, int]
    skipped: int
    scores: list[Score]
    gate: GateReport
    groups: list[Group]
    curve: list[Point]
    landscapes: list[Landscape]
    reliability: list[ConfidenceBin] | None
    source: str
    date: str
    seed: int
    versions: dict[str, str]
    models: dict[str, str]
    seconds: float


def scores_of(queries: Sequence[SavedQuery], values: Mapping[str, Floats], *, seed: int) -> list[Score]:
    """The systems' means, with intervals that share their resamples."""
    sets = [query.set for query in queries]
    scale = mean_one(np.array([query.weight for query in queries]), np.array(sets))
    scaled = np.stack(list(values.values()), axis=1) * scale[:, None]
    return [
        Score(system=system, ndcg=interval)
        for system, interval in zip(values, bootstrap(scaled, sets, seed=seed), strict=True)
    ]


def groups_of(queries: Sequence[SavedQuery], trial: Trial, *, seed: int) -> list[Group]:
    """The tuned profile against the baseline by type, then by intent."""
    found = []
    for by, names in (("type", [query.type for query in queries]), ("intent", list(trial.intents))):
        labels = np.asarray(names)
        for name in dict.fromkeys(names):
            rows = np.flatnonzero(labels == name)
            found.append(Group(by=by, name=name, comparison=comparison(trial, trial.baseline, rows, seed=seed)))
    return found


def curve_of(study: Study, *, seed: int) -> list[Point]:
    """The learning curve."""
    queries = study.data.queries
    learned_from = float(np.mean([len(queries) - len(part) for part in study.parts]))
    points = scores_of(queries, {str(share): values for share, values in study.held_out.items()}, seed=seed)
    return [
        Point(share=share, queries=share * learned_from, ndcg=point.ndcg)
        for share, point in zip(study.held_out, points, strict=True)
    ]


def landscapes_of(study: Study) -> list[Landscape]:
    """The mixtures' nDCG for the fixed recipe and for every intent, as the final fit saw it."""
    fitter = Fitter(study.data, np.arange(len(study.data.queries)))
    profile = study.final.profile
    settings = study.final.settings or FitSettings(trust=profile.learned_share, shrink=profile.shrink, prior=100.0)
    worths = {FIXED: (fitter.fixed_worth, profile.fixed)}
    for number, intent in enumerate(INTENTS):
        worths[intent.value] = (fitter.worth(settings, number), profile.per_intent[intent])
    found = []
    for name, (worth, recipe) in worths.items():
        grid = worth.reshape(SHAPE)
        depth, rrf_k = nearest_to(recipe)
        vector, bm25, graph = weights_of(recipe).tolist()
        found.append(
            Landscape(
                name=name,
                mixtures=[(v, b, g) for v, b, g in MIXTURES.tolist()],
                ndcg=grid[depth, rrf_k].tolist(),
                chosen=(vector, bm25, graph),
            )
        )
    return found


def reliability_of(queries: Sequence[SavedQuery]) -> list[ConfidenceBin] | None:
    """Confidence against accuracy of the classified intents; None if too few are labelled."""
    labelled = [query for query in queries if query.intent is not None]
    if len(labelled) < LEAST_LABELLED:
        return None
    shares = np.array([query.probabilities for query in labelled])
    right = np.array([list(Intent).index(query.intent) for query in labelled if query.intent is not None])
    bins = reliability(shares, right)
    return [ConfidenceBin(n=each.count, confidence=each.confidence, accuracy=each.accuracy) for each in bins]
