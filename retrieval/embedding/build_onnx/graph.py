"""Builds the encoder's ONNX graph from its weights.

Operators of the domain `com.microsoft` are ONNX Runtime's fused kernels, so the file runs only there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from retrieval.embedding.build_onnx.quantise import LAYERS, Floats, Linear, QuantisedLinear
from retrieval.embedding.onnx import DIMENSIONS, MAX_PIECES

HEADS = 12
OPSET = 17
_IR_VERSION = 8  # opset 17's own, so that older runtimes load the file
_LAYER_NORM_EPSILON = 1e-12
_MICROSOFT = "com.microsoft"
_INT8_LIMIT = 127


@dataclass
class _EncoderGraph:
    """Nodes and constants in order of addition; methods return the name of what they added."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, onnx.TensorProto] = field(default_factory=dict)

    def constant(self, name: str, values: NDArray[Any]) -> str:
        self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(values), name)
        return name

    def standard(self, name: str, operator: str, *inputs: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def fused(self, name: str, operator: str, *inputs: str, **attributes: Any) -> str:
        return self.standard(name, operator, *inputs, domain=_MICROSOFT, **attributes)


def encoder(
    tensors: Mapping[str, Floats], linears: Mapping[str, Linear | QuantisedLinear], *, quantise_words: bool
) -> onnx.ModelProto:
    """The encoder with mean pooling and L2 normalisation, from its tensors and the dense layers of `linears`.

    Inputs `input_ids` and `attention_mask`: int64 (batch, seq), seq at most 256. Output `embedding`: float32
    (batch, 384), unit rows. With `quantise_words` the word embeddings are int8 with one scale per word.
    """
    graph = _EncoderGraph()
    words = _word_embeddings(graph, tensors["embeddings.word_embeddings.weight"], quantise_words)
    hidden = _add_and_normalise(graph, "embedded", words, _positions(graph, tensors), tensors, "embeddings.LayerNorm")
    mask = graph.standard("mask", "Cast", "attention_mask", to=TensorProto.INT32)
    for layer in range(LAYERS):
        norms = f"encoder.layer.{layer}."
        heads = _attention(graph, f"{layer}.attention", hidden, linears, mask)
        attended = _linear(graph, f"{layer}.attended", heads, linears)
        hidden = _add_and_normalise(
            graph, f"{layer}.middle", attended, hidden, tensors, f"{norms}attention.output.LayerNorm"
        )
        expanded = _linear(graph, f"{layer}.expand", hidden, linears)
        active = graph.fused(f"{layer}.active", "FastGelu", expanded)
        contracted = _linear(graph, f"{layer}.contract", active, linears)
        hidden = _add_and_normalise(graph, f"{layer}.hidden", contracted, hidden, tensors, f"{norms}output.LayerNorm")
    _pool(graph, hidden)
    return _model(graph)


def _word_embeddings(graph: _EncoderGraph, table: Floats, quantise: bool) -> str:
    if not quantise:
        return graph.standard("words", "Gather", graph.constant("word_table", table), "input_ids")
    scale = np.abs(table).max(axis=1, keepdims=True) / np.float32(_INT8_LIMIT)
    steps = np.rint(table / scale).astype(np.int8)
    gathered = graph.standard("word_steps", "Gather", graph.constant("word_table", steps), "input_ids")
    steps_f32 = graph.standard("word_steps_f32", "Cast", gathered, to=TensorProto.FLOAT)
    scale_of = graph.standard("word_scale", "Gather", graph.constant("word_scales", scale), "input_ids")
    return graph.standard("words", "Mul", steps_f32, scale_of)


def _positions(graph: _EncoderGraph, tensors: Mapping[str, Floats]) -> str:
    """Position embeddings of shape (seq, 384) with the embedding of type 0, which all tokens have, added in."""
    places = tensors["embeddings.position_embeddings.weight"][:MAX_PIECES]
    table = places + tensors["embeddings.token_type_embeddings.weight"][0]
    zero = graph.constant("zero", np.array([0], dtype=np.int64))
    length = graph.standard("length", "Shape", "input_ids", start=1, end=2)
    return graph.standard("positions", "Slice", graph.constant("position_table", table), zero, length, zero)


def _add_and_normalise(
    graph: _EncoderGraph, name: str, left: str, right: str, tensors: Mapping[str, Floats], norm: str
) -> str:
    gain = graph.constant(f"{name}.gain", tensors[f"{norm}.weight"])
    offset = graph.constant(f"{name}.offset", tensors[f"{norm}.bias"])
    # Not the fused `SkipLayerNormalization`, which works element by element and takes a sixth of a short query's time.
    both = graph.standard(f"{name}.sum", "Add", left, right)
    return graph.standard(name, "LayerNormalization", both, gain, offset, axis=-1, epsilon=_LAYER_NORM_EPSILON)


def _attention(
    graph: _EncoderGraph, name: str, hidden: str, linears: Mapping[str, Linear | QuantisedLinear], mask: str
) -> str:
    match linears[name]:
        case Linear() as linear:
            weight = graph.constant(f"{name}.weight", linear.weight)
            bias = graph.constant(f"{name}.bias", linear.bias)
            return graph.fused(name, "Attention", hidden, weight, bias, mask, num_heads=HEADS)
        case QuantisedLinear() as linear:
            steps, weight, scales, zeros, bias = _quantise_input(graph, name, hidden, linear)
            return graph.fused(name, "QAttention", steps, weight, bias, *scales, mask, *zeros, num_heads=HEADS)


def _linear(graph: _EncoderGraph, name: str, hidden: str, linears: Mapping[str, Linear | QuantisedLinear]) -> str:
    match linears[name]:
        case Linear() as linear:
            weight = graph.constant(f"{name}.weight", linear.weight)
            product = graph.standard(name, "MatMul", hidden, weight)
            bias = graph.constant(f"{name}.bias", linear.bias)
            return graph.standard(f"{name}.biased", "Add", product, bias)
        case QuantisedLinear() as linear:
            steps, weight, scales, zeros, bias = _quantise_input(graph, name, hidden, linear)
            product = graph.fused(name, "MatMulIntegerToFloat", steps, weight, *scales, *zeros, bias)
            return _add_exact(graph, name, hidden, product, linear)


def _add_exact(graph: _EncoderGraph, name: str, hidden: str, product: str, linear: QuantisedLinear) -> str:
    """Add the float32 product of the channels excluded from the int8 product."""
    if not len(linear.exact_channels):
        return product
    channels = graph.constant(f"{name}.exact_channels", linear.exact_channels)
    weight = graph.constant(f"{name}.exact_weight", linear.exact_weight)
    picked = graph.standard(f"{name}.picked", "Gather", hidden, channels, axis=-1)
    exact = graph.standard(f"{name}.exact", "MatMul", picked, weight)
    return graph.standard(f"{name}.total", "Add", product, exact)


def _quantise_input(
    graph: _EncoderGraph, name: str, hidden: str, linear: QuantisedLinear
) -> tuple[str, str, tuple[str, str], tuple[str, str], str]:
    """Names of the inputs of an integer matrix product: steps, weight, the scales and zeros of both, and bias."""
    shrunk = graph.standard(f"{name}.shrunk", "Mul", hidden, graph.constant(f"{name}.shrink", linear.shrink))
    input_scale = graph.constant(f"{name}.input_scale", np.array(linear.input_scale))
    input_zero = graph.constant(f"{name}.input_zero", np.array(linear.input_zero_point))
    weight_zero = np.zeros(len(linear.weight_scale), dtype=np.int8)
    return (
        graph.standard(f"{name}.steps", "QuantizeLinear", shrunk, input_scale, input_zero),
        graph.constant(f"{name}.weight", linear.weight),
        (input_scale, graph.constant(f"{name}.weight_scale", linear.weight_scale)),
        (input_zero, graph.constant(f"{name}.weight_zero", weight_zero)),
        graph.constant(f"{name}.bias", linear.bias),
    )


def _pool(graph: _EncoderGraph, hidden: str) -> None:
    """Sum the rows under the mask and normalise to unit length, which cancels out the mean's division."""
    one = graph.constant("one", np.array([1], dtype=np.int64))
    mask = graph.standard("mask_f32", "Cast", "attention_mask", to=TensorProto.FLOAT)
    mask_row = graph.standard("mask_row", "Unsqueeze", mask, one)
    total = graph.standard("total", "MatMul", mask_row, hidden)
    pooled = graph.standard("pooled", "Squeeze", total, one)
    graph.standard("embedding", "LpNormalization", pooled, axis=-1, p=2)


def _model(graph: _EncoderGraph) -> onnx.ModelProto:
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "seq"])
        for name in ("input_ids", "attention_mask")
    ]
    output = helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", DIMENSIONS])
    return helper.make_model(
        helper.make_graph(graph.nodes, "all-MiniLM-L6-v2", inputs, [output], list(graph.constants.values())),
        producer_name="trivet",
        ir_version=_IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(_MICROSOFT, 1)],
    )
