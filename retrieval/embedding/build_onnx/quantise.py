"""The 24 dense layers of the encoder, and their static int8 quantisation with ranges learned from sample texts.

Ranges fixed at build time make a text's vector independent of the other texts in its batch, unlike ranges computed per
batch. A few channels of this encoder are 30 times larger than the rest, so channels are balanced first, as in
SmoothQuant (Xiao et al., ICML 2023, arXiv:2211.10438): x / s is multiplied by diag(s) @ W, with s = max|x|^alpha /
max|W|^(1 - alpha), and alpha chosen per layer by the remaining error. If one or two channels still dwarf the others,
they are multiplied in float32, as in LLM.int8 (Dettmers et al., NeurIPS 2022, arXiv:2208.07339).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from classifier.inference import open_session
from retrieval.embedding.encoder import batch_inputs

LAYERS = 6

Floats = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, eq=False)
class Linear:
    """y = x @ weight + bias, with a weight of shape (inputs, outputs)."""

    weight: Floats
    bias: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class QuantisedLinear:
    """A `Linear` in int8 arithmetic: q = uint8(x * shrink / input_scale + input_zero_point).

    Attributes:
        weight: shape (inputs, outputs), symmetric.
        weight_scale: shape (outputs,), one per column.
        bias: shape (outputs,).
        shrink: shape (inputs,); balances input channels before they share one scale.
        input_scale: step of the quantised input.
        input_zero_point: the quantised value of 0.
        exact_channels: inputs multiplied in float32, with zeros in the int8 product.
        exact_weight: their rows of the weight, shape (len(exact_channels), outputs).
    """

    weight: NDArray[np.int8]
    weight_scale: Floats
    bias: Floats
    shrink: Floats
    input_scale: np.float32
    input_zero_point: np.uint8
    exact_channels: NDArray[np.int64]
    exact_weight: Floats


def linears(tensors: dict[str, Floats]) -> dict[str, Linear]:
    """The dense layers by name: `0.attention`, `0.attended`, `0.expand`, `0.contract`, `1....`.

    Query, key and value of a layer are one `attention` weight of shape (384, 1152).
    """
    parts = {
        "attention": ("attention.self.query", "attention.self.key", "attention.self.value"),
        "attended": ("attention.output.dense",),
        "expand": ("intermediate.dense",),
        "contract": ("output.dense",),
    }
    return {
        f"{layer}.{name}": Linear(
            weight=np.concatenate([tensors[f"encoder.layer.{layer}.{path}.weight"].T for path in paths], axis=1),
            bias=np.concatenate([tensors[f"encoder.layer.{layer}.{path}.bias"] for path in paths]),
        )
        for layer in range(LAYERS)
        for name, paths in parts.items()
    }


_ALPHAS = (0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
_OUTLIER_RATIO = 5  # relative to the median channel
_MARGIN = 1.05  # headroom above the largest observed value
_SAMPLED_ROWS = 3000
_INT8_LIMIT = 127
_PAIR_LIMIT = 32767 / 255  # limit on the sum of two neighbouring weights; see `_quantise_weight`
_SMALLEST = 1e-5


class InputSample(NamedTuple):
    """The inputs of one layer while the sample texts ran.

    Attributes:
        lowest, highest: smallest and largest value per channel, shape (inputs,).
        rows: some of the rows, shape (n, inputs).
        row_weights: weight of each row's error, shape (n,); they have the same sum for each text, as in mean pooling.
    """

    lowest: Floats
    highest: Floats
    rows: Floats
    row_weights: Floats


def observe_inputs(
    model: onnx.ModelProto, names: Sequence[str], texts: Sequence[Sequence[int]]
) -> dict[str, InputSample]:
    """Run the float32 encoder over texts of word piece ids and sample each layer's input."""
    observed = onnx.ModelProto()
    observed.CopyFrom(model)
    inputs = {node.name: node.input[0] for node in model.graph.node if node.name in names}
    for value in dict.fromkeys(inputs.values()):
        observed.graph.output.append(helper.make_tensor_value_info(value, TensorProto.FLOAT, None))
    session = open_session(observed.SerializeToString())
    seen: dict[str, list[Floats]] = {name: [] for name in names}
    for pieces in texts:
        values = session.run([inputs[name] for name in names], batch_inputs([pieces]))
        for name, value in zip(names, values, strict=True):
            seen[name].append(value[0])
    weights = np.concatenate([np.full(len(p), 1 / len(p), dtype=np.float32) for p in texts])
    kept = np.random.default_rng(0).choice(len(weights), _SAMPLED_ROWS, replace=False)
    samples = {}
    for name in names:
        rows = np.concatenate(seen.pop(name))
        samples[name] = InputSample(rows.min(axis=0), rows.max(axis=0), rows[kept], weights[kept])
    return samples


