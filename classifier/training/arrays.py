"""Writes ONNX files: the graph and, for trees, the arrays that serving reads, taken from the graph."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from classifier.model_arrays import ARRAYS_KEY
from classifier.training.trees import TREES, tree_arrays

_STEPS = frozenset(("zero", "one", "columns", "all"))
"""Constants of a rescorer's graph that only its operators use, not serving."""


def arrays_of(model: onnx.ModelProto) -> dict[str, NDArray[Any]]:
    """The constants of a graph by name, and its trees in the serving layout."""
    arrays = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer if each.name not in _STEPS}
    for node in model.graph.node:
        if node.op_type == TREES:
            name = "relevance" if node.output[0] == "relevance_logits" else "tree"
            arrays |= tree_arrays(node, model.graph.input[0].type.tensor_type.shape.dim[1].dim_value, name)
    return arrays


def write_graph(
    path: Path,
    graph: str,
    nodes: Sequence[onnx.NodeProto],
    *,
    inputs: Mapping[str, Sequence[str | int]],
    outputs: Mapping[str, Sequence[str | int]],
    constants: Mapping[str, object],
    metadata: dict[str, str],
) -> None:
    """Write a model of float32 inputs and outputs, given by their shapes; constants that are lists become int64."""
    tensors = [
        numpy_helper.from_array(np.array(value, np.int64 if isinstance(value, list) else np.float32), name)
        for name, value in constants.items()
    ]
    takes, gives = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in values.items()]
        for values in (inputs, outputs)
    )
    versions = {"": 18, "ai.onnx.ml": 3}
    opsets = [helper.make_opsetid(domain, versions[domain]) for domain in sorted({"", *(n.domain for n in nodes)})]
    model = helper.make_model(
        helper.make_graph(nodes, graph, takes, gives, tensors), opset_imports=opsets, ir_version=9
    )
    helper.set_model_props(model, metadata)
    write_model(model, path)


def write_model(model: onnx.ModelProto, path: Path) -> None:
    """Validate and write a model; if it has trees, with their arrays in the metadata.

    The same numbers give the same bytes with the same release of Python, on which the headers of the archive depend.
    """
    if any(node.op_type == TREES for node in model.graph.node):
        archive = io.BytesIO()
        np.savez_compressed(archive, allow_pickle=False, **arrays_of(model))
        metadata = {each.key: each.value for each in model.metadata_props}
        del model.metadata_props[:]
        helper.set_model_props(model, metadata | {ARRAYS_KEY: b64encode(archive.getvalue()).decode()})
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString(deterministic=True))
