"""The stored vector of a chat turn: its own embedding with a share of the two turns before it; no I/O."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PREVIOUS_SHARE = 0.3
"""Of the turn before, against 1 of the turn's own."""

BEFORE_PREVIOUS_SHARE = 0.2
"""Of the turn before that one. With the other share it must stay below 1, so that no sum vanishes."""


def mixed(
    own: NDArray[np.float32], previous: NDArray[np.float32], before_previous: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Turns in their context: unit(own + PREVIOUS_SHARE previous + BEFORE_PREVIOUS_SHARE before_previous).

    Only turns before count, so that nothing stored has to change when a turn arrives in order.

    Args:
        own: unit vectors, shape (dimensions,) or (turns, dimensions).
        previous: of the turn before each, same shape; zeros where there is none.
        before_previous: of the turn before that one, same shape; zeros where there is none.

    Returns:
        Unit vectors of the same shape; the first turn of a session is its own.

    >>> print(mixed(np.float32([0, 1]), np.float32([1, 0]), np.float32([0, 0])).round(2))
    [0.29 0.96]
    """
    total = own + np.float32(PREVIOUS_SHARE) * previous + np.float32(BEFORE_PREVIOUS_SHARE) * before_previous
    return np.asarray(total / np.linalg.norm(total, axis=-1, keepdims=True), np.float32)
