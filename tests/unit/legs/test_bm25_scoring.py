"""BM25 of memories and of turns in context, and their coverage of a query: by hand and by properties."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import structs
from numpy.typing import NDArray

from retrieval.index.terms import Postings
from retrieval.legs import bm25_scoring
from retrieval.legs.bm25_scoring import (
    AFTER_SHARES,
    BEFORE_SHARES,
    K1,
    LENGTH_PIVOT,
    TermQuery,
    coverage,
    length_penalty,
)
from tests.okapi import Said, best, term_postings

Texts = Mapping[int, Mapping[int, int]]
"""The frequency of each term in each memory, by ordinal."""


def index(texts: Texts, *, padding: int = 0) -> Postings:
    """Postings over all memories, each with `padding` terms outside any query."""
    lengths = lengths_of(texts, padding=padding)
    terms = {
        term: term_postings({doc: counts[term] for doc, counts in texts.items() if term in counts}, lengths)
        for term in {term for counts in texts.values() for term in counts}
    }
    return Postings(terms, len(texts), sum(lengths.values()))


def score_in_context(
    query: TermQuery, lengths: Mapping[int, int], sessions: Sequence[Sequence[int]], *, share: float
) -> dict[int, float]:
    """The scores by ordinal of memories, some of them turns of sessions."""
    said = Said(ordinals=100, lengths=lengths, sessions=sessions)
    near, every = max(map(len, sessions), default=0), said.everything
    docs, scores = bm25_scoring.ranked(query, said.columns(), every, every, count=100, near=near, share=share)
    found = dict(zip(docs.tolist(), scores.tolist(), strict=True))
    return {doc: found.get(doc, 0.0) for doc in lengths}


def lengths_of(texts: Texts, *, padding: int = 0) -> dict[int, int]:
    return {doc: padding + sum(counts.values()) for doc, counts in texts.items()}


def alone(query: TermQuery) -> dict[int, float]:
    return dict(best(query, np.ones(100, np.bool_), 100))


# Four memories of 10 terms each; the average is 10, so b = 10 / 40 and the length changes nothing: the
# saturation is K1 * (1 - b + b) = 1.2. Term 7 is in memories 1 and 4, term 8 in memory 3.
IDF_7 = math.log(1 + (4 - 2 + 0.5) / (2 + 0.5))
IDF_8 = math.log(1 + (4 - 1 + 0.5) / (1 + 0.5))


def hand_query() -> TermQuery:
    lengths = dict.fromkeys((1, 3, 4), 10)
    terms = {7: term_postings({1: 1, 4: 3}, lengths), 8: term_postings({3: 2}, lengths)}
    return TermQuery.from_postings(Postings(terms, 4, 40))


def saturated(tf: float) -> float:
    return tf * 2.2 / (tf + 1.2)


def test_scores_alone_by_hand() -> None:
    assert alone(hand_query()) == pytest.approx(
        {1: IDF_7 * 1.0, 3: IDF_8 * saturated(2), 4: IDF_7 * saturated(3)}, rel=1e-12
    )


def test_scores_in_context_by_hand() -> None:
    """The nearest turn before counts .4 and the next .3; after, .3 and .2. Before saturation, not after."""
    lengths = dict.fromkeys((1, 2, 3, 4), 10)
    got = score_in_context(hand_query(), lengths, [[1, 2, 3, 4]], share=1.0)
    expected = {
        1: IDF_7 * saturated(1 + 0.1 * 3) + IDF_8 * saturated(0.2 * 2),  # 4 is the third after it, 3 the second
        2: IDF_7 * saturated(0.4 * 1 + 0.2 * 3) + IDF_8 * saturated(0.3 * 2),
        3: IDF_7 * saturated(0.3 * 1 + 0.3 * 3) + IDF_8 * saturated(2),
        4: IDF_7 * saturated(3 + 0.2 * 1) + IDF_8 * saturated(0.4 * 2),
    }
    assert got == pytest.approx(expected, rel=1e-12)
    halved = score_in_context(hand_query(), lengths, [[1, 2, 3, 4]], share=0.5)[2]
    assert halved == pytest.approx(IDF_7 * saturated(0.5 * (0.4 + 0.6)) + IDF_8 * saturated(0.5 * 0.6), rel=1e-12)


def test_without_saturation_each_term_counts_once() -> None:
    """With k1 = 0, also in a turn without some term, in itself or its neighbours."""
    query = replace(hand_query(), k1=0.0)
    assert alone(query) == pytest.approx({1: IDF_7, 3: IDF_8, 4: IDF_7}, rel=1e-12)
    got = score_in_context(query, dict.fromkeys((1, 2, 3, 4), 10), [[1, 2], [3, 4]], share=1.0)
    assert got == pytest.approx({1: IDF_7, 2: IDF_7, 3: IDF_7 + IDF_8, 4: IDF_7 + IDF_8}, rel=1e-12)


def test_a_turn_s_own_length_counts_and_not_that_of_its_neighbours() -> None:
    by_length = [score_in_context(hand_query(), {2: length}, [[1, 2]], share=1.0)[2] for length in (1, 10, 50)]
    assert by_length == sorted(by_length, reverse=True)
    b = 10 / (10 + LENGTH_PIVOT)
    assert by_length[2] == pytest.approx(IDF_7 * 0.4 * 2.2 / (0.4 + K1 * (1 - b + b * 5)))


def test_turns_without_neighbours_and_no_turns_at_all() -> None:
    assert score_in_context(hand_query(), {}, [], share=1.0) == {}
    assert score_in_context(hand_query(), {1: 10, 99: 4}, [[1], [99]], share=1.0) == pytest.approx({1: IDF_7, 99: 0.0})


def test_neighbours_beyond_those_that_count_change_nothing() -> None:
    """The fifth before a turn, and the fourth after it."""
    beside = [20, 21, 22, 23, 3, 24, 25, 26]
    lengths = dict.fromkeys((*beside, 1, 4), 10)
    near = score_in_context(hand_query(), lengths, [beside], share=1.0)[3]
    assert near == pytest.approx(IDF_8 * saturated(2))
    assert score_in_context(hand_query(), lengths, [[1, *beside, 4]], share=1.0)[3] == near


COUNTS = st.dictionaries(st.integers(0, 3), st.integers(1, 5), max_size=3)
SESSIONS = st.lists(COUNTS, min_size=1, max_size=12).map(lambda turns: dict(enumerate(turns)))


@given(SESSIONS, st.integers(1, 30), st.randoms(use_true_random=False))
def test_share_0_is_the_plain_score(texts: Texts, padding: int, random: object) -> None:
    """In whatever order the turns stand."""
    assume(any(texts.values()))
    order = list(texts)
    random.shuffle(order)  # type: ignore[attr-defined]
    query = TermQuery.from_postings(index(texts, padding=padding))
    plain = alone(query)
    got = score_in_context(query, lengths_of(texts, padding=padding), [order], share=0.0)
    assert got == pytest.approx({doc: plain.get(doc, 0.0) for doc in texts}, rel=1e-9, abs=1e-12)


@given(SESSIONS, st.integers(1, 30), st.floats(0.05, 1.0), st.data())
def test_a_neighbour_s_term_raises_a_score_and_never_as_far_as_the_turn_s_own(
    texts: dict[int, Mapping[int, int]], padding: int, share: float, data: st.DataObject
) -> None:
    """The term comes into the session's neighbour; statistics and lengths stay those of before."""
    assume(any(texts.values()) and len(texts) > 1)
    query = TermQuery.from_postings(index(texts, padding=padding))
    lengths = lengths_of(texts, padding=padding)
    turn = data.draw(st.sampled_from(sorted(texts)))
    term = data.draw(st.sampled_from(sorted({term for counts in texts.values() for term in counts})))
    order = list(texts)
    at = order.index(turn)
    beside = {*order[max(0, at - len(BEFORE_SHARES)) : at], *order[at + 1 : at + 1 + len(AFTER_SHARES)]}
    neighbour = data.draw(st.sampled_from(sorted(beside)))
    in_it = with_term(texts, neighbour, term, query, padding)
    in_the_turn = with_term(texts, turn, term, query, padding)

    def scored(asked: TermQuery) -> float:
        return score_in_context(asked, lengths, [order], share=share)[turn]

    assert scored(query) < scored(in_it) < scored(in_the_turn)


