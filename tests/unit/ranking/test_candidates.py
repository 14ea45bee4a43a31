"""The features of candidates: by hand, for any evidence, and invariances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from numpy.typing import NDArray

from classifier.candidates import CANDIDATE_FEATURES, CORPUS_FEATURES, MOST_RESCORED, CandidateInputs, describe
from classifier.intents import INTENTS
from classifier.query_performance import LegScores, QueryPerformanceFeatures
from classifier.traits import MEMORY_TRAITS, QUERY_TRAITS, pack_traits, query_traits, unpack_traits
from tests.rescorable import example, particulars

LEGS = ("vector", "bm25", "graph")


def rows_of(found: QueryPerformanceFeatures, known: CandidateInputs) -> NDArray[np.float32]:
    return describe(found, known).rows


def column(rows: NDArray[np.float32], name: str) -> list[float]:
    return [float(value) for value in rows[:, CANDIDATE_FEATURES.index(name)]]


def kind(found: QueryPerformanceFeatures, known: CandidateInputs) -> dict[str, float]:
    return dict(zip(CORPUS_FEATURES, describe(found, known).corpus.tolist(), strict=True))


def permuted(known: CandidateInputs, order: Sequence[int]) -> CandidateInputs:
    """The same candidates in another order."""
    values: dict[str, Any] = {}
    for name in CandidateInputs.__struct_fields__:
        value = getattr(known, name)
        if name != "query" and value is not None:
            values[name] = value[list(order)] if isinstance(value, np.ndarray) else [value[at] for at in order]
    return structs.replace(known, **values)


def legs(found: QueryPerformanceFeatures) -> Mapping[str, LegScores]:
    return {leg: getattr(found, leg) for leg in LEGS}


def with_legs(
    found: QueryPerformanceFeatures, others: Mapping[str, LegScores], **more: Any
) -> QueryPerformanceFeatures:
    changed: dict[str, Any] = {**others, **more}
    return structs.replace(found, **changed)


# Three candidates: the vector leg found a, b; BM25 b, x and c, of which x is no candidate any more; the graph nothing.
HAND_EVIDENCE = QueryPerformanceFeatures(
    vector=LegScores(["a", "b"], [0.5, 0.25]),
    bm25=LegScores(["b", "x", "c"], [4.0, 3.0, 1.0]),
    graph=LegScores(),
    score_upper_bound=8.0,
    entity_idfs=(),
    words=3,
    probabilities=dict.fromkeys(INTENTS, 0.25),
)
HAND = CandidateInputs(
    ids=["a", "b", "c"],
    own=np.array([0.5, 0.25, 0.0], np.float32),
    mixed=np.array([0.75, 0.5, 0.25], np.float32),
    vectors=np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32),
    covered=np.array([0.0, 0.5, 0.25], np.float32),
    shared=np.array([0.0, 0.25, 0.75], np.float32),
    rarest=np.array([0.0, 1.0, 0.5], np.float32),
    traits=[pack_traits("I love it"), pack_traits("one two three four five"), pack_traits("Is it?")],
    assistant=[False, True, False],
    named=[True, False, False],
    speakers=[0, 1, 0],
    sessions=[7, 7, -1],
    titled=[0.0, 0.5, 0.0],
    has_title=[False, True, True],
    query=query_traits("When did Ana leave?"),
)


def test_features_by_hand() -> None:
    """Places are 1 / (6 + rank from 0); their consensus is .4 of the vector leg's and .3 of the others'."""
    rows = rows_of(HAND_EVIDENCE, HAND)
    consensus = [0.4 / 6, 0.4 / 7 + 0.3 / 6, 0.3 / 8]
    deviation = np.std([0.75, 0.5, 0.25])
    expected = {
        "place_vector": [1 / 6, 1 / 7, 0],
        "place_bm25": [0, 1 / 6, 1 / 8],
        "place_graph": [0, 0, 0],
        "consensus": [each / consensus[1] for each in consensus],
        "cosine": [0.75, 0.5, 0.25],
        "cosine_below": [0, -0.25, -0.5],
        "cosine_deviations": [0.25 / deviation, 0, -0.25 / deviation],
        "own": [0.5, 0.25, 0],
        "own_below": [0, -0.25, -0.5],
        "bm25": [0, 1, 0.25],
        "bm25_attained": [0, 0.5, 0.125],
        "graph": [0, 0, 0],
        "covered": [0, 0.5, 0.25],
        "covered_of_best": [0, 1, 0.5],
        "shared": [0, 0.25, 0.75],
        "rarest": [0, 1, 0.5],
        "like_first": [0, 1, 0.8],
        "like_few": [(1 + 0 + 0.6) / 3, (0 + 1 + 0.8) / 3, (0.6 + 0.8 + 1) / 3],
        "session": [consensus[1] / sum(consensus), consensus[0] / sum(consensus), 0],
        "named": [1, 0, 0],
        "speaker_share": [2 / 3, 1 / 3, 2 / 3],
        "assistant": [0, 1, 0],
        "titled": [0, 0.5, 0],
        "length": [0, np.log(6 / 4), np.log(3 / 4)],
        "liking": [1 / 3, 0, 0],
        "asks": [0, 0, 1],
        "query_when": [1, 1, 1],
        "query_where": [0, 0, 0],
        "evidence_cosine": [0.5, 0.5, 0.5],
    }
    for name, values in expected.items():
        assert column(rows, name) == pytest.approx(values, abs=1e-5), name
    assert column(rows, "own_deviations") == pytest.approx(column(rows, "cosine_deviations"), abs=1e-4)


def test_a_row_ends_with_the_traits_of_the_memory_the_query_and_the_evidence() -> None:
    rows = rows_of(HAND_EVIDENCE, HAND)
    first = CANDIDATE_FEATURES.index(MEMORY_TRAITS[0])
    last = first + len(MEMORY_TRAITS)
    assert np.array_equal(rows[:, first:last], unpack_traits(HAND.traits)[0])
    for row in rows:
        assert np.array_equal(row[last : last + len(QUERY_TRAITS)], np.array(HAND.query, np.float32))
        assert np.array_equal(row[last + len(QUERY_TRAITS) :], HAND_EVIDENCE.row)


def test_the_kind_of_memories_by_hand() -> None:
    lengths = np.log([4, 6, 3])
    expected = {
        "asks": 1 / 3,
        "asked": 1 / 3,
        "liking": 1 / 9,
        "first_person": 1 / 9,
        "capitals": 0,
        "named": 1 / 3,
        "speaker_share": 5 / 9,
        "assistant": 1 / 3,
        "titled": 1 / 6,
        "length": lengths.mean(),
        "length_deviation": lengths.std(),
        "has_title": 2 / 3,
        "has_session": 2 / 3,
    }
    got = kind(HAND_EVIDENCE, HAND)
    assert {name: got[name] for name in expected} == pytest.approx(expected, abs=1e-6)


def test_the_foremost_are_the_best_by_consensus() -> None:
    assert describe(HAND_EVIDENCE, HAND).top_rows.tolist() == [1, 0, 2]
    many = example(2, candidates=MOST_RESCORED + 30)
    described = describe(many.evidence, many.known)
    consensus, top_rows = described.rows[:, CANDIDATE_FEATURES.index("consensus")], described.top_rows
    assert len(set(top_rows.tolist())) == top_rows.size == MOST_RESCORED
    assert consensus[top_rows].tolist() == sorted(consensus.tolist(), reverse=True)[:MOST_RESCORED]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_of_equals_the_one_that_the_earlier_leg_found_is_before(order: Sequence[int]) -> None:
    """BM25's best and the graph's count alike."""
    found = structs.replace(
        HAND_EVIDENCE, vector=LegScores(), bm25=LegScores(["c"], [2.0]), graph=LegScores(["a", "b"], [1.0, 0.5])
    )
    known = permuted(HAND, order)
    assert [known.ids[at] for at in describe(found, known).top_rows] == ["c", "a", "b"]


def test_the_names_are_each_there_once() -> None:
    assert len(set(CANDIDATE_FEATURES)) == len(CANDIDATE_FEATURES) == rows_of(HAND_EVIDENCE, HAND).shape[1]
    assert len(set(CORPUS_FEATURES)) == len(CORPUS_FEATURES) == describe(HAND_EVIDENCE, HAND).corpus.size


POOL = [f"m{at:02}" for at in range(14)]


@st.composite
def evidences(draw: st.DrawFn) -> QueryPerformanceFeatures:
    """Legs that found some of the pool or nothing, with scores that may all be alike, or 0."""

    def found(least: float, most: float) -> LegScores:
        ids = draw(st.lists(st.sampled_from(POOL), unique=True, max_size=len(POOL)))
        scores = draw(st.lists(st.floats(least, most), min_size=len(ids), max_size=len(ids)))
        return LegScores(ids, sorted(scores, reverse=True))

    return QueryPerformanceFeatures(
        vector=found(-1.0, 1.0),
        bm25=found(0.0, 50.0),
        graph=found(0.0, 1.0),
        score_upper_bound=draw(st.sampled_from([0.0, 0.5, 60.0])),
        entity_idfs=draw(st.lists(st.floats(0, 1), max_size=3)),
        words=draw(st.integers(0, 40)),
        probabilities=dict.fromkeys(INTENTS, 0.25),
    )


@st.composite
def candidates(draw: st.DrawFn) -> CandidateInputs:
    """Some of the pool, in any order; those of one say the same, and there may be no vectors and no terms."""
    ids = draw(st.lists(st.sampled_from(POOL), unique=True, min_size=1, max_size=len(POOL)))
    said = draw(st.lists(st.text(max_size=30), min_size=1, max_size=3))
    known = particulars(np.random.default_rng(draw(st.integers(0, 99))), ids, said)
    nothing = np.zeros(len(ids), np.float32)
    if draw(st.booleans()):
        known = structs.replace(known, own=nothing, mixed=nothing, vectors=None)
    if draw(st.booleans()):
        known = structs.replace(known, covered=nothing, shared=nothing, rarest=nothing)
    return known


@given(evidences(), candidates())
def test_features_are_finite_whatever_the_legs_found(found: QueryPerformanceFeatures, known: CandidateInputs) -> None:
    """Also of candidates that no leg found, and if a leg found others that are not candidates."""
    described = describe(found, known)
    rows, of_kind = described.rows, described.corpus
    assert sorted(described.top_rows.tolist()) == list(range(len(known.ids)))
    assert rows.shape == (len(known.ids), len(CANDIDATE_FEATURES))
    assert rows.dtype == np.float32
    assert np.isfinite(rows).all()
    assert of_kind.shape == (len(CORPUS_FEATURES),)
    assert of_kind.dtype == np.float32
    assert np.isfinite(of_kind).all()


@given(evidences(), candidates(), st.randoms(use_true_random=False))
def test_the_order_of_the_candidates_does_not_matter(
    found: QueryPerformanceFeatures, known: CandidateInputs, random: Any
) -> None:
    """To rounding, also where some are equally good and few of them are what the others are compared to."""
    ids = {memory_id for leg in legs(found).values() for memory_id in leg.ids}
    kept = [at for at, memory_id in enumerate(known.ids) if memory_id in ids] or [0]
    known = permuted(known, kept)
    order = list(range(len(kept)))
    random.shuffle(order)
    shuffled = permuted(known, order)
    got, expected = describe(found, shuffled), describe(found, known)
    np.testing.assert_allclose(got.rows, expected.rows[order], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(got.corpus, expected.corpus, rtol=1e-5, atol=1e-6)
    assert [order[at] for at in got.top_rows] == expected.top_rows.tolist()


@given(evidences(), candidates(), st.integers(-6, 6))
def test_the_scale_of_bm25_and_of_the_graph_does_not_matter(
    found: QueryPerformanceFeatures, known: CandidateInputs, power: int
) -> None:
    """By powers of 2, which floating point scales exactly; nothing becomes smaller than it has digits for."""
    factor = 2.0**power
    rounded = {
        leg: LegScores(legs(found)[leg].ids, [round(score, 6) for score in legs(found)[leg].scores])
        for leg in ("bm25", "graph")
    }
    found = with_legs(found, rounded, score_upper_bound=found.score_upper_bound or 60.0)
    scaled = {leg: LegScores(each.ids, [score * factor for score in each.scores]) for leg, each in rounded.items()}
    assert np.array_equal(
        rows_of(with_legs(found, scaled, score_upper_bound=found.score_upper_bound * factor), known),
        rows_of(found, known),
    )


@given(evidences(), candidates())
def test_names_of_ids_speakers_and_sessions_do_not_matter(
    found: QueryPerformanceFeatures, known: CandidateInputs
) -> None:
    """Only which of them are equal; by id the order would differ."""
    names = dict(zip(POOL, reversed(POOL), strict=True))
    renamed = {leg: LegScores([names[each] for each in of.ids], of.scores) for leg, of in legs(found).items()}
    other = structs.replace(
        known,
        ids=[names[each] for each in known.ids],
        speakers=[9 - each if each >= 0 else -1 for each in known.speakers],
        sessions=[9 - each if each >= 0 else -1 for each in known.sessions],
    )
    got, expected = describe(with_legs(found, renamed), other), describe(found, known)
    assert np.array_equal(got.rows, expected.rows)
    assert np.array_equal(got.corpus, expected.corpus)


def test_lengths_count_against_each_other_only() -> None:
    """Texts that are all three times as long change the corpus features, but not the candidates'."""
    some = example(3)
    counts = [4, 9, 14, 29, 99]
    known = permuted(some.known, range(5))
    usual = structs.replace(known, traits=[pack_traits("a " * count) for count in counts])
    longer = structs.replace(known, traits=[pack_traits("a " * (3 * count + 2)) for count in counts])
    rows = [rows_of(some.evidence, each) for each in (usual, longer)]
    np.testing.assert_allclose(rows[1], rows[0], atol=1e-5)
    before, after = kind(some.evidence, usual), kind(some.evidence, longer)
    assert after["length"] == pytest.approx(before["length"] + np.log(3), rel=1e-5)
    assert after["length_deviation"] == pytest.approx(before["length_deviation"], rel=1e-4)


