"""Gradient-boosted trees that learn to rank, and the same as an ONNX node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, helper

if TYPE_CHECKING:
    import lightgbm

Floats = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """How the trees are grown.

    Attributes:
        trees: how many.
        rate: how much each counts.
        leaves: of each.
        least_in_leaf: candidates.
        feature_share, query_share: which share of each a tree sees.
        seed: chooses them.
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
    options: Options,
) -> lightgbm.Booster:
    """Grow trees by LambdaMART, whose gradients are the nDCG that exchanging two candidates would win.

    Burges, "From RankNet to LambdaRank to LambdaMART: An Overview", MSR-TR-2010-82.

    Args:
        rows: features, shape (candidates, features); those of a query stand together.
        relevant: 1 or 0 for each.
        weights: of the query of each.
        sizes: candidates of each query, in order.
        rising: of each feature, whether more of it may never make a candidate worse.
        options: how.
    """
    import lightgbm  # it needs the system's OpenMP runtime (Debian: libgomp1), which only training should

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
        "num_threads": 1,  # the same sums in the same order on every machine
        "verbose": -1,
    }
    data = lightgbm.Dataset(rows, relevant, weight=weights, group=list(sizes))
    return lightgbm.train(parameters, data, options.trees)


def tree_node(booster: lightgbm.Booster, rows: str, scores: str) -> NodeProto:
    """The trees as a node of the domain `ai.onnx.ml`.

    Args:
        booster: of numeric features without missing values.
        rows: name of the input, float32 of shape (n, features).
        scores: name of the output, float32 of shape (n, 1).
    """
    nodes: dict[str, list[Any]] = {
        key: [] for key in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
    }
    leaves: dict[str, list[Any]] = {key: [] for key in ("treeids", "nodeids", "ids", "weights")}

    def add(tree: int, first: int, node: dict[str, Any]) -> int:
        place = len(nodes["treeids"])
        at = place - first
        for column in nodes.values():
            column.append(0)
        nodes["treeids"][place], nodes["nodeids"][place] = tree, at
        if "leaf_value" in node:
            nodes["modes"][place], nodes["values"][place] = "LEAF", 0.0
            for key, value in zip(leaves, (tree, at, 0, float(node["leaf_value"])), strict=True):
                leaves[key].append(value)
            return at
        nodes["modes"][place] = "BRANCH_LEQ"
        nodes["featureids"][place] = node["split_feature"]
        nodes["values"][place] = _as_float32(node["threshold"])
        nodes["truenodeids"][place] = add(tree, first, node["left_child"])
        nodes["falsenodeids"][place] = add(tree, first, node["right_child"])
        return at

    for number, tree in enumerate(booster.dump_model()["tree_info"]):
        add(number, len(nodes["treeids"]), tree["tree_structure"])
    attributes: dict[str, Any] = {
        **{f"nodes_{key}": values for key, values in nodes.items()},
        **{f"target_{key}": values for key, values in leaves.items()},
        "n_targets": 1,
        "aggregate_function": "SUM",
        "post_transform": "NONE",
    }
    return helper.make_node("TreeEnsembleRegressor", [rows], [scores], domain="ai.onnx.ml", **attributes)


def _as_float32(threshold: float) -> float:
    """The greatest float32 that is not above: to float32 features it is the same threshold."""
    nearest = np.float32(threshold)
    return float(nearest if float(nearest) <= threshold else np.nextafter(nearest, np.float32(-np.inf)))
