"""What a model file holds, read without ONNX Runtime: operators, constants and metadata as Trivet writes them.

An ONNX file is one message of Protocol Buffers (https://protobuf.dev/programming-guides/encoding/), its fields numbered
as in https://github.com/onnx/onnx/blob/main/onnx/onnx-ml.proto.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from classifier.inference import ModelMismatch

_VARINT, _LONG, _BYTES, _SHORT = 0, 1, 2, 5
_FIXED = {_LONG: 8, _SHORT: 4}
_GRAPH, _METADATA = 7, 14
_NODE, _CONSTANT = 1, 5
_OPERATOR, _ATTRIBUTE = 4, 5
_TENSOR_NAME, _DIMENSIONS, _TYPE, _RAW = 8, 1, 2, 9
_TYPES = {1: "<f4", 6: "<i4", 7: "<i8"}
_FLOATS, _INTS, _STRINGS = 7, 8, 9
_ONE_FLOAT, _ONE_INT, _ONE_STRING = 2, 3, 4


@dataclass(frozen=True, slots=True)
class Node:
    """One operator of a graph.

    Attributes:
        operator: its type.
        attributes: by name: a float, a whole number or bytes, or a sequence of one of these.
    """

    operator: str
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model.

    Attributes:
        nodes: in order.
        constants: the tensors of float32 and whole numbers that the graph starts with, by name.
        metadata: its own strings.
    """

    nodes: Sequence[Node]
    constants: Mapping[str, NDArray[Any]]
    metadata: Mapping[str, str]

    @property
    def operators(self) -> tuple[str, ...]:
        """What it computes, in order."""
        return tuple(node.operator for node in self.nodes)

    def check_metadata(self, expected: Mapping[str, str], path: Path) -> None:
        """Refuse a model that was made for something else.

        Raises:
            ModelMismatch: a value is another.
        """
        for key, value in expected.items():
            if self.metadata.get(key) != value:
                raise ModelMismatch(f"{path}: {key} is {self.metadata.get(key)}, this version needs {value}")

    def floats(self, name: str, *shape: int) -> NDArray[np.float32]:
        """A constant of some shape, -1 for any length; it is not to be changed.

        Raises:
            ModelMismatch: there is none.
        """
        value = self.constants.get(name)
        fits = value is not None and value.dtype == np.float32 and len(value.shape) == len(shape)
        if (
            value is None
            or not fits
            or any(want not in (-1, has) for want, has in zip(shape, value.shape, strict=True))
        ):
            raise ModelMismatch(f"the constant {name} is no array of float32 of shape {shape}")
        return value


def read_model(path: Path) -> ModelFile:
    """Read a file.

    Raises:
        FileNotFoundError: there is no such file.
        ModelMismatch: it is not an ONNX file, or not one that Trivet writes.
    """
    try:
        return _model(memoryview(path.read_bytes()))
    except (IndexError, KeyError, OverflowError, TypeError, ValueError) as exc:
        raise ModelMismatch(f"{path} is not an ONNX model of Trivet's: {exc}") from exc


def _model(content: memoryview) -> ModelFile:
    nodes: list[Node] = []
    constants: dict[str, NDArray[Any]] = {}
    metadata: dict[str, str] = {}
    for number, value in _fields(content):
        if number == _METADATA:
            pair = dict(_fields(value))
            metadata[_text(pair.get(1, b""))] = _text(pair.get(2, b""))
        elif number == _GRAPH:
            for part, inner in _fields(value):
                if part == _NODE:
                    nodes.append(_node(inner))
                elif part == _CONSTANT:
                    name, tensor = _tensor(inner)
                    constants[name] = tensor
    return ModelFile(nodes, constants, metadata)


def _node(content: memoryview) -> Node:
    operator, attributes = "", {}
    for number, value in _fields(content):
        if number == _OPERATOR:
            operator = _text(value)
        elif number == _ATTRIBUTE:
            name, attribute = _attribute(value)
            attributes[name] = attribute
    return Node(operator, attributes)


def _attribute(content: memoryview) -> tuple[str, Any]:
    many: dict[int, list[Any]] = {_FLOATS: [], _INTS: [], _STRINGS: []}
    name, one = "", None
    for number, value in _fields(content):
        if number in many:
            many[number].append(value)
        elif number == 1:
            name = _text(value)
        elif number == _ONE_FLOAT:
            one = np.frombuffer(value, "<f4")[0]
        elif number == _ONE_INT:
            one = value
        elif number == _ONE_STRING:
            one = bytes(value)
    if many[_FLOATS]:
        return name, np.frombuffer(b"".join(many[_FLOATS]), "<f4")
    if many[_STRINGS]:
        return name, [bytes(each) for each in many[_STRINGS]]
    return name, one if one is not None else np.array(many[_INTS], np.uint64).astype(np.int64)


def _tensor(content: memoryview) -> tuple[str, NDArray[Any]]:
    name, shape, dtype, raw = "", [], 0, memoryview(b"")
    for number, value in _fields(content):
        if number == _TENSOR_NAME:
            name = _text(value)
        elif number == _DIMENSIONS:
            shape.append(value)
        elif number == _TYPE:
            dtype = value
        elif number == _RAW:
            raw = value
    tensor = np.frombuffer(raw, _TYPES[dtype]).reshape(shape).copy()  # in the file it may begin anywhere
    tensor.flags.writeable = False
    return name, tensor


def _fields(content: memoryview) -> Iterator[tuple[int, Any]]:
    """The fields of a message by number: a whole number, or bytes."""
    at, size = 0, len(content)
    while at < size:
        tag, at = _varint(content, at)
        kind = tag & 7
        if kind == _VARINT:
            value, at = _varint(content, at)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            length, at = _varint(content, at)
        else:
            length = _FIXED[kind]
        if at + length > size:
            raise ValueError("a field is cut off")
        yield tag >> 3, content[at : at + length]
        at += length


def _varint(content: memoryview, at: int) -> tuple[int, int]:
    """A whole number of seven bits to a byte, the least first, and where it ends."""
    byte = content[at]
    if byte < 0x80:
        return byte, at + 1
    value, shift = 0, 0
    while byte >= 0x80:
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        byte = content[at]
    return value | byte << shift, at + 1


def _text(content: memoryview | bytes) -> str:
    return str(content, "utf-8")
