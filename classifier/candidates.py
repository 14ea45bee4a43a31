"""What the legs and the texts say of each fused candidate, as the numbers that the rescorer orders them by.

Used alike in training and in serving. Scale-free: shares of the best, differences of cosines, places; never a
corpus' size, an absolute length or its kind. What kind of memories the candidates are is summed up apart
(`Described.kind`), and says only how far the rescorer is to be believed.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from itertools import chain
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

import native
from classifier.evidence import FEATURES as QUERY_EVIDENCE
from classifier.evidence import Evidence
from classifier.traits import MEMORY_TRAITS, QUERY_TRAITS, unpack_traits

CANDIDATES_VERSION: Final = 1
"""Counts up when a feature changes its meaning; a model for another version is refused."""

Integers = NDArray[np.int32] | Sequence[int]
Flags = NDArray[np.bool_] | Sequence[bool]
Shares = NDArray[np.float32] | Sequence[float]


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
    traits: Integers
    assistant: Flags
    named: Flags
    speakers: Integers
    sessions: Integers
    titled: Shares
    has_title: Flags
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


_OF_QUERY = len(QUERY_TRAITS) + len(QUERY_EVIDENCE)
"""Features that are the same for all candidates, the last ones of a row."""

_PLACE_BYTES = 4

_describe = native.function(
    "trivet_describe",
    *[ctypes.c_int64] * 4, native.Array, native.Array, ctypes.c_double, native.Array, native.Array,
    native.Array, ctypes.c_int64, native.Array, ctypes.c_int64, native.Array, ctypes.c_int64,
    native.Array, native.Array, native.Array,
    result=ctypes.c_int32,
)  # fmt: skip


class Described(NamedTuple):
    """The candidates of one query as the rescorer reads them.

    Attributes:
        rows: shape (n, len(CANDIDATE_FEATURES)), float32, finite.
        kind: shape (len(KIND_FEATURES),), float32: what kind of memories they are.
        foremost: which rows are ordered anew, best first by `consensus`.
    """

    rows: NDArray[np.float32]
    kind: NDArray[np.float32]
    foremost: NDArray[np.int64]


def describe(evidence: Evidence, known: Particulars, at: bytes | None = None) -> Described:
    """The features of all candidates of one query.

    Args:
        evidence: the rankings of the legs.
        known: of their memories.
        at: where in `known` what each leg found is, leg after leg, as int32; None where that is still to be looked up.

    Raises:
        ValueError: there is no candidate, or what is known of them is not of as many.
    """
    n = len(known.ids)
    if not n:
        raise ValueError("a query without candidates has no features")
    legs = (evidence.vector, evidence.bm25, evidence.graph)
    if at is None:
        place = dict(zip(known.ids, range(n), strict=True))
        at = array("i", [place.get(memory_id, n) for leg in legs for memory_id in leg.ids]).tobytes()
    scores = array("d", chain.from_iterable([leg.scores for leg in legs]))
    if not len(at) // _PLACE_BYTES == len(scores) == sum([len(leg.ids) for leg in legs]):
        raise ValueError("a leg has not as many scores as memories")
    traits, words = unpack_traits(known.traits)
    # As the structs of the kernel name them.
    floats = np.empty((7, n), np.float32)
    for row, values in enumerate(
        (known.mixed, known.own, known.covered, known.shared, known.rarest, known.titled, words)
    ):
        floats[row] = values
    codes = np.empty((5, n), np.int32)
    for row, numbers in enumerate((known.speakers, known.sessions, known.assistant, known.named, known.has_title)):
        codes[row] = numbers
    vectors = None if known.vectors is None else np.ascontiguousarray(known.vectors, np.float32)
    if traits.shape[0] != n or (vectors is not None and len(vectors) != n):
        raise ValueError(f"there are {n} candidates, and what is known is of others")
    query = np.empty(_OF_QUERY, np.float32)
    query[: len(QUERY_TRAITS)] = known.query
    query[len(QUERY_TRAITS) :] = evidence.row
    rows = np.empty((n, len(CANDIDATE_FEATURES)), np.float32)
    kind = np.empty(len(KIND_FEATURES), np.float32)
    order = np.empty(n, np.int64)
    failed = _describe(
        n, *[len(leg.ids) for leg in legs], at, scores.buffer_info()[0], evidence.attainable, native.at(floats),
        native.at(codes),
        None if vectors is None else native.at(vectors), 0 if vectors is None else vectors.shape[1], native.at(traits),
        len(MEMORY_TRAITS), native.at(query), _OF_QUERY, native.at(rows), native.at(kind), native.at(order),
    )  # fmt: skip
    if failed:
        raise MemoryError
    return Described(rows, kind, order[:MOST_RESCORED])