def quantise_linear(linear: Linear, sample: InputSample, *, outliers_apart: bool) -> QuantisedLinear:
    """Quantise a layer with the alpha that minimises the squared error on a sample of its inputs.

    With `outliers_apart` the few channels that dwarf the others are multiplied in float32.
    """
    exact = sample.rows @ linear.weight
    largest = np.maximum(np.maximum(-sample.lowest, sample.highest), _SMALLEST)
    outliers = largest > _OUTLIER_RATIO * np.median(largest) if outliers_apart else largest < 0

    def error(candidate: QuantisedLinear) -> float:
        left = np.square(_product(candidate, sample.rows) - exact).sum(axis=1)
        return float(left @ sample.row_weights)

    candidates = (_with_alpha(linear, sample, outliers, alpha) for alpha in _ALPHAS)
    return min(candidates, key=error)


def _with_alpha(linear: Linear, sample: InputSample, outliers: NDArray[np.bool_], alpha: float) -> QuantisedLinear:
    lowest = np.where(outliers, 0, sample.lowest)
    highest = np.where(outliers, 0, sample.highest)
    largest = np.maximum(np.maximum(-lowest, highest), _SMALLEST)
    spread = largest**alpha / np.abs(linear.weight).max(axis=1) ** (1 - alpha)
    spread = (spread / np.exp(np.log(spread).mean())).astype(np.float32)
    low = min(0.0, float((lowest / spread).min())) * _MARGIN
    high = max(0.0, float((highest / spread).max())) * _MARGIN
    input_scale = np.float32((high - low) / 255)
    weight, weight_scale = _quantise_weight(np.where(outliers, 0, linear.weight.T * spread).T)
    return QuantisedLinear(
        weight=weight,
        weight_scale=weight_scale,
        bias=linear.bias,
        shrink=np.where(outliers, 0, 1 / spread).astype(np.float32),
        input_scale=input_scale,
        input_zero_point=np.uint8(np.rint(-low / input_scale)),
        exact_channels=np.flatnonzero(outliers).astype(np.int64),
        exact_weight=linear.weight[outliers],
    )


def _quantise_weight(weight: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Quantise per column without overflow on processors without VNNI.

    Their 8-bit product adds neighbouring pairs, 255 * w0 + 255 * w1, in 16 bits with saturation. The scale keeps each
    pair's sum below that, which costs less than 7-bit weights would.
    """
    sums = weight[0::2] + weight[1::2]  # pairs of opposite signs are bounded by the single limit
    scale = np.maximum(
        np.abs(weight).max(axis=0) / _INT8_LIMIT,
        np.abs(sums).max(axis=0) / (_PAIR_LIMIT - 1),  # 1 for rounding
    ).astype(np.float32)
    return np.rint(weight / scale).astype(np.int8), scale


def _product(linear: QuantisedLinear, rows: Floats) -> Floats:
    """The int8 layer's output for float32 rows, without bias."""
    zero = np.float32(linear.input_zero_point)
    steps = np.clip(np.rint(rows * linear.shrink / linear.input_scale) + zero, 0, 255) - zero
    product: Floats = (steps @ linear.weight.astype(np.float32)) * (linear.weight_scale * linear.input_scale)
    return product + rows[:, linear.exact_channels] @ linear.exact_weight
