"""Numbers by hash against a plain dictionary, also where several hashes are next to each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.index import hash_index
from retrieval.index.hash_index import HashIndex
from tests.unit.index.test_columns import copied

MOST = 2**64 - 1
HASHES = st.one_of(
    st.integers(0, MOST),
    st.sampled_from([0, 1, 2**32, 2**63 - 1, 2**63, 2**63 + 1, MOST - 1, MOST]),
    st.integers(2**40, 2**40 + 20),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(st.tuples(HASHES, st.integers(-(2**31), 2**31 - 1)), max_size=40)),
        st.tuples(st.just("file"), st.none()),
    ),
    max_size=12,
)


@given(steps=STEPS, others=st.lists(HASHES, max_size=10))
def test_it_finds_what_was_added(steps: list[tuple[str, object]], others: list[int]) -> None:
    """In whatever order, several numbers of a hash, and nothing that is not there."""
    index, expected = HashIndex(), list[tuple[int, int]]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hash_index, "MERGED_FROM", 7)
        for action, what in steps:
            if action == "add" and isinstance(what, list):
                hashes, numbers = np.array([each[0] for each in what], np.uint64), [each[1] for each in what]
                index.add(hashes, np.array(numbers, np.int32))
                expected += what
            elif action == "file":
                index, former = HashIndex(), index
                index.restore(copied(former.arrays()))
    asked = sorted({*others, *(each for each, _ in expected)})
    wanted = [sorted(number for each, number in expected if each == one) for one in asked]
    hashes = np.array(asked, np.uint64)
    assert [sorted(numbers.tolist()) for numbers in index.numbers(hashes)] == wanted
    found = index.find(hashes)
    assert [sorted(number for place, number in found if place == each) for each in range(len(asked))] == wanted
    assert sorted(index.entries()) == sorted({*expected})


def test_many_of_one_hash_are_found_among_many() -> None:
    rng = np.random.default_rng(3)
    hashes = rng.integers(0, MOST, 20_000, np.uint64, endpoint=True)
    hashes[:5_000] = hashes[0]
    index = HashIndex()
    index.add(hashes, np.arange(20_000, dtype=np.int32))
    many, one, none = index.numbers(np.array([hashes[0], hashes[-1], hashes[0] + 1], np.uint64))
    assert sorted(many.tolist()) == [*range(5_000)]
    assert one.tolist() == [19_999]
    assert none.tolist() == []