def with_term(texts: Mapping[int, Mapping[int, int]], doc: int, term: int, query: TermQuery, padding: int) -> TermQuery:
    """The query as if a memory had the term once more, with the old idf and average."""
    more = {**texts, doc: {**texts[doc], term: texts[doc].get(term, 0) + 1}}
    changed = TermQuery.from_postings(index(more, padding=padding))
    idf = {tuple(each.postings.docs.tolist()): each.idf for each in query.terms}
    before = index(texts, padding=padding)
    return replace(
        query,
        terms=[
            type(each)(each.postings, idf[tuple(before.terms[number].docs.tolist())])
            for number, each in zip(index(more, padding=padding).terms, changed.terms, strict=True)
        ],
    )


@given(st.integers(1, 8), st.integers(1, 20), st.integers(1, 4))
def test_equal_turns_have_equal_scores(terms: int, sessions: int, length: int) -> None:
    """To the last bit, or ties would go by the place of a turn in the arithmetic and not by id."""
    texts: dict[int, Mapping[int, int]] = {}
    turns = [range(first, first + length + 1) for first in range(0, sessions * (length + 1), length + 1)]
    for session in turns:
        for at, doc in enumerate(session):
            texts[doc] = {term: 1 + (term * 7 + at) % 3 for term in range(terms) if (term + at) % 2}
    assume(any(texts.values()))
    got = score_in_context(
        TermQuery.from_postings(index(texts, padding=3)), lengths_of(texts, padding=3), turns, share=1.0
    )
    for at in range(length + 1):
        assert len({got[session[at]] for session in turns}) == 1


