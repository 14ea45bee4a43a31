"""Rows of postings: reading returns what was written, all of it or one term's."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from retrieval.store.bm25.blocks import OWN_ROW, ROW_BYTES, PostingTable, find, pack, unpack

TERMS = st.integers(-(2**63), 2**63 - 1)
DOCS = st.one_of(st.integers(0, 300), st.integers(0, 70_000), st.integers(0, 2**31 - 1))
TFS = st.one_of(st.just(1), st.integers(1, 300), st.integers(1, 65_535))


def table_of(postings: dict[tuple[int, int], int]) -> PostingTable:
    terms, docs = zip(*postings, strict=True) if postings else ((), ())
    return PostingTable(
        np.array(terms, np.int64), np.array(docs, np.int32), np.array(list(postings.values()), np.uint16)
    )


def as_dict(table: PostingTable) -> dict[tuple[int, int], int]:
    return dict(zip(zip(table.terms.tolist(), table.docs.tolist(), strict=True), table.tfs.tolist(), strict=True))


@st.composite
def postings(draw: st.DrawFn) -> dict[tuple[int, int], int]:
    terms = draw(st.lists(TERMS, min_size=1, max_size=8, unique=True))
    return draw(st.dictionaries(st.tuples(st.sampled_from(terms), DOCS), TFS, max_size=60))


@given(postings=postings(), absent=TERMS)
def test_what_is_packed_is_found(postings: dict[tuple[int, int], int], absent: int) -> None:
    """Every term in the last row that begins at or before it, and nothing for a missing term."""
    rows = list(pack(table_of(postings).sorted()))
    firsts = [first for first, _ in rows]
    assert firsts == sorted(set(firsts))
    for term in {absent, *(term for term, _ in postings)}:
        place = bisect_right(firsts, term) - 1
        found = find(rows[place][1], term) if place >= 0 else None
        expected = sorted((doc, tf) for (of, doc), tf in postings.items() if of == term)
        assert (list(zip(*(column.tolist() for column in found), strict=True)) if found else []) == expected
        if found:
            assert [column.dtype.name for column in found] == ["int32", "uint16"]


@given(postings=postings())
def test_what_is_packed_is_unpacked(postings: dict[tuple[int, int], int]) -> None:
    """In the same order, with the same types."""
    table = table_of(postings).sorted()
    back = unpack([row for _, row in pack(table)])
    assert as_dict(back) == postings
    for column in ("terms", "docs", "tfs"):
        assert np.array_equal(getattr(back, column), getattr(table, column))
        assert getattr(back, column).dtype == getattr(table, column).dtype


@given(postings=postings())
def test_what_stands_twice_counts_once(postings: dict[tuple[int, int], int]) -> None:
    table = table_of(postings)
    twice = PostingTable(*(np.concatenate([column, column]) for column in (table.terms, table.docs, table.tfs)))
    assert as_dict(twice.sorted()) == postings
    assert twice.sorted().terms.size == len(postings)


def test_rare_terms_share_rows_and_a_common_one_has_its_own() -> None:
    rng = np.random.default_rng(1)
    counts = np.where(np.arange(2_000) % 500 == 250, 5_000, rng.integers(1, 9, 2_000))
    terms = np.repeat(np.sort(rng.integers(-(2**63), 2**63 - 1, 2_000)), counts)
    docs = np.concatenate([np.sort(rng.choice(60_000, count, replace=False)) for count in counts]).astype(np.int32)
    rows = list(pack(PostingTable(terms, docs, np.ones(terms.size, np.uint16))))
    common = set(np.unique(terms)[counts == 5_000].tolist())
    alone = {first: row for first, row in rows if first in common}
    assert len(alone) == 4
    assert all(unpack([row]).terms.tolist() == [first] * 5_000 for first, row in alone.items())
    assert all(len(row) < 2.1 * 5_000 for row in alone.values()), "two bytes a posting"
    shared = [len(row) for first, row in rows if first not in common]
    assert max(shared) < ROW_BYTES + 4 * OWN_ROW
    assert np.median(shared) > ROW_BYTES / 2
