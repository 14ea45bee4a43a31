"""Training: how likely a candidate is to answer the query, by trees calibrated on sets they did not see.

The trees are grown on queries as they are, on queries without an answer, and on queries whose answer is removed from
the legs' results: the best candidate is then still the best, but not relevant. Their logits are calibrated by Platt
scaling (Platt, "Probabilistic Outputs for Support Vector Machines", 1999).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from classifier.candidates import describe
from classifier.leg_weights import LEGS
from classifier.query_performance import LegScores
from classifier.training.examples import Example, only
from classifier.training.metrics import expected_calibration_error
from classifier.training.trees import TreeOptions, grow

if TYPE_CHECKING:
    import lightgbm

Floats = NDArray[np.float64]

TREES = TreeOptions(trees=100, rate=0.1)
ANSWERLESS = 0.3
"""Weight of a query whose answer is removed, relative to 1 for the unchanged query."""


class DescribedCandidates(NamedTuple):
    """The candidates of a query that are rescored: their features, and whether each is relevant."""

    set: str
    weight: float
    rows: NDArray[np.float32]
    relevant: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RelevanceFigures:
    """Quality of the predicted relevance on a set that neither the trees nor the calibration saw.

    Attributes:
        auroc: of relevant candidates against others.
        ece: expected calibration error.
        answered: AUROC of the greatest relevance of a query, for queries as they are against those without an answer.
    """

    candidates: int
    auroc: float
    ece: float
    answered: float


@dataclass(frozen=True, slots=True)
class FittedRelevance:
    """relevance = 1 / (1 + exp(-(slope * trees + offset)))."""

    booster: lightgbm.Booster
    slope: float
    offset: float
    figures: dict[str, RelevanceFigures]
    """By set, with trees and calibration learned from the others."""


def fit_relevance(examples: Sequence[Example], rising: Sequence[bool], groups: Sequence[str]) -> FittedRelevance:
    """Fit on labelled queries, all sets having equal weight; the calibration leaves out each of `groups` in turn."""
    queries, group_of = [], []
    for example, group in zip(examples, groups, strict=True):
        variants = [(example, 1.0)]
        if example.relevant and (answerless := without_answer(example)) is not None:
            variants.append((answerless, ANSWERLESS))
        queries += [_described(each, weight) for each, weight in variants]
        group_of += [group] * len(variants)
    found = np.array(group_of)
    logits: dict[int, Floats] = {}
    for group in dict.fromkeys(groups):
        booster = _grow([queries[at] for at in np.flatnonzero(found != group)], rising)
        for at in np.flatnonzero(found == group).tolist():
            logits[at] = np.asarray(booster.predict(queries[at].rows, raw_score=True))
    unseen = [logits[at] for at in range(len(queries))]
    figures = {}
    for group in dict.fromkeys(groups):
        others, mine = np.flatnonzero(found != group).tolist(), np.flatnonzero(found == group).tolist()
        slope, offset = _calibrate([queries[at] for at in others], [unseen[at] for at in others])
        figures[group] = _figures([queries[at] for at in mine], [expit(slope * unseen[at] + offset) for at in mine])
    return FittedRelevance(_grow(queries, rising), *_calibrate(queries, unseen), figures)


def without_answer(example: Example) -> Example | None:
    """The same query in a namespace that lacks its relevant memories; None if the legs found nothing else."""
    kept = [row for row, memory_id in enumerate(example.known.ids) if memory_id not in example.relevant]
    if not kept:
        return None
    legs: dict[str, Any] = {}
    for name in LEGS:
        leg = getattr(example.evidence, name)
        left = [(id_, score) for id_, score in zip(leg.ids, leg.scores, strict=True) if id_ not in example.relevant]
        legs[name] = LegScores(*zip(*left, strict=True)) if left else LegScores()
    return structs.replace(
        example,
        relevant=frozenset(),
        evidence=structs.replace(example.evidence, **legs),
        known=only(example.known, kept),
    )


def _described(example: Example, weight: float) -> DescribedCandidates:
    described = describe(example.evidence, example.known)
    relevant = np.array([example.known.ids[row] in example.relevant for row in described.top_rows.tolist()], np.bool_)
    return DescribedCandidates(example.set, weight, described.rows[described.top_rows], relevant)


def _weights(queries: Sequence[DescribedCandidates]) -> list[float]:
    """The weight of each query's candidates: equal for all sets, with a mean of 1 over the queries."""
    totals: defaultdict[str, float] = defaultdict(float)
    for each in queries:
        totals[each.set] += each.weight
    return [each.weight / totals[each.set] * len(queries) / len(totals) for each in queries]


def _grow(queries: Sequence[DescribedCandidates], rising: Sequence[bool]) -> lightgbm.Booster:
    sizes = [len(each.relevant) for each in queries]
    return grow(
        np.concatenate([each.rows for each in queries]),
        np.concatenate([each.relevant for each in queries]).astype(np.float32),
        np.repeat(np.array(_weights(queries), np.float32), sizes),
        None,
        rising,
        TREES,
    )


def _calibrate(queries: Sequence[DescribedCandidates], logits: Sequence[Floats]) -> tuple[float, float]:
    """Slope and offset, from the queries as they are."""
    chosen = [at for at, each in enumerate(queries) if each.weight == 1]
    real = [queries[at] for at in chosen]
    weights = np.repeat(_weights(real), [len(each.relevant) for each in real])
    model = LogisticRegression(C=1e6).fit(
        np.concatenate([logits[at] for at in chosen])[:, np.newaxis],
        np.concatenate([each.relevant for each in real]),
        sample_weight=weights,
    )
    return float(model.coef_[0, 0]), float(model.intercept_[0])


def _figures(queries: Sequence[DescribedCandidates], relevance: Sequence[Floats]) -> RelevanceFigures:
    real = [(each, one) for each, one in zip(queries, relevance, strict=True) if each.weight == 1]
    relevant, probability = (np.concatenate(parts) for parts in zip(*((e.relevant, p) for e, p in real), strict=True))
    best = np.array([one.max() for one in relevance])
    answered = np.array([bool(each.relevant.any()) for each in queries])
    return RelevanceFigures(
        candidates=len(relevant),
        auroc=_auroc(relevant, probability),
        ece=expected_calibration_error(probability, relevant),
        answered=_auroc(answered, best),
    )


def _auroc(labels: NDArray[np.bool_], scores: Floats) -> float:
    """NaN if all labels are alike."""
    return float(roc_auc_score(labels, scores)) if 0 < labels.sum() < labels.size else float("nan")
