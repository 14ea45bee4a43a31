"""The compiled loops between the legs' rankings and the rescorer, each against plain arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from numpy.typing import NDArray

from classifier.candidates import CANDIDATE_FEATURES, CORPUS_FEATURES, CandidateInputs, describe
from classifier.query_performance import LegScores, QueryPerformanceFeatures
from classifier.traits import MEMORY_TRAITS, pack_traits, unpack_traits
from retrieval.index.query_vectors import cosines
from retrieval.index.strings import NONE, CategoryColumn
from retrieval.ranking.rescoring import by_string, share_of_title
from tests.rescorable import example

Doubles = NDArray[np.float64]


# Features of candidates


def placed(found: LegScores, ids: Sequence[str]) -> tuple[Doubles, Doubles]:
    """A leg's scores and reciprocal places, by candidate."""
    at = {memory_id: place for place, memory_id in enumerate(found.ids)}
    scores = np.array([found.scores[at[each]] if each in at else 0.0 for each in ids])
    return scores, np.array([1 / (6 + at[each]) if each in at else 0.0 for each in ids])


def spread(values: Doubles) -> list[Doubles]:
    return [values, values - values.max(), (values - values.mean()) / (values.std() + 1e-6)]


def share(values: Doubles) -> Doubles:
    return values / (values.max() or 1.0)


def plain(evidence: QueryPerformanceFeatures, known: CandidateInputs) -> tuple[Doubles, Doubles, list[int]]:
    """Rows, kind and order of the candidates, in double precision."""
    n = len(known.ids)
    (_, by_vector), (bm25, by_bm25), (graph, by_graph) = (
        placed(each, known.ids) for each in (evidence.vector, evidence.bm25, evidence.graph)
    )
    consensus = 0.4 * by_vector + 0.3 * by_bm25 + 0.3 * by_graph
    order = sorted(range(n), key=lambda at: (-consensus[at], -by_vector[at], -by_bm25[at], -by_graph[at]))
    traits, words = (each.astype(np.float64) for each in unpack_traits(known.traits))
    covered = np.asarray(known.covered, np.float64)
    like = np.zeros((n, 1))
    if known.vectors is not None:
        like = known.vectors.astype(np.float64) @ known.vectors[order[:5]].astype(np.float64).T
    speakers, sessions = np.asarray(known.speakers), np.asarray(known.sessions)
    speaker_share = np.array([np.mean(speakers == each) if each >= 0 else 1.0 for each in speakers])
    others = [
        consensus[sessions == each].sum() - own if each >= 0 else 0.0
        for each, own in zip(sessions, consensus, strict=True)
    ]
    columns = [
        *(by_vector, by_bm25, by_graph, share(consensus)),
        *spread(np.asarray(known.mixed, np.float64)),
        *spread(np.asarray(known.own, np.float64)),
        *(share(bm25), bm25 / (evidence.score_upper_bound or 1.0), share(graph)),
        *(covered, share(covered), known.shared, known.rarest),
        *(like[:, 0], like.mean(axis=1), np.array(others) / (consensus.sum() or 1.0)),
        *(known.named, speaker_share, known.assistant, known.titled, words - np.median(words)),
        *traits.T,
        *(np.full(n, each) for each in (*known.query, *evidence.row)),
    ]
    means = (known.named, speaker_share, known.assistant, known.titled, words)
    kind = [*traits.mean(axis=0), *map(np.mean, means), words.std(), np.mean(known.has_title), np.mean(sessions >= 0)]
    return np.array(columns, np.float64).T, np.array(kind), order


