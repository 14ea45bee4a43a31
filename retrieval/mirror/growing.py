"""Arrays by ordinal that grow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class Growing:
    """An array in which every ordinal that was not set has the same value."""

    def __init__(self, dtype: DTypeLike, unset: Any) -> None:
        self._unset = unset
        self.values: NDArray[Any] = np.empty(0, dtype)
        """By ordinal; longer than needed."""

    @property
    def nbytes(self) -> int:
        """Memory that it takes."""
        return self.values.nbytes

    def __getitem__(self, at: Any) -> Any:
        return self.values[at]

    def put(self, at: NDArray[np.int64], values: Any) -> None:
        """Set values at some ordinals, growing as far as that needs."""
        self.reach(int(at.max(initial=-1)) + 1)
        self.values[at] = values

    def reach(self, length: int) -> None:
        """Make it longer than that, with room to spare: the last value is never set, and -1 leads to it."""
        if length >= len(self.values):
            before = len(self.values)
            grown = np.empty(1 + length + length // 8, self.values.dtype)
            grown[:before] = self.values
            grown[before:] = self._unset
            self.values = grown