@given(SESSIONS, st.integers(1, 30))
def test_no_score_is_above_what_is_attainable(texts: Texts, padding: int) -> None:
    """Neither alone nor in context; a term in no memory raises the bound."""
    assume(any(texts.values()))
    found = index(texts, padding=padding)
    terms = list(found.terms)
    query = TermQuery.from_postings(found, terms)
    most = query.score_upper_bound
    in_context = score_in_context(query, lengths_of(texts, padding=padding), [list(texts)], share=1.0)
    assert max(*alone(query).values(), *in_context.values()) < most
    assert TermQuery.from_postings(found, [*terms, 999]).score_upper_bound > most


@pytest.mark.parametrize("found", [Postings({}, 0, 0), Postings({}, 3, 30)])
def test_nothing_is_attainable_without_terms_and_nothing_found_without_postings(found: Postings) -> None:
    query = TermQuery.from_postings(found, period_weight=1.0)
    assert query.score_upper_bound == 0.0
    assert alone(query) == score_in_context(query, {}, [[1, 2]], share=1.0) == {}


# Term 7 in memory 1; memories 2 and 3 are of the query's period.
def dated() -> Postings:
    return Postings({7: term_postings({1: 1}, {1: 10})}, 5, 50, np.array([2, 3], np.int32))


def test_a_period_is_one_term_which_a_memory_has_or_has_not() -> None:
    query = TermQuery.from_postings(dated(), period_weight=0.5)
    idf_period = math.log(1 + (5 - 2 + 0.5) / (2 + 0.5))
    idf_7 = math.log(1 + (5 - 1 + 0.5) / (1 + 0.5))
    assert alone(query) == pytest.approx({1: idf_7, 2: 0.5 * idf_period, 3: 0.5 * idf_period})


def test_a_neighbour_s_date_is_not_a_turn_s_own() -> None:
    query = TermQuery.from_postings(dated(), period_weight=1.0)
    idf_period = math.log(1 + (5 - 2 + 0.5) / (2 + 0.5))
    got = score_in_context(query, {3: 10, 4: 10}, [[3, 4]], share=1.0)
    assert got == pytest.approx({3: idf_period, 4: 0.0})


