"""Growable arrays by slot."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class GrowableArray:
    """An array whose unset slots all have the same value."""

    def __init__(self, dtype: DTypeLike, unset: Any) -> None:
        self._unset = unset
        self.values: NDArray[Any] = np.empty(0, dtype)
        """By slot; longer than needed."""

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""
        return self.values.nbytes

    def __getitem__(self, positions: Any) -> Any:
        return self.values[positions]

    def put(self, positions: NDArray[np.int64], values: Any) -> None:
        """Set the values of some slots, growing as needed."""
        self.ensure(int(positions.max(initial=-1)) + 1)
        self.values[positions] = values

    def ensure(self, length: int) -> None:
        """Grow beyond `length`: the last value always stays unset, so that index -1 reads as unset."""
        if length >= len(self.values):
            before = len(self.values)
            grown = np.empty(1 + length + length // 8, self.values.dtype)
            grown[:before] = self.values
            grown[before:] = self._unset
            self.values = grown
