"""Boosted trees as served, against ONNX Runtime; and files that are not trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import TensorProto, helper

from classifier.candidates import CANDIDATE_FEATURES
from classifier.inference import ModelMismatch, open_session
from classifier.model_arrays import ARRAYS_KEY, ModelArrays, read_arrays
from classifier.rescorer import MOST_LEAVES, Trees
from classifier.training.arrays import arrays_of, write_model
from classifier.training.trees import tree_arrays

MODELS = Path(__file__).resolve().parents[3] / "models"
FEATURES = 4
THRESHOLDS = (-1.5, 0.0, 0.25, 3.0)

Shape = float | tuple[int, float, Any, Any]
"""A leaf's value; or a feature, a threshold, and the subtrees if the condition is true or false."""

leaves = st.floats(-4, 4, width=32)
shapes: st.SearchStrategy[Shape] = st.recursive(
    leaves,
    lambda inner: st.tuples(st.integers(0, FEATURES - 1), st.sampled_from(THRESHOLDS), inner, inner),
    max_leaves=MOST_LEAVES,
)


def attributes_of(trees: Sequence[Shape]) -> dict[str, list[Any]]:
    """The trees as lists of their nodes, in depth-first order."""
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


def model_of(attributes: Mapping[str, Any], operator: str = "TreeEnsembleRegressor") -> onnx.ModelProto:
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
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def written(trees: Sequence[Shape], folder: Path) -> Path:
    """A file of trees, written as a rescorer is."""
    path = folder / "trees.onnx"
    write_model(model_of(attributes_of(trees)), path)
    return path


def asked(path: Path, rows: NDArray[np.float32], **more: Any) -> NDArray[np.float32]:
    """ONNX Runtime's scores of rows."""
    session = open_session(path)
    [scores] = session.run(["scores"], {session.get_inputs()[0].name: rows, **more})
    return np.asarray(scores)[:, 0]


@given(
    st.lists(shapes, min_size=1, max_size=5),
    st.lists(st.lists(st.sampled_from((*THRESHOLDS, -9.0, 0.1, 7.5)), min_size=4, max_size=4), min_size=1, max_size=99),
    st.data(),
)
def test_scores_are_those_of_onnx_runtime(
    tmp_path_factory: pytest.TempPathFactory, trees: list[Shape], values: list[list[float]], data: st.DataObject
) -> None:
    """Of some rows in some order, features at thresholds and infinities among them."""
    folder = tmp_path_factory.mktemp("trees")
    path = written(trees, folder)
    rows = np.array(values, np.float32)
    chosen = np.array(data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=99)), np.int64)
    got = Trees(read_arrays(path, {}), FEATURES).scores(rows, chosen)
    assert np.array_equal(got, asked(path, rows[chosen]))


@pytest.mark.parametrize("name", ["rescorer.onnx", "rescorer-research.onnx"])
def test_the_shipped_trees_score_as_onnx_runtime_does(name: str) -> None:
    """Whatever the features are: half of them stand exactly at a threshold."""
    model = read_arrays(MODELS / name, {})
    trees, rng = Trees(model, len(CANDIDATE_FEATURES)), np.random.default_rng(1)
    rows = rng.normal(size=(300, len(CANDIDATE_FEATURES))).astype(np.float32)
    for feature in range(len(CANDIDATE_FEATURES)):
        thresholds = model.arrays["tree_thresholds"][model.arrays["tree_features"] == feature]
        exact = rng.random(len(rows)) < 0.5
        rows[exact, feature] = rng.choice(thresholds if thresholds.size else [0.0], exact.sum())
    for count in (1, 2, 47, 48, 49, 300):
        chosen = rng.permutation(300)[:count]
        kind = np.zeros((1, 18), np.float32)
        assert np.array_equal(trees.scores(rows, chosen), asked(MODELS / name, rows[chosen], kind=kind))


def chain(count: int) -> Shape:
    """A tree with this many leaves, one below the other."""
    shape: Shape = 0.5
    for at in range(count - 1):
        shape = (at % FEATURES, -float(at), float(at), shape)
    return shape


