"""Postings updated by writes since they were fetched, against postings of all live memories."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.index import terms
from retrieval.index.columns import Columns
from retrieval.index.packed_postings import PackedPostings
from retrieval.index.slots import Slots
from retrieval.index.terms import TermCache, Vocabulary

SLOTS = 40
TERMS = (1, 2, 3)

Bag = dict[int, int]
BAGS = st.lists(st.dictionaries(st.sampled_from(TERMS), st.integers(1, 9)), min_size=SLOTS, max_size=SLOTS)
STEPS = st.lists(st.tuples(st.sampled_from(["add", "remove", "ask"]), st.integers(0, SLOTS - 1)), max_size=40)


def of_alive(bags: dict[int, Bag], term: int) -> list[tuple[int, int, int]]:
    """Slot, frequency and length of each memory with a term."""
    return [(doc, bag[term], 10 + doc) for doc, bag in sorted(bags.items()) if term in bag]


def packed(bags: dict[int, Bag]) -> PackedPostings:
    """The postings of some memories, as a file has them."""
    found = sorted((term, doc, tf) for doc, bag in bags.items() for term, tf in bag.items())
    terms = sorted({term for term, _, _ in found})
    starts = [sum(each < term for each, _, _ in found) for term in terms]
    known = np.isin(np.arange(SLOTS), [*bags])
    return PackedPostings(
        known,
        np.array(terms, np.int64),
        np.array([*starts, len(found)], np.int64),
        np.array([doc for _, doc, _ in found], np.int32),
        np.array([tf for _, _, tf in found], np.uint16),
    )


@given(BAGS, STEPS, st.integers(0, SLOTS), st.booleans())
def test_postings_are_those_of_what_is_alive(
    bags: list[Bag], steps: list[tuple[str, int]], before: int, is_packed: bool
) -> None:
    """For any order of additions, removals and queries; the first slots were packed, or existed at the fetch.

    Packed postings are loaded when requested.
    """
    columns = Columns(Slots(np.arange(SLOTS), given_out=SLOTS))
    columns.ensure(SLOTS)
    columns.length.values[:] = 10 + np.arange(len(columns.length.values))
    alive = dict(enumerate(bags[:before]))
    cache = TermCache(columns, packed(alive) if is_packed else None)
    assert [cache.knows(doc) for doc in range(SLOTS + 1)] == [is_packed and doc in alive for doc in range(SLOTS + 1)]
    columns.alive.values[:before] = True
    for term in () if is_packed else TERMS:
        docs = [doc for doc, bag in alive.items() if term in bag]
        tfs = [alive[doc][term] for doc in docs]
        cache.put({term: (np.array(docs, np.int32), np.array(tfs, np.uint16))}, [term], additions=0)
    stored = Vocabulary.from_terms(np.array([term for bag in bags[:before] for term in bag], np.int64))
    given_out = set(alive)
    for step, doc in steps:
        if step == "add" and doc not in given_out:
            alive[doc] = bags[doc]
            given_out.add(doc)
            columns.alive.values[doc] = True
            own, counts = np.array([*bags[doc]], np.int64), np.array([*bags[doc].values()], np.uint16)
            cache.add([doc], [(own, counts)])
        elif step == "remove" and doc in alive:
            del alive[doc]
            columns.alive.values[doc] = False
            cache.remove([doc])
        elif step == "ask":
            assert cache.missing(TERMS) == []
            cache.vocabulary = cache.vocabulary or stored
            occurrences = cache.occurrences(np.array([*TERMS, 4])).tolist()
            assert occurrences == [sum(term in bags[each] for each in given_out) for term in (*TERMS, 4)]
            found = cache.postings(TERMS).terms
            for term in TERMS:
                rows = of_alive(alive, term)
                assert (term in found) == bool(rows)
                if rows:
                    columns_of_term = (found[term].docs, found[term].tfs, found[term].lengths)
                    assert [*zip(*(each.tolist() for each in columns_of_term), strict=True)] == rows


def test_packed_terms_are_dropped_like_others_and_asked_for_once_postings_are_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    columns = Columns(Slots(np.arange(SLOTS), given_out=SLOTS))
    columns.ensure(SLOTS)
    columns.alive.values[:] = True
    cache = TermCache(columns, packed({1: {1: 1, 2: 5}, 7: {2: 1}}))
    monkeypatch.setattr(terms, "MOST_BYTES", 0)
    for term in (1, 2):
        assert cache.missing([term]) == []
        assert [*cache.postings([term]).terms] == [term]
        assert cache.nbytes < 1_000  # of one term
    assert cache.postings([2]).terms[2].docs.tolist() == [1, 7]
    assert cache.missing([3]) == []
    assert cache.postings([3]).terms == {}
    cache.clear()
    assert cache.missing([2, 3]) == [2, 3]
    assert not cache.knows(1)
