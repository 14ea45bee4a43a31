"""The best memories without scoring all: the same as those of all scores, and for less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from retrieval.legs.okapi import Part, Query, best, score, weigh
from retrieval.mirror.terms import Postings, TermPostings

PERIODS = (100, 101)
"""Terms that stand for days."""


def postings(of_terms: Mapping[int, Mapping[int, int]], lengths: Mapping[int, int]) -> Postings:
    """How often each term stands in each memory, and how long every memory is."""
    terms = {
        term: TermPostings(
            np.array(sorted(counts), np.int32),
            np.array([counts[doc] for doc in sorted(counts)], np.uint16),
            np.array([lengths[doc] for doc in sorted(counts)], np.int32),
        )
        for term, counts in of_terms.items()
        if counts
    }
    return Postings(terms, len(lengths), sum(lengths.values()))


def best_of_all(query: Query, allowed: NDArray[np.bool_], count: int) -> tuple[list[int], list[float]]:
    """The same by scoring all: those that score as much as the last of the best `count` among them."""
    docs, scores = score(query)
    ranked = sorted((-value, doc) for doc, value in zip(docs.tolist(), scores.tolist(), strict=True) if allowed[doc])
    least = ranked[min(count, len(ranked)) - 1][0] if ranked else 0.0
    kept = [(doc, -value) for value, doc in ranked if value <= least]
    return [doc for doc, _ in kept], [value for _, value in kept]


def assert_the_same(query: Query, allowed: NDArray[np.bool_], count: int) -> None:
    """To the last bit."""
    docs, scores = best(query, allowed, count)
    assert (docs.tolist(), scores.tolist()) == best_of_all(query, allowed, count)


@st.composite
def queries(draw: st.DrawFn) -> tuple[Query, int]:
    """A query over few memories that differ in little, so that many are equals, and the first unused ordinal."""
    docs = draw(st.lists(st.integers(0, 60), unique=True, min_size=1, max_size=40))
    lengths = {doc: draw(st.sampled_from([5, 6, 40])) for doc in docs}
    counts = st.dictionaries(st.sampled_from(docs), st.sampled_from([1, 1, 2, 9]), max_size=len(docs))
    of_terms = {term: draw(counts) for term in (*range(draw(st.integers(0, 5))), *PERIODS)}
    query = weigh(postings(of_terms, lengths), periods=PERIODS, period_weight=draw(st.sampled_from([0.0, 0.5, 3.0])))
    assume(query is not None)
    assert query is not None
    return query, max(docs) + 1


@given(queries(), st.integers(1, 50), st.data())
def test_they_are_the_best_of_all(asked: tuple[Query, int], count: int, data: st.DataObject) -> None:
    """Under any mask, also one that leaves none, with equals in the order of their ordinals."""
    query, memories = asked
    allowed = data.draw(st.lists(st.booleans(), min_size=memories, max_size=memories + 5))
    assert_the_same(query, np.array(allowed), count)
    assert_the_same(query, np.ones(memories, np.bool_), count)


def zipfian(seed: int, memories: int, terms: int) -> Query:
    """Terms of which each next one is in half as many memories, which are of all lengths."""
    random = np.random.default_rng(seed)
    lengths = dict(enumerate(random.integers(3, 200, memories).tolist()))
    of_terms: dict[int, dict[int, int]] = {}
    for term in range(terms):
        docs = np.flatnonzero(random.random(memories) < 0.9 / 2**term).tolist()
        of_terms[term] = dict(zip(docs, random.integers(1, 4, len(docs)).tolist(), strict=True))
    of_terms |= {day: dict.fromkeys(random.integers(0, memories, 50).tolist(), 1) for day in PERIODS}
    query = weigh(postings(of_terms, lengths), periods=PERIODS, period_weight=0.5)
    assert query is not None
    return query


@pytest.mark.parametrize("seed", range(6))
def test_they_are_the_best_of_many(seed: int) -> None:
    """Where whole terms are left out of account."""
    memories = 4_000
    query = zipfian(seed, memories, 9)
    sparse = np.random.default_rng(seed).random(memories) < 0.01
    for allowed in (np.ones(memories, np.bool_), ~sparse, sparse):
        for count in (1, 10, 100, 5_000):
            assert_the_same(query, allowed, count)


class Counted:
    """How many postings were turned into scores."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.postings = 0
        real = Part._of

        def counted(part: Part, places: NDArray[np.intp]) -> NDArray[np.float64]:
            self.postings += places.size
            return real(part, places)

        monkeypatch.setattr(Part, "_of", counted)

    def of(self, query: Query, memories: int, count: int) -> int:
        """By looking for the best."""
        self.postings = 0
        best(query, np.ones(memories, np.bool_), count)
        return self.postings


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    return Counted(monkeypatch)


def weighed(of_terms: Sequence[Sequence[int]], memories: int) -> Query:
    """Terms, each once in some of as many memories of ten terms."""
    lengths = dict.fromkeys(range(memories), 10)
    query = weigh(postings({term: dict.fromkeys(docs, 1) for term, docs in enumerate(of_terms)}, lengths))
    assert query is not None
    return query


def test_a_common_term_is_looked_up_for_the_memories_of_a_rare_one(counted: Counted) -> None:
    """Its other postings are left alone; where the rare ones do not fill the answer, they are not."""
    memories = 20_000
    query = weighed([range(0, memories, 400), range(memories // 2)], memories)
    assert counted.of(query, memories, 10) <= 4 * 50
    assert counted.of(query, memories, 60) >= memories // 2


def test_the_least_common_terms_are_scored_and_few_others(counted: Counted) -> None:
    """Of all postings a small share is touched, and the more, the more memories are wanted."""
    memories = 20_000
    query = zipfian(7, memories, 11)
    everything = sum(part.docs.size for part in query.parts)
    few, many = (counted.of(query, memories, count) for count in (5, 200))
    assert few < many < everything
    assert few < everything / 4