def test_the_largest_trees(tmp_path: Path) -> None:
    path = written([chain(MOST_LEAVES)], tmp_path)
    rows = np.random.default_rng(2).normal(-10, 12, (200, FEATURES)).astype(np.float32)
    rows[0] = np.inf
    got = Trees(read_arrays(path, {}), FEATURES).scores(rows, np.arange(200))
    assert np.array_equal(got, asked(path, rows))
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
def test_what_is_no_sum_of_trees_is_refused(change: dict[str, Any]) -> None:
    """Unknown features, missing or cyclic nodes, other conditions, other sums."""
    with pytest.raises(ValueError, match=r"tree|zip"):
        arrays_of(model_of(attributes_of([STUMP]) | change))


def test_a_tree_with_too_many_leaves_and_another_operator_are_refused() -> None:
    with pytest.raises(ValueError, match=str(MOST_LEAVES)):
        arrays_of(model_of(attributes_of([chain(MOST_LEAVES + 1)])))
    with pytest.raises(ValueError, match="Abs"):
        tree_arrays(helper.make_node("Abs", ["rows"], ["scores"]), FEATURES, "tree")


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("tree_starts", [0, 1]),
        ("tree_starts", [1, 2]),
        ("tree_starts", [0, 3, 2]),
        ("tree_starts", []),
        ("tree_features", [0, FEATURES]),
        ("tree_features", [-1, 0]),
        ("tree_thresholds", [0.5]),
        ("tree_masks", [1, 2, 3]),
        ("tree_leaves", [[0.5] * (MOST_LEAVES - 1)]),
        ("tree_leaves", None),
    ],
)
def test_arrays_that_lead_out_of_bounds_are_refused(name: str, wrong: list[Any] | None) -> None:
    arrays = arrays_of(model_of(attributes_of([STUMP])))
    Trees(ModelArrays(arrays), FEATURES)
    dtype = arrays.pop(name).dtype
    if wrong is not None:
        arrays[name] = np.array(wrong, dtype)
    with pytest.raises(ModelMismatch):
        Trees(ModelArrays(arrays), FEATURES)


SERVED_BY_ARRAYS = ["rescorer.onnx", "rescorer-research.onnx"]


@pytest.mark.parametrize("name", SERVED_BY_ARRAYS)
def test_the_arrays_of_a_shipped_model_are_those_of_its_graph(name: str) -> None:
    served, graph = read_arrays(MODELS / name, {}).arrays, arrays_of(onnx.load(MODELS / name))
    assert served.keys() == graph.keys()
    assert all(served[each].dtype == graph[each].dtype for each in graph)
    assert all(np.array_equal(served[each], graph[each]) for each in graph)


def test_a_file_without_arrays_is_refused_and_has_them_once_it_is_written_again(tmp_path: Path) -> None:
    """A second time changes nothing."""
    shipped = MODELS / "rescorer.onnx"
    model, path = onnx.load(shipped), tmp_path / "rescorer.onnx"
    kept = [each for each in model.metadata_props if each.key != ARRAYS_KEY]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    path.write_bytes(model.SerializeToString(deterministic=True))
    with pytest.raises(ModelMismatch, match="train it again"):
        read_arrays(path, {})
    write_model(model, path)
    once = path.read_bytes()
    write_model(onnx.load(path), path)
    assert path.read_bytes() == once
    # Not the bytes of the shipped file: releases of Python 3.11 differ in the headers of the archive.
    arrays, shipped_arrays = read_arrays(path, {}).arrays, read_arrays(shipped, {}).arrays
    assert {name: each.tobytes() for name, each in arrays.items()} == {
        name: each.tobytes() for name, each in shipped_arrays.items()
    }


@pytest.mark.parametrize("content", ["", "no base64!", "AAAA", "UEsDBAoAAAAAAAAA"])
def test_damaged_arrays_are_refused(tmp_path: Path, content: str) -> None:
    model, path = model_of(attributes_of([STUMP])), tmp_path / "damaged.onnx"
    helper.set_model_props(model, {ARRAYS_KEY: content})
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelMismatch, match="damaged"):
        read_arrays(path, {})
