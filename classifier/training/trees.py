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
_NODE_COLUMNS = tuple(
    f"nodes_{name}" for name in ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids")
)
_LEAF_COLUMNS = tuple(f"target_{name}" for name in ("treeids", "nodeids", "ids", "weights"))
_EVERY_LEAF = (1 << MOST_LEAVES) - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeOptions:
    """Hyperparameters: at most `leaves` per tree, each with at least `least_in_leaf` candidates."""

    trees: int = 300
    rate: float = 0.05
    leaves: int = 15
    least_in_leaf: int = 100
    seed: int = 0


def grow(
    rows: Floats,
    relevant: Floats,
    weights: Floats,
    sizes: Sequence[int] | None,
    rising: Sequence[bool],
    options: TreeOptions,
) -> lightgbm.Booster:
    """Grow trees that order the candidates of a query or, without `sizes`, predict the logit of their relevance.

    The order by LambdaMART, whose gradients are weighted by the change in nDCG when two candidates are swapped: Burges,
    "From RankNet to LambdaRank to LambdaMART: An Overview", MSR-TR-2010-82.

    `rows` are features of shape (candidates, features), grouped by query; `relevant` is 1 or 0 and `weights` the
    query's weight, per candidate; `sizes` has the number of candidates per query, in order. `rising` tells, per
    feature, whether the score must not decrease with it.
    """
    import lightgbm  # needs the system's OpenMP runtime (Debian: libgomp1), which only training should require

    ordering = {"objective": "lambdarank", "lambdarank_truncation_level": 20}
    parameters = {
        **({"objective": "binary"} if sizes is None else ordering),
        "learning_rate": options.rate,
        "num_leaves": options.leaves,
        "min_data_in_leaf": options.least_in_leaf,
        "lambda_l2": 20.0,
        "monotone_constraints": [int(each) for each in rising],
        "feature_fraction": 0.5,
        "bagging_fraction": 0.8,
        "bagging_freq": 1,
        "seed": options.seed,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,  # the same order of summation on every machine
        "verbose": -1,
    }
    data = lightgbm.Dataset(rows, relevant, weight=weights, group=None if sizes is None else list(sizes))
    return lightgbm.train(parameters, data, options.trees)


def tree_node(booster: lightgbm.Booster, rows: str, scores: str) -> NodeProto:
    """The trees, of numeric features without missing values, as a node of the ONNX domain `ai.onnx.ml`.

    `rows` is the name of its input, float32 of shape (n, features), `scores` of its output, float32 of shape (n, 1).
    """
    nodes: list[tuple[Any, ...]] = []
    leaves: list[tuple[Any, ...]] = []

    def add(tree: int, first: int, node: dict[str, Any]) -> int:
        place = len(nodes)
        number = place - first
        nodes.append((tree, number, "LEAF", 0, 0.0, 0, 0))
        if "leaf_value" in node:
            leaves.append((tree, number, 0, float(node["leaf_value"])))
        else:
            met, unmet = add(tree, first, node["left_child"]), add(tree, first, node["right_child"])
            threshold = _as_float32(node["threshold"])
            nodes[place] = (tree, number, "BRANCH_LEQ", node["split_feature"], threshold, met, unmet)
        return number

    for number, tree in enumerate(booster.dump_model()["tree_info"]):
        add(number, len(nodes), tree["tree_structure"])
    attributes: dict[str, Any] = {
        **dict(zip(_NODE_COLUMNS, zip(*nodes, strict=True), strict=True)),
        **dict(zip(_LEAF_COLUMNS, zip(*leaves, strict=True), strict=True)),
        **_SUMMED,
    }
    return helper.make_node(TREES, [rows], [scores], domain="ai.onnx.ml", **attributes)


def tree_arrays(node: NodeProto, features: int, name: str) -> dict[str, NDArray[Any]]:
    """The trees in the layout of `classifier.rescorer.Trees`.

    `{name}_starts`, shape (trees + 1,): the first condition of each tree. Per condition, each before those of its
    subtrees and the true subtree first, `{name}_features`, `{name}_thresholds` and `{name}_masks`: one bit per leaf
    that remains if the condition is false. `{name}_leaves`, shape (trees, MOST_LEAVES). Raises ValueError if the node
    is not a sum of trees over these features, or a tree is too large.
    """
    attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    if node.op_type != TREES or attributes.keys() != {*_SUMMED, *_NODE_COLUMNS, *_LEAF_COLUMNS}:
        raise ValueError(f"{node.op_type} with {sorted(attributes)} is no sum of trees")
    if any(attributes[name] != value for name, value in _SUMMED.items()):
        raise ValueError("the trees are not summed")
    leaves = zip(*(attributes[name] for name in _LEAF_COLUMNS), strict=True)
    values = {(tree, number): weight for tree, number, _, weight in leaves}
    trees: dict[int, dict[int, tuple[Any, ...]]] = {}
    for tree, number, *rest in zip(*(attributes[name] for name in _NODE_COLUMNS), strict=True):
        trees.setdefault(tree, {})[number] = (*rest, values.get((tree, number), 0.0))
    laid_out = [_laid_out(tree, features) for tree in trees.values()]
    conditions = [condition for each, _ in laid_out for condition in each]
    columns, thresholds, masks = zip(*conditions, strict=True) if conditions else ((), (), ())
    return {
        f"{name}_starts": np.cumsum([0, *(len(each) for each, _ in laid_out)], dtype=np.int64),
        f"{name}_features": np.array(columns, np.int32),
        f"{name}_thresholds": np.array(thresholds, np.float32),
        f"{name}_masks": np.array(masks, np.uint32),
        f"{name}_leaves": np.array([each + [0.0] * (MOST_LEAVES - len(each)) for _, each in laid_out], np.float32),
    }


def _laid_out(tree: Mapping[int, tuple[Any, ...]], features: int) -> tuple[list[tuple[int, float, int]], list[float]]:
    """The conditions of one tree (feature, threshold, mask), and its leaves."""
    conditions: list[tuple[int, float, int]] = []
    leaves: list[float] = []

    def walk(number: int) -> None:
        """Lay out the subtree of a node. Terminates for any input, as the number of leaves is limited."""
        if number not in tree or len(leaves) >= MOST_LEAVES or len(conditions) >= MOST_LEAVES:
            raise ValueError(f"a tree has no node {number}, or more than {MOST_LEAVES} leaves")
        mode, feature, threshold, met, unmet, value = tree[number]
        if mode == b"LEAF":
            leaves.append(value)
            return
        if mode != b"BRANCH_LEQ" or not 0 <= feature < features:
            raise ValueError(f"a node of a tree is {mode.decode()} of feature {feature}")
        place, before = len(conditions), len(leaves)
        conditions.append((feature, threshold, 0))
        walk(met)
        conditions[place] = (feature, threshold, _EVERY_LEAF & ~((1 << len(leaves)) - (1 << before)))
        walk(unmet)

    walk(0)
    return conditions, leaves


def _as_float32(threshold: float) -> float:
    """The greatest float32 <= threshold; equivalent for float32 features."""
    nearest = np.float32(threshold)
    return float(nearest if float(nearest) <= threshold else np.nextafter(nearest, np.float32(-np.inf)))
