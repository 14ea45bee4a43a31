"""What the legs and the texts say of each fused candidate, as the numbers that the rescorer orders them by.

Used alike in training and in serving. Scale-free: shares of the best, differences of cosines, places; never a
corpus' size, an absolute length or its kind. What kind of memories the candidates are is summed up apart
(`Described.kind`), and says only how far the rescorer is to be believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from classifier.evidence import FEATURES as QUERY_EVIDENCE
from classifier.evidence import Evidence, Findings, evidence_row
from classifier.traits import MEMORY_TRAITS, QUERY_TRAITS, unpack_traits

CANDIDATES_VERSION: Final = 1
"""Counts up when a feature changes its meaning; a model for another version is refused."""

_SMOOTHING = 6
"""Of reciprocal places."""

_CONSENSUS = np.array((0.4, 0.3, 0.3))
"""Shares of the vector, BM25 and graph leg in the order that is known before any is learned."""

_FEW = 5
"""The best memories of that order, to which the others are compared."""


class Particulars(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the candidates of one query beside the legs' scores; sequences are aligned with `ids`.

    Attributes:
        ids: the candidates.
        own: cosine of the query and each memory's own text, a turn's context left out.
        mixed: cosine of the query and the stored vector.
        vectors: of their own texts, shape (n, dimensions), float32; None where the query has no embedding.
        covered: share of the query's idf that stands in the memory.
        shared: share of the query's terms that do.
        rarest: the greatest idf of them, as a share of the query's greatest.
        traits: as `pack_traits` makes them.
        assistant: whether an assistant said it.
        named: whether the query names who said it.
        speakers, sessions: numbers that stand for them, -1 for none.
        titled: which share of the title's terms the query has; 0 without a title.
        has_title: whether it has one.
        query: traits of the query.
    """

    ids: Sequence[str]
    own: NDArray[np.float32]
    mixed: NDArray[np.float32]
    vectors: NDArray[np.float32] | None
    covered: NDArray[np.float32]
    shared: NDArray[np.float32]
    rarest: NDArray[np.float32]
    traits: Sequence[int]
    assistant: Sequence[bool]
    named: Sequence[bool]
    speakers: Sequence[int]
    sessions: Sequence[int]
    titled: Sequence[float]
    has_title: Sequence[bool]
    query: Sequence[float]


CANDIDATE_FEATURES: Final = (
    *("place_vector", "place_bm25", "place_graph", "consensus"),
    *("cosine", "cosine_below", "cosine_deviations", "own", "own_below", "own_deviations"),
    *("bm25", "bm25_attained", "graph"),
    *("covered", "covered_of_best", "shared", "rarest"),
    *("like_first", "like_few", "session"),
    *("named", "speaker_share", "assistant", "titled", "length"),
    *MEMORY_TRAITS,
    *(f"query_{name}" for name in QUERY_TRAITS),
    *(f"evidence_{name}" for name in QUERY_EVIDENCE),
)
"""Names of a candidate's features, in order."""

KIND_FEATURES: Final = (
    *MEMORY_TRAITS,
    *("named", "speaker_share", "assistant", "titled"),
    *("length", "length_deviation", "has_title", "has_session"),
)
"""Names of the numbers that say what kind of memories the candidates are."""


MOST_RESCORED: Final = 48
"""Candidates that are ordered anew, the best by `consensus`; what lies behind them is not among the ten that count."""


class Described(NamedTuple):
    """The candidates of one query as the rescorer reads them.

    Attributes:
        rows: shape (n, len(CANDIDATE_FEATURES)), float32, finite.
        kind: shape (len(KIND_FEATURES),), float32: what kind of memories they are.
        foremost: which rows are ordered anew, best first by `consensus`.
    """

    rows: NDArray[np.float32]
    kind: NDArray[np.float32]
    foremost: NDArray[np.intp]


def describe(evidence: Evidence, known: Particulars) -> Described:
    """The features of all candidates of one query, of which there is at least one."""
    traits, words = unpack_traits(known.traits)
    speaker_share = _share(np.asarray(known.speakers))
    rows, foremost = _rows(evidence, known, traits, words, speaker_share)
    return Described(rows, _kind(known, traits, words, speaker_share), foremost)


