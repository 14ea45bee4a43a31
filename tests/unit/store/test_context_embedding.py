"""The vector of a turn in its context, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from retrieval.store.sessions import BEFORE_PREVIOUS_SHARE, PREVIOUS_SHARE, context_embedding

NOTHING = np.zeros(3, np.float32)
X, Y, Z = np.eye(3, dtype=np.float32)


def test_by_hand() -> None:
    """(1, .3, .2) has the length sqrt(1.13)."""
    np.testing.assert_allclose(context_embedding(X, Y, Z), np.array([1, 0.3, 0.2]) / np.sqrt(1.13), rtol=1e-6)


def test_the_first_turn_is_its_own() -> None:
    np.testing.assert_array_equal(context_embedding(X, NOTHING, NOTHING), X)


def test_rows_are_mixed_each_by_itself() -> None:
    """As one by one, in single precision."""
    rows = context_embedding(np.stack([X, Y, Z]), np.stack([NOTHING, X, Y]), np.stack([NOTHING, NOTHING, X]))
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows[0], X)
    np.testing.assert_array_equal(rows[1], context_embedding(Y, X, NOTHING))
    np.testing.assert_array_equal(rows[2], context_embedding(Z, Y, X))


@pytest.mark.parametrize("previous", [X, -X])
def test_the_own_embedding_weighs_most(previous: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> None:
    """Even turns that say the opposite leave a unit vector on the turn's own side."""
    assert PREVIOUS_SHARE + BEFORE_PREVIOUS_SHARE < 1
    np.testing.assert_allclose(context_embedding(X, previous, previous), X, rtol=1e-6)