def test_a_candidate_alone() -> None:
    [row] = rows_of(HAND_EVIDENCE, permuted(HAND, [1])).tolist()
    got = dict(zip(CANDIDATE_FEATURES, row, strict=True))
    alone = {"consensus": 1, "cosine_below": 0, "cosine_deviations": 0, "bm25": 1, "session": 0, "speaker_share": 1}
    assert {name: got[name] for name in alone} == pytest.approx(alone)
    assert (got["like_first"], got["like_few"], got["length"]) == pytest.approx((1, 1, 0))


def test_vectors_may_stand_in_any_order() -> None:
    """With others among them; `places` says where."""
    some = example(5)
    assert some.known.vectors is not None
    rng = np.random.default_rng(5)
    places = rng.permutation(3 * len(some.known.ids))[: len(some.known.ids)]
    vectors = rng.normal(size=(3 * len(places), some.known.vectors.shape[1])).astype(np.float32)
    vectors[places] = some.known.vectors
    elsewhere = structs.replace(some.known, vectors=vectors, vector_rows=places)
    in_order, anywhere = describe(some.evidence, some.known), describe(some.evidence, elsewhere)
    assert np.array_equal(in_order.rows, anywhere.rows)
    with pytest.raises(ValueError, match="of others"):
        describe(some.evidence, structs.replace(elsewhere, vector_rows=places[1:]))
