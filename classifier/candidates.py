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
from classifier.evidence import Evidence, Findings
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


_TRAITS_END = len(CANDIDATE_FEATURES) - len(QUERY_TRAITS) - len(QUERY_EVIDENCE)
_OWN = _TRAITS_END - len(MEMORY_TRAITS)
_QUERY_END = _TRAITS_END + len(QUERY_TRAITS)
"""Where the features end that are a candidate's own, its memory's traits, and those of the query."""

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
    sessions = np.asarray(known.sessions)
    rows, foremost = _rows(evidence, known, traits, words, speaker_share, sessions)
    return Described(rows, _kind(known, traits, words, speaker_share, sessions), foremost)


# Of a hundred numbers a sum and a division take a third of the time of NumPy's mean, and give the same.


def _rows(
    evidence: Evidence,
    known: Particulars,
    traits: NDArray[np.float32],
    words: NDArray[np.float32],
    speaker_share: NDArray[np.float64],
    sessions: NDArray[np.intp],
) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    place = {memory_id: at for at, memory_id in enumerate(known.ids)}
    n = len(place)
    bm25, bm25_places = _aligned(evidence.bm25, place)
    graph, graph_places = _aligned(evidence.graph, place)
    _, vector_places = _aligned(evidence.vector, place)
    places = np.array((vector_places, bm25_places, graph_places))
    # Sums by element, and ties by the legs in turn: BM25's first and the graph's are equals, and neither the place
    # of a candidate among the others nor the machine's matrix product may decide.
    consensus = (_CONSENSUS[:, np.newaxis] * places).sum(axis=0)
    order = np.lexsort((*-places[::-1], -consensus))
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
        *_likeness(known.vectors, order[:_FEW], n),
        _support(sessions, consensus),
        known.named,
        speaker_share,
        known.assistant,
        known.titled,
        words - _median(words),
    ]
    own = np.empty((len(columns), n))
    for at, column in enumerate(columns):
        own[at] = column
    rows = np.empty((n, len(CANDIDATE_FEATURES)), np.float32)
    rows[:, :_OWN] = own.T
    rows[:, _OWN:_TRAITS_END] = traits
    rows[:, _TRAITS_END:_QUERY_END] = known.query
    rows[:, _QUERY_END:] = evidence.row
    return rows, order[:MOST_RESCORED]


def _kind(
    known: Particulars,
    traits: NDArray[np.float32],
    words: NDArray[np.float32],
    speaker_share: NDArray[np.float64],
    sessions: NDArray[np.intp],
) -> NDArray[np.float32]:
    n = len(known.ids)
    mean = words.sum() / np.float32(n)
    kind = np.empty(len(KIND_FEATURES), np.float32)
    kind[: len(MEMORY_TRAITS)] = traits.sum(axis=0) / np.float32(n)
    kind[len(MEMORY_TRAITS) :] = (
        sum(known.named) / n,
        speaker_share.sum() / n,
        sum(known.assistant) / n,
        sum(known.titled) / n,
        mean,
        np.sqrt(((words - mean) ** 2).sum() / np.float32(n)),
        sum(known.has_title) / n,
        np.count_nonzero(sessions >= 0) / n,
    )
    return kind


def _aligned(found: Findings, place: dict[str, int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A leg's scores and reciprocal places, by candidate; 0 where it has not found one."""
    n = len(place)
    scores, places = np.zeros(n + 1), np.zeros(n + 1)  # the last place is for what is not among the candidates
    at = [place.get(memory_id, n) for memory_id in found.ids]
    scores[at] = found.scores
    places[at] = 1 / np.arange(_SMOOTHING, _SMOOTHING + len(at))
    return scores[:n], places[:n]


def _cosines(mixed: NDArray[np.float32], own: NDArray[np.float32]) -> NDArray[np.float32]:
    """Of both: the cosines, how far each is below the best, and how many deviations above the mean."""
    values = np.array((mixed, own))
    n = np.float32(values.shape[1])
    centred = values - values.sum(axis=1, keepdims=True) / n
    deviation = np.sqrt((centred * centred).sum(axis=1, keepdims=True) / n)
    described = np.empty((2, 3, values.shape[1]), np.float32)
    described[:, 0] = values
    described[:, 1] = values - values.max(axis=1, keepdims=True)
    described[:, 2] = centred / (deviation + np.float32(1e-6))
    return described.reshape(6, -1)


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
    return likeness[:, 0], likeness.sum(axis=1) / np.float32(likeness.shape[1])


def _support(sessions: NDArray[np.intp], consensus: NDArray[np.float64]) -> NDArray[np.float64]:
    """Which share of the consensus the other candidates of the same session have."""
    of_session = np.bincount(sessions + 1, weights=consensus)[sessions + 1]
    return np.asarray(np.where(sessions >= 0, of_session - consensus, 0.0) / (consensus.sum() or 1.0))


def _share(speakers: NDArray[np.intp]) -> NDArray[np.float64]:
    """Which share of the candidates the same speaker said; 1 for those of none."""
    counts = np.bincount(speakers + 1)[speakers + 1]
    return np.where(speakers >= 0, counts / len(speakers), 1.0)
