"""Boosted trees as they are served, against ONNX Runtime; and files that are no trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import TensorProto, helper

from classifier.candidates import CANDIDATE_FEATURES
from classifier.inference import ModelMismatch, open_session
from classifier.onnx_file import Node, read_model
from classifier.trees import MOST_LEAVES, Trees

MODELS = Path(__file__).resolve().parents[2] / "models"
FEATURES = 4
THRESHOLDS = (-1.5, 0.0, 0.25, 3.0)

Shape = float | tuple[int, float, Any, Any]
"""A leaf's value; or a feature, a threshold, and what follows where the condition is met and where not."""

leaves = st.floats(-4, 4, width=32)
shapes: st.SearchStrategy[Shape] = st.recursive(
    leaves,
    lambda inner: st.tuples(st.integers(0, FEATURES - 1), st.sampled_from(THRESHOLDS), inner, inner),
    max_leaves=MOST_LEAVES,
)


def attributes_of(trees: Sequence[Shape]) -> dict[str, list[Any]]:
    """The trees as lists, the nodes of each as they are met."""
    nodes: dict[str, list[Any]] = {
        f"nodes_{key}": []
        for key in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
    }
    targets: dict[str, list[Any]] = {f"target_{key}": [] for key in ("treeids", "nodeids", "ids", "weights")}

    def add(tree: int, shape: Shape, first: int) -> int:
        place = len(nodes["nodes_treeids"])
        at = place - first
        feature, threshold, met, unmet = shape if isinstance(shape, tuple) else (0, 0.0, None, None)
        mode = "BRANCH_LEQ" if isinstance(shape, tuple) else "LEAF"
        for column, value in zip(nodes.values(), (tree, at, feature, mode, threshold, 0, 0), strict=True):
            column.append(value)
        if met is None or unmet is None:
            for column, value in zip(targets.values(), (tree, at, 0, shape), strict=True):
                column.append(value)
        else:
            nodes["nodes_truenodeids"][place] = add(tree, met, first)
            nodes["nodes_falsenodeids"][place] = add(tree, unmet, first)
        return at

    for number, shape in enumerate(trees):
        add(number, shape, len(nodes["nodes_treeids"]))
    return nodes | targets


def model_of(attributes: Mapping[str, Any], operator: str = "TreeEnsembleRegressor") -> bytes:
    """A model of one operator."""
    summed = {"n_targets": 1, "aggregate_function": "SUM", "post_transform": "NONE"}
    node = helper.make_node(operator, ["rows"], ["scores"], domain="ai.onnx.ml", **{**summed, **attributes})
    graph = helper.make_graph(
        [node],
        "trees",
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", FEATURES])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", 1])],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    content: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
    return content


def read_node(content: bytes, folder: Path) -> Node:
    path = folder / "trees.onnx"
    path.write_bytes(content)
    [node] = read_model(path).nodes
    return node


def asked(path: Path, rows: NDArray[np.float32], **more: Any) -> NDArray[np.float32]:
    """What ONNX Runtime makes of rows."""
    session = open_session(path)
    [scores] = session.run(["scores"], {session.get_inputs()[0].name: rows, **more})
    return np.asarray(scores)[:, 0]


@given(
    st.lists(shapes, min_size=1, max_size=5),
    st.lists(st.lists(st.sampled_from((*THRESHOLDS, -9.0, 0.1, 7.5)), min_size=4, max_size=4), min_size=1, max_size=99),
    st.data(),
)
@settings(max_examples=60, deadline=None)
def test_scores_are_those_of_onnx_runtime(
    tmp_path_factory: pytest.TempPathFactory, trees: list[Shape], values: list[list[float]], data: st.DataObject
) -> None:
    """Of some rows in some order, features at thresholds and infinities among them."""
    folder = tmp_path_factory.mktemp("trees")
    node = read_node(model_of(attributes_of(trees)), folder)
    rows = np.array(values, np.float32)
    chosen = np.array(data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=99)), np.int64)
    got = Trees(node, FEATURES).scores(rows, chosen)
    assert np.array_equal(got, asked(folder / "trees.onnx", rows[chosen]))


