"""The arrays of a rescorer, read from the metadata of its ONNX file.

They repeat the constants of the ONNX graph, whose trees the compiled kernel evaluates ten times as fast as ONNX
Runtime; `classifier.training.arrays` adds them to the file.
"""

from __future__ import annotations

import io
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from classifier.inference import ModelMismatch, open_model

ARRAYS_KEY = "arrays"
"""Metadata key of the arrays: a NumPy archive (`np.savez_compressed`) in base64."""


@dataclass(frozen=True, slots=True)
class ModelArrays:
    """Arrays by name."""

    arrays: Mapping[str, NDArray[Any]]

    def array(self, name: str, dtype: DTypeLike, *shape: int) -> NDArray[Any]:
        """An array of the given type and shape (-1 for any length), contiguous and read-only; raises ModelMismatch."""
        value = self.arrays.get(name)
        if (
            value is None
            or value.dtype != dtype
            or len(value.shape) != len(shape)
            or any(want not in (-1, has) for want, has in zip(shape, value.shape, strict=True))
        ):
            raise ModelMismatch(f"{name} is no array of {np.dtype(dtype)} of shape {shape}")
        value = np.ascontiguousarray(value)
        value.flags.writeable = False
        return value

    def floats(self, name: str, *shape: int) -> NDArray[np.float32]:
        """A float32 array; see `array`."""
        return self.array(name, np.float32, *shape)


def read_arrays(path: Path, expected: Mapping[str, str]) -> ModelArrays:
    """Read the arrays of an ONNX file; raises as `open_model` does, ModelMismatch also if it has no arrays."""
    metadata = open_model(path, expected).get_modelmeta().custom_metadata_map
    if ARRAYS_KEY not in metadata:
        raise ModelMismatch(f"{path} has no arrays in its metadata: train it again")
    try:
        with np.load(io.BytesIO(b64decode(metadata[ARRAYS_KEY], validate=True)), allow_pickle=False) as archive:
            return ModelArrays(dict(archive))
    except Exception as exc:  # base64, zip, zlib and NumPy raise different errors
        raise ModelMismatch(f"{path}: its arrays cannot be read: {exc}") from exc
