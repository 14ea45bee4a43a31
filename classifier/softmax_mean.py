"""The mean of some choices, weighted by the softmax of a small function of some features."""

from __future__ import annotations

import ctypes

import numpy as np
from numpy.typing import NDArray

import native

_mean = native.function(
    "trivet_softmax_mean",
    ctypes.c_int64, native.Array, native.Array, native.Array, ctypes.c_float, ctypes.c_float, ctypes.c_int64,
    native.Array, native.Array, native.Array, ctypes.c_int64, native.Array, native.Array,
    result=ctypes.c_int32,
)  # fmt: skip


class SoftmaxMean:
    """mean = softmax(intercept + linear x + quadratic xx) @ grid, of standardised and clipped features x."""

    def __init__(
        self,
        *,
        mean: NDArray[np.float32],
        scale: NDArray[np.float32],
        clip: tuple[float, float],
        intercept: NDArray[np.float32],
        linear: NDArray[np.float32],
        grid: NDArray[np.float32],
        quadratic: NDArray[np.float32] | None = None,
    ) -> None:
        """Use contiguous arrays; x = clip((features - mean) / scale).

        Their shapes: `mean` and `scale` (features,), `intercept` (choices,), `linear` (features, choices), `grid`
        (choices, width), `quadratic` (features * (features + 1) / 2, choices), a row for each pair of features.
        """
        self._arrays = mean, scale, intercept, linear, quadratic, grid
        self._width = grid.shape[1]
        self._arguments = (
            native.address(mean), native.address(scale), *clip, len(grid),
            native.address(intercept), native.address(linear), None if quadratic is None else native.address(quadratic),
            self._width, native.address(grid),
        )  # fmt: skip

    def of(self, features: NDArray[np.float32]) -> list[float]:
        """The mean for some features, contiguous, shape (features,)."""
        means = np.empty(self._width, np.float32)
        _mean(len(features), native.address(features), *self._arguments, native.address(means))
        return means.tolist()