def _rows(
    evidence: Evidence,
    known: Particulars,
    traits: NDArray[np.float32],
    words: NDArray[np.float32],
    speaker_share: NDArray[np.float64],
) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    place = {memory_id: at for at, memory_id in enumerate(known.ids)}
    n = len(place)
    bm25, bm25_ranks = _aligned(evidence.bm25, place)
    graph, graph_ranks = _aligned(evidence.graph, place)
    _, vector_ranks = _aligned(evidence.vector, place)
    places = 1 / (_SMOOTHING + np.stack([vector_ranks, bm25_ranks, graph_ranks]))
    # Sums by element, and ties by the legs in turn: BM25's first and the graph's are equals, and neither the place
    # of a candidate among the others nor the machine's matrix product may decide.
    consensus = (_CONSENSUS[:, np.newaxis] * places).sum(axis=0)
    order = np.lexsort((*-places[::-1], -consensus))
    best = order[:_FEW]
    columns = [
        *places,
        consensus / (consensus.max() or 1.0),
        *_cosines(known.mixed, known.own),
        bm25 / (bm25.max() or 1.0),
        bm25 / (evidence.attainable or 1.0),
        graph / (graph.max() or 1.0),
        known.covered,
        known.covered / (known.covered.max() or 1.0),
        known.shared,
        known.rarest,
        *_likeness(known.vectors, best, n),
        _support(np.asarray(known.sessions), consensus),
        known.named,
        speaker_share,
        known.assistant,
        known.titled,
        words - _median(words),
    ]
    rows = np.empty((n, len(CANDIDATE_FEATURES)), np.float32)
    for at, column in enumerate(columns):
        rows[:, at] = column
    rows[:, len(columns) : len(columns) + traits.shape[1]] = traits
    rows[:, len(columns) + traits.shape[1] :] = [*known.query, *evidence_row(evidence).tolist()]
    return rows, order[:MOST_RESCORED]


def _kind(
    known: Particulars,
    traits: NDArray[np.float32],
    words: NDArray[np.float32],
    speaker_share: NDArray[np.float64],
) -> NDArray[np.float32]:
    n = len(known.ids)
    return np.array(
        [
            *traits.mean(axis=0).tolist(),
            sum(known.named) / n,
            speaker_share.mean(),
            sum(known.assistant) / n,
            sum(known.titled) / n,
            words.mean(),
            words.std(),
            sum(known.has_title) / n,
            sum(session >= 0 for session in known.sessions) / n,
        ],
        np.float32,
    )


def _aligned(found: Findings, place: dict[str, int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A leg's scores and ranks from 0, by candidate; 0 and infinitely far where it has not found one."""
    n = len(place)
    scores, ranks = np.zeros(n + 1), np.full(n + 1, np.inf)  # the last place is for what is not among the candidates
    at = [place.get(memory_id, n) for memory_id in found.ids]
    scores[at] = found.scores
    ranks[at] = np.arange(len(at))
    return scores[:n], ranks[:n]


def _cosines(mixed: NDArray[np.float32], own: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    """Of both: the cosines, how far each is below the best, and how many deviations above the mean."""
    values = np.stack([mixed, own])
    below = values - values.max(axis=1, keepdims=True)
    mean = values.mean(axis=1, keepdims=True)
    deviations = (values - mean) / (values.std(axis=1, keepdims=True) + np.float32(1e-6))
    return [values[0], below[0], deviations[0], values[1], below[1], deviations[1]]


def _median(values: NDArray[np.float32]) -> np.float32:
    """As `np.median`, which takes several times as long for so few."""
    ordered = np.sort(values)
    return np.float32((ordered[(len(values) - 1) // 2] + ordered[len(values) // 2]) / 2)


def _likeness(
    vectors: NDArray[np.float32] | None, best: NDArray[np.intp], n: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """How like each candidate is to the first of the known order, and to its few best on average."""
    if vectors is None:
        return np.zeros(n, np.float32), np.zeros(n, np.float32)
    likeness = vectors @ vectors[best].T
    return likeness[:, 0], likeness.mean(axis=1)


def _support(sessions: NDArray[np.intp], consensus: NDArray[np.float64]) -> NDArray[np.float64]:
    """Which share of the consensus the other candidates of the same session have."""
    of_session = np.bincount(sessions + 1, weights=consensus)[sessions + 1]
    return np.asarray(np.where(sessions >= 0, of_session - consensus, 0.0) / (consensus.sum() or 1.0))


def _share(speakers: NDArray[np.intp]) -> NDArray[np.float64]:
    """Which share of the candidates the same speaker said; 1 for those of none."""
    counts = np.bincount(speakers + 1)[speakers + 1]
    return np.where(speakers >= 0, counts / len(speakers), 1.0)
