"""Features of the legs' results that predict how far each leg can be trusted for a query.

Scale-free: shares, ranks and differences of cosines, never a corpus' size, lengths or kind, so that what is learned on
some corpora transfers to others (query performance prediction: Shtok et al., "Predicting Query Performance by
Query-Drift Estimation", TOIS 2012, doi:10.1145/2180868.2180873).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import log1p
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from classifier.intents import INTENTS, Intent

EVIDENCE_VERSION = 1
"""Incremented when a feature changes its meaning; models for another version are rejected."""

_NEAR, _FAR = 5, 20
"""Depths at which rankings are compared and scores are read."""


Candidate: TypeAlias = Any
"""Identifies a memory among the candidates of a query: its id, a string, or its number among them."""


class LegScores(NamedTuple):
    """One leg's ranking, best first: candidates and the leg's scores."""

    ids: Sequence[Candidate] = ()
    scores: Sequence[float] = ()


class QueryPerformanceFeatures(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The results of the legs for a query.

    Attributes:
        vector, bm25, graph: the rankings; empty for a leg without an answer.
        score_upper_bound: the limit of BM25 for a memory with all of the query's terms, including those in no memory.
        entity_idfs: per entity named in the query, in [0, 1]; 1 if a single memory mentions it.
        words: number of words in the query.
        probabilities: of the intents.
    """

    vector: LegScores
    bm25: LegScores
    graph: LegScores
    score_upper_bound: float
    entity_idfs: Sequence[float]
    words: int
    probabilities: Mapping[Intent, float]

    @cached_property
    def row(self) -> NDArray[np.float32]:
        """The features, shape (len(FEATURES),), finite; read-only, as several models share them."""
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


def _features(evidence: QueryPerformanceFeatures) -> list[float]:
    vector, bm25, graph = evidence.vector.scores, evidence.bm25.scores, evidence.graph.scores
    by_vector, by_bm25, by_graph = evidence.vector.ids, evidence.bm25.ids, evidence.graph.ids
    score_upper_bound = evidence.score_upper_bound or 1.0
    cosine = _score_at(vector, 0)
    entity_idfs = evidence.entity_idfs or (0.0,)
    best = bm25[:_NEAR]
    return [
        _score_at(bm25, 0) / score_upper_bound,
        sum(best) / len(best) / score_upper_bound if best else 0.0,
        _drop(bm25, _NEAR),
        _drop(bm25, _FAR),
        cosine,
        cosine - _score_at(vector, _NEAR - 1),
        cosine - _score_at(vector, _FAR - 1),
        _drop(graph, _NEAR),
        _drop(graph, _FAR),
        *_overlaps(by_vector, by_bm25, by_graph, _NEAR),
        *_overlaps(by_vector, by_bm25, by_graph, _FAR),
        _best_in(by_bm25, by_vector),
        _best_in(by_vector, by_bm25),
        _best_in(by_graph, by_vector),
        _best_in(by_graph, by_bm25),
        min(len(evidence.entity_idfs), 8) / 8,
        max(entity_idfs),
        sum(entity_idfs) / len(entity_idfs),
        log1p(evidence.words) / 3,
        *[evidence.probabilities[intent] for intent in INTENTS],
    ]


def _score_at(scores: Sequence[float], place: int) -> float:
    """The score at a 0-based rank, or the last of a shorter ranking; 0 if it is empty."""
    return scores[min(place, len(scores) - 1)] if scores else 0.0


def _drop(scores: Sequence[float], depth: int) -> float:
    """How far the score at a depth is below the best, as a share of the best."""
    return 1.0 - _score_at(scores, depth - 1) / scores[0] if scores and scores[0] > 0 else 0.0


def _overlaps(
    vector: Sequence[Candidate], bm25: Sequence[Candidate], graph: Sequence[Candidate], depth: int
) -> tuple[float, ...]:
    """For each pair of rankings, the share of the top of one that is in the top of the other."""
    words = set(bm25[:depth])
    ties = set(graph[:depth])
    return (
        len(words.intersection(vector[:depth])) / depth,
        len(ties.intersection(vector[:depth])) / depth,
        len(words & ties) / depth,
    )


def _best_in(one: Sequence[Candidate], other: Sequence[Candidate]) -> float:
    """The reciprocal rank of one ranking's best in another; 0 if absent."""
    return 1.0 / (other.index(one[0]) + 1) if one and one[0] in other else 0.0
