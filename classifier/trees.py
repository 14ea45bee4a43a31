"""Inference with boosted trees, in arrays laid out for the compiled kernel."""

from __future__ import annotations

import ctypes

import numpy as np
from numpy.typing import NDArray

import native
from classifier.inference import ModelMismatch
from classifier.model_arrays import ModelArrays

MOST_LEAVES = 32
"""Maximum leaves of a tree, one bit each; as in `native/rescore.c`."""

_score = native.function(
    "trivet_trees",
    ctypes.c_int64, native.Array, native.Array, ctypes.c_int64, ctypes.c_int64,
    native.Array, native.Array, native.Array, native.Array, native.Array, native.Array,
    result=ctypes.c_int32,
)  # fmt: skip


class Trees:
    """A sum of trees with conditions "feature <= threshold"; thread-safe."""

    def __init__(self, model: ModelArrays, features: int) -> None:
        """Read the arrays made by `classifier.training.trees.tree_arrays`.

        Raises:
            ModelMismatch: arrays are missing or for other features.
        """
        starts = model.array("tree_starts", np.int64, -1)
        if not starts.size or starts[0] != 0 or (np.diff(starts) < 0).any():
            raise ModelMismatch("its trees do not follow each other")
        conditions = int(starts[-1])
        columns = model.array("tree_features", np.int32, conditions)
        if ((columns < 0) | (columns >= features)).any():
            raise ModelMismatch(f"its trees have other features than {features}")
        self._features = features
        self._trees = len(starts) - 1
        self._arrays = (
            starts,
            columns,
            model.floats("tree_thresholds", conditions),
            model.array("tree_masks", np.uint32, conditions),
            model.floats("tree_leaves", self._trees, MOST_LEAVES),
        )
        self._addresses = [native.address(array) for array in self._arrays]

    def scores(self, rows: NDArray[np.float32], chosen: NDArray[np.int64]) -> NDArray[np.float32]:
        """The scores of the chosen rows, shape (len(chosen),), equal to ONNX Runtime's.

        Args:
            rows: shape (n, features), contiguous.
            chosen: row indices in [0, n), contiguous.
        """
        scores = np.empty(len(chosen), np.float32)
        failed = _score(
            len(chosen), native.address(chosen), native.address(rows), self._features, self._trees,
            *self._addresses, native.address(scores),
        )  # fmt: skip
        if failed:
            raise MemoryError
        return scores
