"""Gradient-boosted trees for ranking, and their ONNX node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, helper

from classifier.rescorer import MOST_LEAVES

if TYPE_CHECKING:
    import lightgbm

Floats = NDArray[np.float32]

TREES = "TreeEnsembleRegressor"
"""The ONNX operator that sums trees."""

_SUMMED = {"n_targets": 1, "aggregate_function": b"SUM", "post_transform": b"NONE"}
_NODE_COLUMNS = ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids")
_EVERY_LEAF = (1 << MOST_LEAVES) - 1
_LEAF_COLUMNS = ("treeids", "nodeids", "ids", "weights")


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeOptions:
    """Hyperparameters.

    Attributes:
        trees: number of trees.
        rate: learning rate.
        leaves: maximum per tree.
        least_in_leaf: minimum candidates per leaf.
        feature_share, query_share: share of the features and queries used per tree.
        seed: of this sampling.
    """

    trees: int = 300
    rate: float = 0.05
    leaves: int = 15
    least_in_leaf: int = 100
    feature_share: float = 0.5
    query_share: float = 0.8
    seed: int = 0


def grow(
    rows: Floats,
    relevant: Floats,
    weights: Floats,
    sizes: Sequence[int],
    rising: Sequence[bool],
    options: TreeOptions,
) -> lightgbm.Booster:
    """Grow trees by LambdaMART, whose gradients are weighted by the change in nDCG when two candidates are swapped.

    Burges, "From RankNet to LambdaRank to LambdaMART: An Overview", MSR-TR-2010-82.

    Args:
        rows: features, shape (candidates, features), grouped by query.
        relevant: 1 or 0 per candidate.
        weights: the query's weight, per candidate.
        sizes: number of candidates per query, in order.
        rising: per feature, whether the score must not decrease with it.
        options: hyperparameters.
    """
    import lightgbm  # needs the system's OpenMP runtime (Debian: libgomp1), which only training should require

    parameters = {
        "objective": "lambdarank",
        "lambdarank_truncation_level": 20,
        "learning_rate": options.rate,
        "num_leaves": options.leaves,
        "min_data_in_leaf": options.least_in_leaf,
        "lambda_l2": 20.0,
        "monotone_constraints": [int(each) for each in rising],
        "feature_fraction": options.feature_share,
        "bagging_fraction": options.query_share,
        "bagging_freq": 1,
        "seed": options.seed,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,  # the same order of summation on every machine
        "verbose": -1,
    }
    data = lightgbm.Dataset(rows, relevant, weight=weights, group=list(sizes))
    return lightgbm.train(parameters, data, options.trees)


def tree_node(booster: lightgbm.Booster, rows: str, scores: str) -> NodeProto:
    """The trees as a node of the ONNX domain `ai.onnx.ml`.

    Args:
        booster: trained on numeric features without missing values.
        rows: name of the input, float32 of shape (n, features).
        scores: name of the output, float32 of shape (n, 1).
    """
    nodes: dict[str, list[Any]] = {
        key: [] for key in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
    }
    leaves: dict[str, list[Any]] = {key: [] for key in ("treeids", "nodeids", "ids", "weights")}

    def add(tree: int, first: int, node: dict[str, Any]) -> int:
        place = len(nodes["treeids"])
        number = place - first
        for column in nodes.values():
            column.append(0)
        nodes["treeids"][place], nodes["nodeids"][place] = tree, number
        if "leaf_value" in node:
            nodes["modes"][place], nodes["values"][place] = "LEAF", 0.0
            for key, value in zip(leaves, (tree, number, 0, float(node["leaf_value"])), strict=True):
                leaves[key].append(value)
            return number
        nodes["modes"][place] = "BRANCH_LEQ"
        nodes["featureids"][place] = node["split_feature"]
        nodes["values"][place] = _as_float32(node["threshold"])
        nodes["truenodeids"][place] = add(tree, first, node["left_child"])
        nodes["falsenodeids"][place] = add(tree, first, node["right_child"])
        return number

    for number, tree in enumerate(booster.dump_model()["tree_info"]):
        add(number, len(nodes["treeids"]), tree["tree_structure"])
    attributes: dict[str, Any] = {
        **{f"nodes_{key}": values for key, values in nodes.items()},
        **{f"target_{key}": values for key, values in leaves.items()},
        "n_targets": 1,
        "aggregate_function": "SUM",
        "post_transform": "NONE",
    }
    return helper.make_node(TREES, [rows], [scores], domain="ai.onnx.ml", **attributes)


def tree_arrays(node: NodeProto, features: int) -> dict[str, NDArray[Any]]:
    """The trees in the layout of `classifier.rescorer.Trees`.

    Args:
        node: from `tree_node`.
        features: number of features of a candidate.

    Returns:
        `tree_starts`, shape (trees + 1,): the first condition of each tree. Per condition, each before those of its
        subtrees and the true subtree first, `tree_features`, `tree_thresholds` and `tree_masks`: one bit per leaf that
        remains if the condition is false. `tree_leaves`, shape (trees, MOST_LEAVES).

    Raises:
        ValueError: the node is not a sum of trees over these features, or a tree is too large.
    """
    attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    columns = {*(f"nodes_{key}" for key in _NODE_COLUMNS), *(f"target_{key}" for key in _LEAF_COLUMNS)}
    if node.op_type != TREES or attributes.keys() != _SUMMED.keys() | columns:
        raise ValueError(f"{node.op_type} with {sorted(attributes)} is no sum of trees")
    if any(attributes[name] != value for name, value in _SUMMED.items()):
        raise ValueError("the trees are not summed")
    leaves = zip(*(attributes[f"target_{key}"] for key in _LEAF_COLUMNS), strict=True)
    values = {(tree, number): weight for tree, number, _, weight in leaves}
    trees: dict[int, dict[int, tuple[Any, ...]]] = {}
    for tree, number, *rest in zip(*(attributes[f"nodes_{key}"] for key in _NODE_COLUMNS), strict=True):
        trees.setdefault(tree, {})[number] = (*rest, values.get((tree, number), 0.0))
    laid_out = [_TreeLayout(tree, features) for tree in trees.values()]
    padded = [each.leaves + [0.0] * (MOST_LEAVES - len(each.leaves)) for each in laid_out]
    return {
        "tree_starts": np.cumsum([0, *(len(each.masks) for each in laid_out)], dtype=np.int64),
        "tree_features": np.array([feature for each in laid_out for feature in each.features], np.int32),
        "tree_thresholds": np.array([value for each in laid_out for value in each.thresholds], np.float32),
        "tree_masks": np.array([mask for each in laid_out for mask in each.masks], np.uint32),
        "tree_leaves": np.array(padded, np.float32),
    }


class _TreeLayout:
    """The conditions and leaves of one tree."""

    def __init__(self, tree: Mapping[int, tuple[Any, ...]], features: int) -> None:
        self._tree, self._most_features = tree, features
        self.features: list[int] = []
        self.thresholds: list[float] = []
        self.masks: list[int] = []
        self.leaves: list[float] = []
        self._walk(0)

    def _walk(self, number: int) -> None:
        """Lay out the subtree of a node. Terminates for any input, as the number of leaves is limited."""
        if number not in self._tree or len(self.leaves) >= MOST_LEAVES or len(self.masks) >= MOST_LEAVES:
            raise ValueError(f"a tree has no node {number}, or more than {MOST_LEAVES} leaves")
        mode, feature, threshold, met, unmet, value = self._tree[number]
        if mode == b"LEAF":
            self.leaves.append(value)
            return
        if mode != b"BRANCH_LEQ" or not 0 <= feature < self._most_features:
            raise ValueError(f"a node of a tree is {mode.decode()} of feature {feature}")
        condition, before = len(self.masks), len(self.leaves)
        self.features.append(feature)
        self.thresholds.append(threshold)
        self.masks.append(0)
        self._walk(met)
        self.masks[condition] = _EVERY_LEAF & ~((1 << len(self.leaves)) - (1 << before))
        self._walk(unmet)


def _as_float32(threshold: float) -> float:
    """The greatest float32 <= threshold; equivalent for float32 features."""
    nearest = np.float32(threshold)
    return float(nearest if float(nearest) <= threshold else np.nextafter(nearest, np.float32(-np.inf)))
