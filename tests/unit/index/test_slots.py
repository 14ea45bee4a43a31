"""Slots of ordinals against a plain dictionary."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from retrieval.index.slots import LATE_ORDINALS, NO_SLOT, Slots

USED = st.sets(st.integers(0, 20)) | st.sets(st.integers(0, 20_000), max_size=50)
"""Ordinals with a memory: most of a few, and a few of many."""


@given(USED, st.sets(st.integers(20_000, 20_100)), st.integers(0, 5_000))
def test_slots_ascend_with_the_ordinals_and_lead_back(early: set[int], late: set[int], unused: int) -> None:
    """Of those that were used, and of all that come later."""
    used = np.array(sorted(early | late), np.int64)
    given_out = int(used.max(initial=-1)) + 1 + unused
    slots = Slots(used, given_out=given_out)
    known = np.concatenate([used, np.arange(given_out, given_out + 5)])
    places = slots.from_ordinals(known)
    assert places.min() >= 0
    assert (np.diff(places) > 0).all()
    assert slots.to_ordinals(places).tolist() == known.tolist()
    assert slots.to_ordinal_list(places.tolist()) == known.tolist()
    assert slots.from_ordinals(known.astype(np.int32)).dtype == np.int32
    assert slots.from_ordinals(np.array([given_out])).tolist() == [slots.count]
    assert slots.count <= 2 * used.size + LATE_ORDINALS


def test_dense_ordinals_are_their_slots() -> None:
    """So that there is no look-up without a gain."""
    slots = Slots(np.array([0, 1, 3]), given_out=5)
    assert slots.are_ordinals
    assert slots.count == 5
    ordinals = np.array([NO_SLOT, 2, 7])
    assert slots.from_ordinals(ordinals) is ordinals
    assert slots.to_ordinals(ordinals) is ordinals


def test_what_was_not_used_has_no_slot() -> None:
    """Unless it is so late that its transaction may not have ended yet."""
    slots = Slots(np.array([3, 7]), given_out=10_000)
    late = 10_000 - LATE_ORDINALS
    assert slots.from_ordinals(np.array([NO_SLOT, 0, 3, 5, 7, late - 1])).tolist() == [
        NO_SLOT,
        NO_SLOT,
        0,
        NO_SLOT,
        1,
        NO_SLOT,
    ]
    assert slots.from_ordinals(np.array([late, 9_999, 10_000])).tolist() == [2, LATE_ORDINALS + 1, LATE_ORDINALS + 2]
    assert not slots.are_ordinals


def test_the_latest_that_are_dense_are_not_listed() -> None:
    """Of a namespace from which the oldest memories are deleted all the time."""
    slots = Slots(np.arange(90_000, 100_000), given_out=100_000)
    assert slots.nbytes == 0
    assert slots.from_ordinals(np.array([89_999, 90_000, 100_000])).tolist() == [NO_SLOT, 0, 10_000]
