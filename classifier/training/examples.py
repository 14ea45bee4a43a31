"""Queries with relevance labels and the rescorer's inputs, stored in a file.

Each query is a MessagePack object preceded by its length, 4 bytes big-endian. Values are stored exactly, so that
features computed from an example equal those in serving bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from classifier.candidates import CandidateInputs
from classifier.query_performance import QueryPerformanceFeatures

_LENGTH_BYTES = 4


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """A query of an evaluation set with its candidates, the ids of those that are relevant, and the legs' results.

    `fused` are the candidates in the order of the fusion with the fixed weights.
    """

    set: str
    namespace: str
    type: str
    relevant: frozenset[str]
    evidence: QueryPerformanceFeatures
    known: CandidateInputs
    fused: Sequence[str]


class _Known(msgspec.Struct):
    ids: list[str]
    own: list[float]
    mixed: list[float]
    vectors: bytes | None
    covered: list[float]
    shared: list[float]
    rarest: list[float]
    traits: list[int]
    assistant: list[bool]
    named: list[bool]
    speakers: list[int]
    sessions: list[int]
    titled: list[float]
    has_title: list[bool]
    query: list[float]


class _Stored(msgspec.Struct):
    set: str
    namespace: str
    type: str
    relevant: frozenset[str]
    evidence: QueryPerformanceFeatures
    known: _Known
    fused: list[str]


def write_examples(path: Path, examples: Iterable[Example]) -> None:
    """Write a file, replacing an existing one."""
    encoder = msgspec.msgpack.Encoder(enc_hook=_plain)
    with path.open("wb") as file:
        for example in examples:
            content = encoder.encode(structs.asdict(example) | {"relevant": sorted(example.relevant)})
            file.write(len(content).to_bytes(_LENGTH_BYTES, "big") + content)


def read_examples(path: Path) -> list[Example]:
    """Read a file.

    Raises:
        ValueError: the file is not of this version.
    """
    decoder = msgspec.msgpack.Decoder(_Stored)
    try:
        return [_restored(decoder.decode(content)) for content in _parts(path.read_bytes())]
    except msgspec.DecodeError as exc:
        raise ValueError(f"{path}: {exc}") from exc


def only(known: CandidateInputs, kept: Sequence[int]) -> CandidateInputs:
    """The inputs of some of the candidates."""
    values = {}
    for name in CandidateInputs.__struct_fields__:
        value = getattr(known, name)
        if name != "query" and value is not None:
            values[name] = value[list(kept)] if isinstance(value, np.ndarray) else [value[row] for row in kept]
    return structs.replace(known, **values)


def _parts(content: bytes) -> Iterator[bytes]:
    offset = 0
    while offset < len(content):
        start = offset + _LENGTH_BYTES
        offset = start + int.from_bytes(content[offset:start], "big")
        if offset > len(content):
            raise ValueError("the last example is cut off")
        yield content[start:offset]


def _plain(array: NDArray[np.generic]) -> bytes | list[Any]:
    """The rows of a matrix as bytes, the values of a vector as numbers."""
    return array.tobytes() if array.ndim == 2 else array.tolist()


def _restored(stored: _Stored) -> Example:
    known = stored.known
    values = structs.asdict(known)
    for name in ("own", "mixed", "covered", "shared", "rarest"):
        values[name] = np.array(values[name], np.float32)
    if known.vectors is not None:
        values["vectors"] = np.frombuffer(known.vectors, np.float32).reshape(len(known.ids), -1)
    return Example(**structs.asdict(stored) | {"known": CandidateInputs(**values)})
