"""What the legs returned, as numbers that say how far each of them can be trusted for this query.

Scale-free throughout: shares, ranks and differences of cosines, never a corpus' size, its lengths or its
kind, so that what is learned on some corpora holds on others (query performance prediction: Shtok et al.,
"Predicting Query Performance by Query-Drift Estimation", TOIS 2012, doi:10.1145/2180868.2180873).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log1p

import numpy as np
from numpy.typing import NDArray

from classifier.intents import INTENTS, Intent

EVIDENCE_VERSION = 1
"""Counts up when a feature changes its meaning; a model for another version is refused."""

_NEAR, _FAR = 5, 20
"""Depths at which rankings are compared and their scores are read."""


@dataclass(frozen=True, slots=True)
class Findings:
    """One leg's ranking, best first: ids and the leg's own scores."""

    ids: Sequence[str] = ()
    scores: Sequence[float] = ()


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What is known of a query once the legs have answered.

    Attributes:
        vector, bm25, graph: the rankings; empty for a leg that did not answer.
        attainable: the BM25 of a memory that had all of the query's terms without end, those that no
            memory has included.
        rarities: of each entity that the query names, in [0, 1]: 1 is one that a single memory mentions.
        words: of the query.
        probabilities: of the intents.
    """

    vector: Findings
    bm25: Findings
    graph: Findings
    attainable: float
    rarities: Sequence[float]
    words: int
    probabilities: Mapping[Intent, float]

    @cached_property
    def row(self) -> NDArray[np.float32]:
        """The features, shape (len(FEATURES),), finite; read-only, for more than one model reads them."""
        row = np.array(_features(self), np.float32)
        row.flags.writeable = False
        return row


FEATURES = (
    *("bm25_share", "bm25_share_near", "bm25_drop_near", "bm25_drop_far"),
    *("cosine", "cosine_drop_near", "cosine_drop_far"),
    *("graph_drop_near", "graph_drop_far"),
    *("vector_bm25_near", "vector_graph_near", "bm25_graph_near"),
    *("vector_bm25_far", "vector_graph_far", "bm25_graph_far"),
    *("bm25_best_in_vector", "vector_best_in_bm25", "graph_best_in_vector", "graph_best_in_bm25"),
    *("entities", "rarest_entity", "mean_rarity", "words"),
    *(f"p_{intent.value}" for intent in INTENTS),
)
"""Names of the features, in order."""


def evidence_row(evidence: Evidence) -> NDArray[np.float32]:
    """The features of one query, shape (len(FEATURES),), finite."""
    return evidence.row


def _features(evidence: Evidence) -> list[float]:
    vector, bm25, graph = evidence.vector.scores, evidence.bm25.scores, evidence.graph.scores
    by_vector, by_bm25, by_graph = evidence.vector.ids, evidence.bm25.ids, evidence.graph.ids
    attainable = evidence.attainable or 1.0
    cosine = _at(vector, 0)
    rarities = evidence.rarities or (0.0,)
    best = bm25[:_NEAR]
    return [
        _at(bm25, 0) / attainable,
        sum(best) / len(best) / attainable if best else 0.0,
        _drop(bm25, _NEAR),
        _drop(bm25, _FAR),
        cosine,
        cosine - _at(vector, _NEAR - 1),
        cosine - _at(vector, _FAR - 1),
        _drop(graph, _NEAR),
        _drop(graph, _FAR),
        *_overlaps(by_vector, by_bm25, by_graph, _NEAR),
        *_overlaps(by_vector, by_bm25, by_graph, _FAR),
        _best_in(by_bm25, by_vector),
        _best_in(by_vector, by_bm25),
        _best_in(by_graph, by_vector),
        _best_in(by_graph, by_bm25),
        min(len(evidence.rarities), 8) / 8,
        max(rarities),
        sum(rarities) / len(rarities),
        log1p(evidence.words) / 3,
        *[evidence.probabilities[intent] for intent in INTENTS],
    ]


def _at(scores: Sequence[float], place: int) -> float:
    """The score at a place from 0, or the last one of a shorter ranking; 0 for none."""
    return scores[min(place, len(scores) - 1)] if scores else 0.0


def _drop(scores: Sequence[float], depth: int) -> float:
    """By which share the score at a depth lies below the best one's."""
    return 1.0 - _at(scores, depth - 1) / scores[0] if scores and scores[0] > 0 else 0.0


def _overlaps(vector: Sequence[str], bm25: Sequence[str], graph: Sequence[str], depth: int) -> tuple[float, ...]:
    """Which share of the best of one ranking is among the best of another, of each two of them."""
    words = set(bm25[:depth])
    ties = set(graph[:depth])
    return (
        len(words.intersection(vector[:depth])) / depth,
        len(ties.intersection(vector[:depth])) / depth,
        len(words & ties) / depth,
    )


def _best_in(one: Sequence[str], other: Sequence[str]) -> float:
    """The reciprocal of the rank that one ranking's best has in another; 0 if it has none."""
    return 1.0 / (other.index(one[0]) + 1) if one and one[0] in other else 0.0
