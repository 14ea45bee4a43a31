"""The best memories by BM25, with turns in their context, equal those of plain arithmetic."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from retrieval.index.terms import Postings
from retrieval.legs import bm25_scoring
from retrieval.legs.bm25_scoring import AFTER_SHARES, BEFORE_SHARES, TermQuery
from tests.okapi import Said, first, link, plain_score, plain_score_in_context, term_postings

PERIOD = 9
"""In the place of a term: the memory is of the query's period."""


def weighed(texts: Mapping[int, Mapping[int, int]], lengths: Mapping[int, int], **parameters: Any) -> TermQuery:
    """All terms of some memories."""
    terms = {
        term: term_postings({doc: counts[term] for doc, counts in texts.items() if term in counts}, lengths)
        for term in sorted({term for counts in texts.values() for term in counts} - {PERIOD})
    }
    period_docs = np.array(sorted(doc for doc, counts in texts.items() if PERIOD in counts), np.int32)
    return TermQuery.from_postings(
        Postings(terms, len(texts), sum(lengths.values()), period_docs), period_weight=0.7, **parameters
    )


def plain(
    query: TermQuery,
    said: Said,
    visible: NDArray[np.bool_],
    eligible: NDArray[np.bool_],
    *,
    count: int,
    near: int,
    share: float,
    asking: float,
    speakers: Collection[int],
    boost: float,
) -> list[tuple[int, float]]:
    """The expected result of `bm25_scoring.ranked`."""
    alone = {doc: plain_score(query, doc) for doc in range(said.ordinals)}
    scores = dict(first({doc: score for doc, score in alone.items() if eligible[doc]}, count))
    seen = first({doc: score for doc, score in alone.items() if visible[doc]}, count)[: 2 * count]
    session_of = {turn: [each for each in session if visible[each]] for session in said.sessions for turn in session}
    for good, _ in seen if share else ():
        session = session_of.get(good, [])
        at = session.index(good) if session else 0
        for place, turn in enumerate(session):
            if abs(place - at) <= near and eligible[turn]:
                before, after = session[:place][::-1], session[place + 1 :]
                length = said.lengths.get(turn, 0)
                score = plain_score_in_context(query, turn, length, before, after, share)
                if score > 0:
                    scores[turn] = score
    for doc in scores:
        prior = boost if said.speakers.get(doc) in speakers else 1.0
        scores[doc] *= prior * asking if doc in said.asks and doc in session_of else prior
    return first(scores, count)


