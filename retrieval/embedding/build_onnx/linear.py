"""The 24 dense layers of the encoder, in float32 and in int8."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