def test_without_weight_a_period_counts_nothing() -> None:
    assert set(alone(TermQuery.from_postings(dated()))) == {1}
    assert alone(TermQuery.from_postings(structs.replace(dated(), terms={}))) == {}


@pytest.mark.parametrize("average", [1e-3, 1.0, 30.0, 1e6])
def test_the_length_penalty_is_a_share_that_grows_with_the_average(average: float) -> None:
    assert 0 < length_penalty(average) < 1
    assert length_penalty(average) < length_penalty(average * 2)


@given(SESSIONS, st.sets(st.integers(0, 6), min_size=1), st.randoms(use_true_random=False))
def test_coverage_is_what_counting_says(texts: Texts, asked: set[int], random: object) -> None:
    """Of memories in any order, those without any term and unknown ones among them, and of terms that none has."""
    found = index(texts, padding=2)
    present = {term: postings for term, postings in found.terms.items() if term in asked}
    asked_for = Postings(present, found.memories, found.length)
    idf = {term: log_idf(found.memories, sum(term in counts for counts in texts.values())) for term in asked}
    docs = [*texts, 99]
    random.shuffle(docs)  # type: ignore[attr-defined]
    got = coverage(TermQuery.from_postings(asked_for, asked), docs)
    greatest = max((idf[term] for term in present), default=1.0)
    for doc, covered, shared, rarest in zip(docs, *got, strict=True):
        there = [idf[term] for term in asked if texts.get(doc, {}).get(term)]
        assert covered == pytest.approx(sum(there) / sum(idf.values()), rel=1e-5)
        assert shared == pytest.approx(len(there) / len(asked), rel=1e-6)
        assert rarest == pytest.approx(max(there, default=0.0) / greatest, rel=1e-6)
        assert max(covered, shared, rarest) <= 1.0


def log_idf(memories: int, df: int) -> float:
    return math.log(1 + (memories - df + 0.5) / (df + 0.5))


def test_a_memory_with_all_the_terms_covers_all_and_counts_no_repetition() -> None:
    found = index({1: {7: 1, 8: 5}, 2: {7: 3}, 3: {}})
    covered, shared, rarest = coverage(TermQuery.from_postings(found, [7, 8]), [2, 1, 3])
    assert covered.tolist() == pytest.approx([IDF_OF_2 / (IDF_OF_2 + IDF_OF_1), 1, 0], rel=1e-6)
    assert shared.tolist() == [0.5, 1, 0]
    assert rarest.tolist() == pytest.approx([IDF_OF_2 / IDF_OF_1, 1, 0], rel=1e-6)


IDF_OF_1, IDF_OF_2 = log_idf(3, 1), log_idf(3, 2)


def test_the_time_that_a_query_speaks_of_covers_nothing() -> None:
    """It is a preference and no term; a query of a time alone covers nothing of any memory."""
    got = coverage(TermQuery.from_postings(dated(), [7], period_weight=1.0), [1, 2, 3])
    assert got.tolist() == [[1, 0, 0]] * 3
    assert_nothing(
        coverage(TermQuery.from_postings(structs.replace(dated(), terms={}), period_weight=1.0), [2, 3, 4]), 3
    )


@pytest.mark.parametrize(
    "query", [None, TermQuery.from_postings(Postings({}, 0, 0)), TermQuery.from_postings(Postings({}, 3, 30), [7, 8])]
)
def test_where_no_term_occurs_nothing_is_covered(query: TermQuery | None) -> None:
    """Nor where the leg did not answer."""
    assert_nothing(coverage(query, [1, 2]), 2)


def assert_nothing(got: NDArray[np.float32], memories: int) -> None:
    assert got.tolist() == [[0.0] * memories] * 3
    assert got.dtype == np.float32


def test_of_no_memories_there_is_no_coverage() -> None:
    found = index({1: {7: 1}})
    assert coverage(TermQuery.from_postings(found, [7]), []).shape == (3, 0)
