"""Postings that follow the writes since they were fetched, against postings made of everything that is alive."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from retrieval.index.columns import Columns
from retrieval.index.slots import Slots
from retrieval.index.terms import TermCache

SLOTS = 40
TERMS = (1, 2, 3)

Bag = dict[int, int]
BAGS = st.lists(st.dictionaries(st.sampled_from(TERMS), st.integers(1, 9)), min_size=SLOTS, max_size=SLOTS)
STEPS = st.lists(st.tuples(st.sampled_from(["add", "remove", "ask"]), st.integers(0, SLOTS - 1)), max_size=40)


def of_alive(bags: dict[int, Bag], term: int) -> list[tuple[int, int, int]]:
    """Slot, frequency and length of each memory with a term."""
    return [(doc, bag[term], 10 + doc) for doc, bag in sorted(bags.items()) if term in bag]


@given(BAGS, STEPS, st.integers(0, SLOTS))
def test_postings_are_those_of_what_is_alive(bags: list[Bag], steps: list[tuple[str, int]], fetched: int) -> None:
    """However additions, removals and questions follow; the first slots were there when terms were fetched."""
    columns = Columns(Slots(np.arange(SLOTS), given_out=SLOTS))
    columns.ensure(SLOTS)
    columns.length.values[:] = 10 + np.arange(len(columns.length.values))
    cache, alive = TermCache(columns), dict(enumerate(bags[:fetched]))
    columns.alive.values[:fetched] = True
    for term in TERMS:
        docs = [doc for doc, bag in alive.items() if term in bag]
        tfs = [alive[doc][term] for doc in docs]
        cache.put({term: (np.array(docs, np.int32), np.array(tfs, np.uint16))}, [term], additions=0)
    given_out = set(alive)
    for step, doc in steps:
        if step == "add" and doc not in given_out:
            alive[doc] = bags[doc]
            given_out.add(doc)
            columns.alive.values[doc] = True
            terms, counts = np.array([*bags[doc]], np.int64), np.array([*bags[doc].values()], np.uint16)
            cache.add([doc], [terms], [counts])
        elif step == "remove" and doc in alive:
            del alive[doc]
            columns.alive.values[doc] = False
            cache.remove([doc])
        elif step == "ask":
            found = cache.postings(TERMS).terms
            for term in TERMS:
                rows = of_alive(alive, term)
                assert (term in found) == bool(rows)
                if rows:
                    columns_of_term = (found[term].docs, found[term].tfs, found[term].lengths)
                    assert [*zip(*(each.tolist() for each in columns_of_term), strict=True)] == rows