@given(st.integers(0, 10_000), st.integers(1, 150), st.booleans(), st.sampled_from(["", "vector", "bm25", "graph"]))
def test_features_of_candidates(seed: int, candidates: int, embedded: bool, lost: str) -> None:
    """Codes of speakers and sessions may be any numbers; a leg may have failed, or found memories deleted since."""
    some, rng = example(seed, candidates=candidates), np.random.default_rng(seed)
    codes = np.append(rng.permutation(2**31 - 1 - np.arange(9)), NONE).astype(np.int32)
    known = structs.replace(
        some.known,
        speakers=codes[np.asarray(some.known.speakers)],
        sessions=codes[np.asarray(some.known.sessions)],
        vectors=some.known.vectors if embedded else None,
    )
    legs = {leg: getattr(some.evidence, leg) for leg in ("vector", "bm25", "graph")}
    legs |= {leg: LegScores() for leg in legs if leg == lost}
    legs = {leg: LegScores([*found.ids, "gone"], [*found.scores, -1.0]) for leg, found in legs.items()}
    evidence = structs.replace(some.evidence, **legs)
    rows, corpus, order = plain(evidence, known)
    got = describe(evidence, known)
    np.testing.assert_allclose(got.rows, rows, rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(got.corpus, corpus, rtol=2e-5, atol=2e-6)
    assert got.top_rows.tolist() == order[:48]
    assert (got.rows.shape[1], got.corpus.size) == (len(CANDIDATE_FEATURES), len(CORPUS_FEATURES))


def test_features_of_what_does_not_fit_are_refused() -> None:
    some = example(1)
    n, evidence = len(some.known.ids), some.evidence
    changes: list[dict[str, Any]] = [
        {"ids": []},
        {"traits": [1] * (n - 1)},
        {"own": np.zeros(n + 1, np.float32)},
        {"sessions": [0] * (n - 1)},
        {"vectors": np.zeros((n - 1, 8), np.float32)},
        {"query": [0.0, 1.0]},
    ]
    for change in changes:
        with pytest.raises(ValueError):  # noqa: PT011  # NumPy's own words for what it cannot fit
            describe(evidence, structs.replace(some.known, **change))
    with pytest.raises(ValueError, match="as many scores"):
        describe(structs.replace(evidence, bm25=LegScores(["m000"], [])), some.known)


@given(st.lists(st.text(max_size=60), max_size=9))
def test_traits_are_the_bits(texts: list[str]) -> None:
    packed = [pack_traits(text) for text in texts]
    traits, words = unpack_traits(np.array(packed, np.int32))
    assert traits.shape == (len(texts), len(MEMORY_TRAITS))
    for bits, row, logarithm in zip(packed, traits, words, strict=True):
        assert row[[0, 1, 2, 3, 4, 8]].tolist() == [bits >> at & 1 for at in (0, 1, 2, 3, 4, 12)]
        assert row[[5, 6, 7, 9]].tolist() == pytest.approx(
            [(bits >> 5 & 3) / 3, (bits >> 7 & 3) / 3, (bits >> 9 & 7) / 5, (bits >> 13 & 3) / 3]
        )
        assert logarithm == pytest.approx(math.log1p(bits >> 15))


# Cosines


@given(st.integers(0, 40), st.sampled_from([1, 7, 31, 32, 33, 100, 384]), st.integers(0, 99), st.data())
def test_cosines(rows: int, dimensions: int, seed: int, data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(rows, dimensions)).astype(np.float32)
    vector = rng.normal(size=dimensions).astype(np.float32)
    np.testing.assert_allclose(cosines(vectors, vector), vectors @ vector, rtol=1e-4, atol=1e-4)
    picked = data.draw(st.lists(st.integers(0, rows - 1), max_size=60)) if rows else []
    places = np.array(picked, np.int64)
    assert np.array_equal(cosines(vectors, vector, places), cosines(vectors, vector)[places])
    assert np.array_equal(cosines(vectors[::-1], vector), cosines(vectors, vector)[::-1])


def test_cosines_of_other_dimensions_are_refused() -> None:
    with pytest.raises(ValueError, match="shape"):
        cosines(np.zeros((2, 8), np.float32), np.zeros(7, np.float32))


# Strings of a column

strings = st.none() | st.text("ab c-", max_size=8)


@given(
    st.lists(
        st.tuples(st.lists(strings, min_size=1, max_size=6), st.frozensets(st.sampled_from("abc") | st.just("ab")))
    )
)
def test_shares_of_titles(steps: list[tuple[list[str | None], frozenset[str]]]) -> None:
    """While the column grows, and memories get other strings."""
    column = CategoryColumn()
    for texts, asked in steps:
        docs = np.arange(len(texts))
        column.put(docs, texts)
        got = by_string(column, column.codes.values[docs], partial(share_of_title, asked), -1.0)
        for text, each in zip(texts, got, strict=True):
            own = {*(text or "").replace("-", " ").split()}
            assert each == (-1.0 if text is None else len(own & asked) / len(own) if own else 0.0)
