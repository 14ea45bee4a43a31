"""Features of the fused candidates, by which the rescorer orders them.

Used both in training and in serving. All features are scale-free: shares of the best, differences of cosines, ranks;
never the size or kind of a corpus, or an absolute length. The kind of memories is summarised separately
(`FeatureMatrix.corpus`) and only decides how far the rescorer is trusted.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import chain
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

import native
from classifier.query_performance import FEATURES as QUERY_EVIDENCE
from classifier.query_performance import Candidate, QueryPerformanceFeatures
from classifier.traits import MEMORY_TRAITS, QUERY_TRAITS, unpack_traits

CANDIDATES_VERSION: Final = 1
"""Incremented when a feature changes its meaning; models for another version are rejected."""

Integers = NDArray[np.int32] | Sequence[int]
Flags = NDArray[np.bool_] | Sequence[bool]


class CandidateInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a query's candidates besides the legs' scores; sequences are aligned with `ids`.

    Attributes:
        ids: the candidates.
        own: cosine of the query with the memory's own text, without a turn's context.
        mixed: cosine of the query with the stored vector.
        vectors: embeddings of the own texts, shape (m, dimensions), float32; None if the query has no embedding.
        covered: share of the query's idf contained in the memory.
        shared: share of the query's terms contained in the memory.
        rarest: greatest idf of a contained term, as a share of the greatest idf in the query.
        traits: from `pack_traits`.
        assistant: whether the speaker is an assistant.
        named: whether the query names the speaker.
        speakers, sessions: codes, -1 for none.
        titled: share of the title's terms contained in the query; 0 without a title.
        has_title: whether the memory has a title.
        query: traits of the query.
        vector_rows: the row of each candidate in `vectors`; None if they are in the same order.
    """

    ids: Sequence[Candidate]
    own: NDArray[np.float32]
    mixed: NDArray[np.float32]
    vectors: NDArray[np.float32] | None
    covered: NDArray[np.float32]
    shared: NDArray[np.float32]
    rarest: NDArray[np.float32]
    traits: Integers
    assistant: Flags
    named: Flags
    speakers: Integers
    sessions: Integers
    titled: NDArray[np.float32] | Sequence[float]
    has_title: Flags
    query: Sequence[float]
    vector_rows: NDArray[np.int64] | None = None


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
"""Names of the features of a candidate, in order."""

CORPUS_FEATURES: Final = (
    *MEMORY_TRAITS,
    *("named", "speaker_share", "assistant", "titled"),
    *("length", "length_deviation", "has_title", "has_session"),
)
"""Names of the features that describe the kind of memories, in order."""

BLEND_K: Final = 5
"""Smoothing constant of the reciprocal ranks by which the orders of the fusion and of the rescorer are blended."""

MOST_RESCORED: Final = 48
"""Most candidates that are rescored, the best by `consensus`; later ones rarely belong in the top ten."""

_OF_QUERY = len(QUERY_TRAITS) + len(QUERY_EVIDENCE)
"""Number of features shared by all candidates of a query; they come last in a row."""

_describe = native.function("trivet_describe", "qqqqPPdPPPPqPqPqPPP", "i")


class FeatureMatrix(NamedTuple):
    """The candidates of a query as input of the rescorer.

    Attributes:
        rows: shape (n, len(CANDIDATE_FEATURES)), float32, finite.
        corpus: shape (len(CORPUS_FEATURES),), float32: the kind of memories.
        top_rows: indices of the rows to rescore, best first by `consensus`.
    """

    rows: NDArray[np.float32]
    corpus: NDArray[np.float32]
    top_rows: NDArray[np.int64]


def describe(
    evidence: QueryPerformanceFeatures, inputs: CandidateInputs, positions: array[int] | None = None
) -> FeatureMatrix:
    """Compute the features of all candidates of a query, from the rankings of the legs and the candidates' inputs.

    `positions` are indices into `inputs.ids` of the hits of each leg, leg after leg, as int32; looked up if None.
    Raises ValueError if there is no candidate, or the inputs differ in length.
    """
    n = len(inputs.ids)
    if not n:
        raise ValueError("a query without candidates has no features")
    legs = (evidence.vector, evidence.bm25, evidence.graph)
    if positions is None:
        place = dict(zip(inputs.ids, range(n), strict=True))
        positions = array("i", [place.get(candidate, n) for leg in legs for candidate in leg.ids])
    scores = array("d", chain.from_iterable([leg.scores for leg in legs]))
    if not len(positions) == len(scores) == sum([len(leg.ids) for leg in legs]):
        raise ValueError("a leg has not as many scores as memories")
    traits, words = unpack_traits(inputs.traits)
    # In the order of the kernel's structs.
    floats = np.array(
        [inputs.mixed, inputs.own, inputs.covered, inputs.shared, inputs.rarest, inputs.titled, words], np.float32
    )
    codes = np.array([inputs.speakers, inputs.sessions, inputs.assistant, inputs.named, inputs.has_title], np.int32)
    vectors = None if inputs.vectors is None else np.ascontiguousarray(inputs.vectors, np.float32)
    vector_rows = inputs.vector_rows
    placed = n if vectors is None else len(vectors if vector_rows is None else vector_rows)
    if not floats.shape[1] == codes.shape[1] == placed == n:
        raise ValueError(f"there are {n} candidates, and what is known is of others")
    query = np.empty(_OF_QUERY, np.float32)
    query[: len(QUERY_TRAITS)] = inputs.query
    query[len(QUERY_TRAITS) :] = evidence.row
    rows = np.empty((n, len(CANDIDATE_FEATURES)), np.float32)
    corpus = np.empty(len(CORPUS_FEATURES), np.float32)
    order = np.empty(n, np.int64)
    _describe(
        n, *[len(leg.ids) for leg in legs], positions.buffer_info()[0], scores.buffer_info()[0],
        evidence.score_upper_bound,
        native.address(floats), native.address(codes),
        None if vectors is None else native.address(vectors),
        None if vector_rows is None else native.address(vector_rows), 0 if vectors is None else vectors.shape[1],
        native.address(traits), len(MEMORY_TRAITS), native.address(query), _OF_QUERY, native.address(rows),
        native.address(corpus), native.address(order),
    )  # fmt: skip
    return FeatureMatrix(rows, corpus, order[:MOST_RESCORED])