@st.composite
def namespaces(draw: st.DrawFn) -> tuple[Said, TermQuery]:
    """Few memories that differ in little, so that many are equals; turns came in any order."""
    docs = draw(st.permutations(range(draw(st.integers(1, 24)))))
    counts = st.dictionaries(st.sampled_from([0, 1, 2, PERIOD]), st.sampled_from([1, 1, 2]), max_size=3)
    texts = {doc: draw(counts) for doc in docs}
    lengths = {doc: draw(st.sampled_from([4, 4, 9])) for doc in docs}
    ends = sorted(draw(st.sets(st.integers(1, len(docs)), max_size=3)))
    sessions = [docs[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    parameters = {"k1": draw(st.sampled_from([1.2, 1.2, 0.0, 3.0])), "b": draw(st.sampled_from([None, None, 0.0, 1.0]))}
    query = weighed(texts, lengths, **parameters)
    asks = draw(st.lists(st.sampled_from(docs), unique=True, max_size=5))
    speakers = draw(st.dictionaries(st.sampled_from(docs), st.integers(0, 2), max_size=10))
    said = Said(ordinals=len(docs), lengths=lengths, sessions=sessions, asks=asks, speakers=speakers)
    return said, query


@given(namespaces(), st.data())
def test_they_are_those_of_plain_arithmetic(asked: tuple[Said, TermQuery], data: st.DataObject) -> None:
    """To the last bit, skipping hidden turns, but not turns that only fail the filters."""
    said, query = asked
    docs = range(said.ordinals)
    visible, eligible = said.everything, said.everything
    visible[data.draw(st.lists(st.sampled_from(docs)))] = False
    eligible[data.draw(st.lists(st.sampled_from(docs)))] = False
    eligible = visible if data.draw(st.booleans()) else eligible & visible
    options: dict[str, Any] = {
        "count": data.draw(st.integers(1, 8)),
        "near": data.draw(st.integers(0, 3)),
        "share": data.draw(st.sampled_from([0.0, 0.5, 1.0])),
        "asking": data.draw(st.sampled_from([0.7, 1.0])),
        "speakers": data.draw(st.sets(st.integers(0, 2), max_size=2)),
        "boost": data.draw(st.sampled_from([1.0, 1.3])),
    }
    found, scores = bm25_scoring.ranked(query, said.columns(), visible, eligible, **options)
    expected = plain(query, said, visible, eligible, **options)
    assert list(zip(found.tolist(), scores.tolist(), strict=True)) == expected


ALL: dict[str, Any] = {"count": 10, "near": 2, "share": 1.0}


def one_word(doc: int, ordinals: int) -> tuple[Said, TermQuery]:
    """A session of all memories, one of which has the word."""
    lengths = dict.fromkeys(range(ordinals), 5)
    query = weighed({**{each: {} for each in lengths}, doc: {0: 1}}, lengths)
    return Said(ordinals=ordinals, lengths=lengths, sessions=[range(ordinals)]), query


def of_ranked(said: Said, query: TermQuery, visible: NDArray[np.bool_]) -> list[int]:
    docs, _ = bm25_scoring.ranked(query, said.columns(), visible, visible, **ALL)
    return [*map(int, docs)]


def test_turns_near_a_good_one_are_found_and_none_beyond() -> None:
    """Nearer ones first, and before those at the same distance those after: they have more of what was said before."""
    said, query = one_word(6, 13)
    assert of_ranked(said, query, said.everything) == [6, 7, 5, 8, 4]
    hidden = said.everything
    hidden[[5, 7, 8]] = False
    assert of_ranked(said, query, hidden) == [6, 9, 4, 10, 3]


def test_a_neighbour_that_is_not_known_yet_is_none() -> None:
    """It was linked after the memories were read: it counts as absent, also for masks of that moment."""
    said, query = one_word(1, 3)
    columns = said.columns()
    link(columns, [0, 1], last=400)
    early = said.everything
    docs, _ = bm25_scoring.ranked(query, columns, early, early, **ALL)
    assert docs.tolist() == [1, 0]
    late = np.zeros(len(columns.length.values), np.bool_)
    late[:2] = True
    docs, _ = bm25_scoring.ranked(query, columns, late, late, **ALL)
    assert docs.tolist() == [1, 0]


@pytest.mark.parametrize("session", [[0, 1, 2, 0], [1, 1], [2, 1, 2, 1]])
def test_links_in_a_circle_have_an_end(session: Sequence[int]) -> None:
    """Whether the linked turns are visible or not."""
    said, query = one_word(1, 3)
    said = replace(said, sessions=[session])
    hidden = said.everything
    hidden[[0, 2]] = False
    for visible in (said.everything, hidden):
        assert of_ranked(said, query, visible)[0] == 1


def test_as_many_as_count_for_a_turn_are_looked_at() -> None:
    """The last before it and the last after it that count, and none beyond."""
    said, query = one_word(7, 16)
    docs, _ = bm25_scoring.ranked(query, said.columns(), said.everything, said.everything, count=20, near=20, share=1.0)
    assert sorted(docs.tolist()) == list(range(7 - len(AFTER_SHARES), 7 + len(BEFORE_SHARES) + 1))


@pytest.mark.parametrize("count", [1, 2])
def test_of_many_equals_twice_as_many_as_are_wanted_are_looked_around(count: int) -> None:
    """By ordinal: the third one's neighbours count even if two are wanted."""
    lengths = {0: 5, 1: 5, 2: 5, 3: 900}
    query = weighed({**{doc: {0: 1} for doc in range(3)}, 3: {1: 1}}, lengths)
    said = Said(ordinals=4, lengths=lengths, sessions=[[0], [1], [2, 3]])
    _, scores = bm25_scoring.ranked(query, said.columns(), said.everything, said.everything, count=count, share=1.0)
    assert bool(scores[0] > 1.01 * plain_score(query, 2)) is (count == 2)


def test_more_equals_than_there_is_room_for_all_come() -> None:
    """A thousand memories of one word, of which one is wanted."""
    lengths = dict.fromkeys(range(1_000), 5)
    query = weighed({doc: {0: 1} for doc in lengths}, lengths)
    said = Said(ordinals=1_000, lengths=lengths)
    docs, scores = bm25_scoring.ranked(query, said.columns(), said.everything, said.everything, count=1)
    assert docs.tolist() == list(range(1_000))
    assert len(set(scores.tolist())) == 1


def test_memories_beyond_those_known_are_none() -> None:
    """A mask may be longer than the memories' data."""
    said, query = one_word(2, 3)
    long = np.ones(1_000_000, np.bool_)
    docs, _ = bm25_scoring.ranked(query, said.columns(), long, long, **ALL)
    assert set(docs.tolist()) == {0, 1, 2}
