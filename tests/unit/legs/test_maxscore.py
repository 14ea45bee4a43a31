"""The best memories without scoring all: the same result as scoring all, with less work."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from retrieval.index.terms import Postings, TermPostings
from retrieval.legs.bm25_scoring import TermQuery
from tests.okapi import best, first, plain_score, term_postings


def postings(
    of_terms: Mapping[int, Mapping[int, int]], lengths: Mapping[int, int], of_period: Collection[int] = ()
) -> Postings:
    """How often each term stands in each memory, how long every memory is, and which are of the query's period."""
    terms = {term: term_postings(counts, lengths) for term, counts in of_terms.items() if counts}
    return Postings(terms, len(lengths), sum(lengths.values()), np.array(sorted(of_period), np.int32))


def found_in(query: TermQuery) -> list[int]:
    """The memories that have a term of a query."""
    return sorted(
        {doc for docs in (*(term.postings.docs for term in query.terms), query.period_docs) for doc in docs.tolist()}
    )


def best_of_all(scores: Mapping[int, float], allowed: NDArray[np.bool_], count: int) -> list[tuple[int, float]]:
    """The same by scoring all."""
    return first({doc: score for doc, score in scores.items() if allowed[doc]}, count)


@st.composite
def queries(draw: st.DrawFn) -> tuple[TermQuery, int]:
    """A query over few memories that differ in little, so that many are equals, and the first unused ordinal."""
    docs = draw(st.lists(st.integers(0, 60), unique=True, min_size=1, max_size=40))
    lengths = {doc: draw(st.sampled_from([5, 6, 40])) for doc in docs}
    counts = st.dictionaries(st.sampled_from(docs), st.sampled_from([1, 1, 2, 9]), max_size=len(docs))
    of_terms = {term: draw(counts) for term in range(draw(st.integers(0, 5)))}
    query = TermQuery.from_postings(
        postings(of_terms, lengths, draw(st.sets(st.sampled_from(docs)))),
        k1=draw(st.sampled_from([1.2, 1.2, 0.0, 3.0])),
        b=draw(st.sampled_from([None, None, 0.0, 1.0])),
        period_weight=draw(st.sampled_from([0.0, 0.5, 3.0])),
    )
    return query, max(docs) + 1


@given(queries(), st.integers(1, 50), st.data())
def test_they_are_the_best_of_all(asked: tuple[TermQuery, int], count: int, data: st.DataObject) -> None:
    """Under any mask, also one that leaves none, with equals in the order of their ordinals."""
    query, memories = asked
    some = np.array(data.draw(st.lists(st.booleans(), min_size=memories, max_size=memories + 5)))
    scores = {doc: plain_score(query, doc) for doc in found_in(query)}
    for allowed in (some, np.ones(memories, np.bool_)):
        assert best(query, allowed, count) == best_of_all(scores, allowed, count)  # to the last bit


def zipfian(seed: int, memories: int, terms: int, *, rarer: int) -> TermQuery:
    """Terms of which each next one is so many times rarer, in memories of all lengths."""
    random = np.random.default_rng(seed)
    lengths = dict(enumerate(random.integers(3, 200, memories).tolist()))
    of_terms: dict[int, dict[int, int]] = {}
    for term in range(terms):
        docs = np.flatnonzero(random.random(memories) < 0.9 / rarer**term).tolist()
        of_terms[term] = dict(zip(docs, random.integers(1, 4, len(docs)).tolist(), strict=True))
    return TermQuery.from_postings(
        postings(of_terms, lengths, {*random.integers(0, memories, 100).tolist()}), period_weight=0.5
    )


@pytest.mark.parametrize("rarer", [2, 8])
@pytest.mark.parametrize("seed", range(3))
def test_they_are_the_best_of_many(seed: int, rarer: int) -> None:
    """Where whole terms are left out of account."""
    memories = 4_000
    query = zipfian(seed, memories, 9, rarer=rarer)
    sparse = np.random.default_rng(seed).random(memories) < 0.01
    scores = {doc: plain_score(query, doc) for doc in found_in(query)}
    for allowed in (np.ones(memories, np.bool_), ~sparse, sparse):
        for count in (1, 10, 100, 5_000):
            assert best(query, allowed, count) == best_of_all(scores, allowed, count)


def weighed(of_terms: Sequence[Sequence[int]], memories: int) -> TermQuery:
    """Terms, each once in some of as many memories of ten terms."""
    lengths = dict.fromkeys(range(memories), 10)
    return TermQuery.from_postings(
        postings({term: dict.fromkeys(docs, 1) for term, docs in enumerate(of_terms)}, lengths)
    )


@pytest.mark.parametrize(("count", "is_looked_at"), [(10, False), (60, True)])
def test_a_common_term_is_looked_up_for_the_memories_of_a_rare_one(count: int, is_looked_at: bool) -> None:
    """Its other postings are skipped, unless the rare terms do not fill the answer.

    A memory that gains far more from the term than its bound allows is only found if it is scored.
    """
    memories = 40_000
    query = weighed([range(0, memories, 800), range(memories // 2)], memories)
    common = query.terms[1].postings
    common.lengths[memories // 4 + 1] = -63  # which makes a hundredth of what is divided by
    found = dict(best(query, np.ones(memories, np.bool_), count))
    assert (memories // 4 + 1 in found) is is_looked_at


def test_there_are_no_memories_for_no_count_no_mask_and_none_allowed() -> None:
    query = weighed([[1, 3], [3]], 5)
    assert best(query, np.zeros(0, np.bool_), 3) == best(query, np.zeros(5, np.bool_), 3) == []
    assert [doc for doc, _ in best(query, np.ones(5, np.bool_), 1)] == [3]


def test_ordinals_that_no_mask_knows_are_none() -> None:
    """Whether too high, negative or out of order: nothing is read or written that is not there."""
    wild = np.array([2, -7, 2**31 - 1, 3, -(2**31), 3, 10_000, 1], np.int32)
    terms = {7: TermPostings(wild, np.ones(8, np.uint16), np.ones(8, np.int32))}
    terms[8] = TermPostings(wild[::-1].copy(), np.zeros(8, np.uint16), np.full(8, -5, np.int32))
    query = TermQuery.from_postings(Postings(terms, 8, 8))
    for count in (1, 3, 50):
        assert dict(best(query, np.ones(4, np.bool_), count)).keys() <= {1, 2, 3}


@pytest.mark.parametrize(
    ("tfs", "lengths"),
    [(np.ones(2, np.int64), np.ones(2, np.int32)), (np.ones(2, np.uint16), np.ones(1, np.int32))],
)
def test_postings_of_another_kind_are_refused(tfs: NDArray[np.uint16], lengths: NDArray[np.int32]) -> None:
    with pytest.raises(ValueError, match="of one size and of their types"):
        TermQuery.from_postings(Postings({7: TermPostings(np.array([1, 2], np.int32), tfs, lengths)}, 5, 5))
