"""Boosted trees as they are served: read from an ONNX file, laid out for the compiled loop, and asked."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import native
from classifier.inference import ModelMismatch
from classifier.onnx_file import Node

MOST_LEAVES = 32
"""Of a tree, a bit for each; as in `native/rescore.c`."""

_ALL = (1 << MOST_LEAVES) - 1
_SAME = {"n_targets": 1, "aggregate_function": b"SUM", "post_transform": b"NONE"}
_KEPT = {
    *("nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_modes", "nodes_values", "nodes_truenodeids"),
    *("nodes_falsenodeids", "target_treeids", "target_nodeids", "target_ids", "target_weights"),
}

_score = native.function(
    "trivet_trees",
    ctypes.c_int64, native.Array, native.Array, ctypes.c_int64, ctypes.c_int64,
    native.Array, native.Array, native.Array, native.Array, native.Array, native.Array,
    result=ctypes.c_int32,
)  # fmt: skip


class Trees:
    """Trees of conditions "a feature is at most a threshold", their leaves summed; safe to share between threads."""

    def __init__(self, node: Node, features: int) -> None:
        """Lay out the trees of a `TreeEnsembleRegressor` as `classifier.training.trees.tree_node` writes it.

        Raises:
            ModelMismatch: it is another operator, takes other features, or its trees are too large or no trees.
        """
        layout = _Layout(node, features)
        self._features = features
        self._arrays: list[NDArray[Any]] = [
            np.array(layout.first, np.int64),
            np.array(layout.features, np.int32),
            np.array(layout.thresholds, np.float32),
            np.array(layout.keep, np.uint32),
            np.array(layout.leaves, np.float32),
        ]
        self._addresses = [native.at(array) for array in self._arrays]
        self._trees = len(layout.first) - 1

    def scores(self, rows: NDArray[np.float32], chosen: NDArray[np.int64]) -> NDArray[np.float32]:
        """The scores of some rows, shape (len(chosen),), as ONNX Runtime sums them.

        Args:
            rows: shape (n, features), contiguous.
            chosen: places in [0, n), contiguous.
        """
        scores = np.empty(len(chosen), np.float32)
        failed = _score(
            len(chosen), native.at(chosen), native.at(rows), self._features, self._trees,
            *self._addresses, native.at(scores),
        )  # fmt: skip
        if failed:
            raise MemoryError
        return scores


class _Layout:
    """Conditions and leaves tree after tree, each with its condition before those of either side, the met one first."""

    def __init__(self, node: Node, features: int) -> None:
        if node.operator != "TreeEnsembleRegressor" or node.attributes.keys() != _SAME.keys() | _KEPT:
            raise ModelMismatch(f"{node.operator} with {sorted(node.attributes)} is no sum of trees")
        if any(node.attributes[name] != value for name, value in _SAME.items()):
            raise ModelMismatch("the trees are not summed")
        self._most_features = features
        self.first = [0]
        self.features: list[int] = []
        self.thresholds: list[float] = []
        self.keep: list[int] = []
        self.leaves: list[float] = []
        for tree in _by_tree(node.attributes):
            self._found: list[float] = []
            self._walk(tree, 0)
            self.leaves += self._found + [0.0] * (MOST_LEAVES - len(self._found))
            self.first.append(len(self.features))

    def _walk(self, tree: Mapping[int, tuple[Any, ...]], at: int) -> None:
        """Lay out what hangs on a node. It ends, whatever the numbers: no tree has more leaves than there are bits."""
        found = tree.get(at)
        if found is None or len(self._found) >= MOST_LEAVES or len(self.features) - self.first[-1] >= MOST_LEAVES:
            raise ModelMismatch(f"a tree has no node {at}, or more than {MOST_LEAVES} leaves")
        mode, feature, threshold, met, unmet, value = found
        if mode == b"LEAF":
            self._found.append(value)
            return
        if mode != b"BRANCH_LEQ" or not 0 <= feature < self._most_features:
            raise ModelMismatch(f"a node of a tree is {mode.decode()} of feature {feature}")
        place, before = len(self.keep), len(self._found)
        self.features.append(feature)
        self.thresholds.append(threshold)
        self.keep.append(0)
        self._walk(tree, met)
        self.keep[place] = _ALL & ~((1 << len(self._found)) - (1 << before))
        self._walk(tree, unmet)


def _by_tree(attributes: Mapping[str, Any]) -> Iterator[dict[int, tuple[Any, ...]]]:
    """Of each tree the nodes by number: mode, feature, threshold, the next where it is met and where not, value."""
    leaves = _columns(attributes, "target_treeids", "target_nodeids", "target_weights")
    values = {(tree, at): value for tree, at, value in zip(*leaves, strict=True)}
    columns = _columns(
        attributes, "nodes_treeids", "nodes_nodeids", "nodes_modes", "nodes_featureids", "nodes_values",
        "nodes_truenodeids", "nodes_falsenodeids",
    )  # fmt: skip
    trees: dict[int, dict[int, tuple[Any, ...]]] = {}
    for tree, at, *node in zip(*columns, strict=True):
        trees.setdefault(tree, {})[at] = (*node, values.get((tree, at), 0.0))
    yield from trees.values()


def _columns(attributes: Mapping[str, Any], *names: str) -> list[list[Any]]:
    columns = [attributes[name] for name in names]
    if len({len(column) for column in columns}) > 1:
        raise ModelMismatch("the nodes of the trees are not complete")
    return [column.tolist() if isinstance(column, np.ndarray) else column for column in columns]