@pytest.mark.parametrize("name", ["rescorer.onnx", "rescorer-permissive.onnx"])
def test_the_shipped_trees_score_as_onnx_runtime_does(name: str) -> None:
    """Whatever the features are: half of them stand exactly at a threshold."""
    [node, *_] = read_model(MODELS / name).nodes
    trees, rng = Trees(node, len(CANDIDATE_FEATURES)), np.random.default_rng(1)
    rows = rng.normal(size=(300, len(CANDIDATE_FEATURES))).astype(np.float32)
    for feature in range(len(CANDIDATE_FEATURES)):
        at = node.attributes["nodes_values"][node.attributes["nodes_featureids"] == feature]
        exact = rng.random(len(rows)) < 0.5
        rows[exact, feature] = rng.choice(at if at.size else [0.0], exact.sum())
    for count in (1, 2, 47, 48, 49, 300):
        chosen = rng.permutation(300)[:count]
        kind = np.zeros((1, 18), np.float32)
        assert np.array_equal(trees.scores(rows, chosen), asked(MODELS / name, rows[chosen], kind=kind))


def chain(count: int) -> Shape:
    """A tree of so many leaves, one below the other."""
    shape: Shape = 0.5
    for at in range(count - 1):
        shape = (at % FEATURES, -float(at), float(at), shape)
    return shape


def test_the_largest_trees(tmp_path: Path) -> None:
    node = read_node(model_of(attributes_of([chain(MOST_LEAVES)])), tmp_path)
    rows = np.random.default_rng(2).normal(-10, 12, (200, FEATURES)).astype(np.float32)
    rows[0] = np.inf
    got = Trees(node, FEATURES).scores(rows, np.arange(200))
    assert np.array_equal(got, asked(tmp_path / "trees.onnx", rows))
    assert len(set(got.tolist())) > 5


STUMP: Shape = (1, 0.5, 1.0, (3, 0.5, 2.0, 3.0))


@pytest.mark.parametrize(
    "change",
    [
        {"nodes_featureids": [FEATURES, 0, 3, 0, 0]},
        {"nodes_featureids": [-1, 0, 3, 0, 0]},
        {"nodes_truenodeids": [9, 0, 3, 0, 0]},
        {"nodes_truenodeids": [0, 0, 3, 0, 0]},
        {"nodes_falsenodeids": [2, 0, 0, 0, 0]},
        {"nodes_modes": ["BRANCH_LT", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"]},
        {"nodes_values": [0.5]},
        {"aggregate_function": "AVERAGE"},
        {"post_transform": "SOFTMAX"},
        {"n_targets": 2},
        {"base_values": [1.0]},
    ],
    ids=str,
)
def test_what_is_no_sum_of_trees_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    """Features that are not there, nodes that are missing or lead back, other conditions, other sums."""
    node = read_node(model_of(attributes_of([STUMP]) | change), tmp_path)
    with pytest.raises(ModelMismatch):
        Trees(node, FEATURES)


def test_a_tree_with_too_many_leaves_and_another_operator_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelMismatch, match=str(MOST_LEAVES)):
        Trees(read_node(model_of(attributes_of([chain(MOST_LEAVES + 1)])), tmp_path), FEATURES)
    with pytest.raises(ModelMismatch, match="Abs"):
        Trees(Node("Abs", {}), FEATURES)


def test_a_file_says_what_onnx_says_of_it() -> None:
    for path in MODELS.glob("*.onnx"):
        if path.name == "embedder.onnx":
            continue
        model, known = read_model(path), onnx.load(path)
        assert model.operators == tuple(node.op_type for node in known.graph.node)
        assert model.metadata == {each.key: each.value for each in known.metadata_props}
        kept = {each.name: onnx.numpy_helper.to_array(each) for each in known.graph.initializer}
        assert model.constants.keys() == kept.keys()
        assert all(np.array_equal(model.constants[name], kept[name]) for name in kept)


@pytest.mark.parametrize("cut", [1, 1_000, 40_000])
def test_a_damaged_file_is_refused(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "damaged.onnx"
    path.write_bytes((MODELS / "weights.onnx").read_bytes()[:-cut])
    with pytest.raises(ModelMismatch, match="damaged"):
        read_model(path)


@given(st.binary(max_size=200))
def test_whatever_a_file_holds_it_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("file") / "any.onnx"
    path.write_bytes(content)
    with suppress(ModelMismatch):
        read_model(path)
