"""Queries with relevance labels and the rescorer's inputs, stored in a file.

Each query is a MessagePack object preceded by its length, 4 bytes big-endian. Values are stored exactly, so that
features computed from an example equal those in serving bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from classifier.candidates import CandidateInputs
from classifier.query_performance import QueryPerformanceFeatures

_LENGTH_BYTES = 4


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """A query of an evaluation set with its candidates, the ids of the relevant ones, and the legs' results.

    `fused` are the candidates in the order of the fusion with the fixed weights.
    """

    set: str
    namespace: str
    type: str
    relevant: frozenset[str]
    evidence: QueryPerformanceFeatures
    known: CandidateInputs
    fused: Sequence[str]


_Known = msgspec.defstruct(
    "_Known",
    [
        (name, bytes | None if name == "vectors" else list[Any])
        for name in CandidateInputs.__struct_fields__
        if name != "vector_rows"  # the vectors are in the order of the candidates
    ],
)
_Stored = msgspec.defstruct("_Stored", list((get_type_hints(Example) | {"known": _Known}).items()))
"""An example whose arrays are as `_plain` writes them."""


def write_examples(path: Path, examples: Iterable[Example]) -> None:
    """Write a file, replacing an existing one."""
    encoder = msgspec.msgpack.Encoder(enc_hook=_plain)
    with path.open("wb") as file:
        for example in examples:
            content = encoder.encode(structs.asdict(example) | {"relevant": sorted(example.relevant)})
            file.write(len(content).to_bytes(_LENGTH_BYTES, "big") + content)


def read_examples(path: Path) -> list[Example]:
    """Read a file; raises ValueError if it is not of this version."""
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


def _restored(stored: msgspec.Struct) -> Example:
    values = structs.asdict(stored)
    known = structs.asdict(values["known"])
    for name in ("own", "mixed", "covered", "shared", "rarest"):
        known[name] = np.array(known[name], np.float32)
    if known["vectors"] is not None:
        known["vectors"] = np.frombuffer(known["vectors"], np.float32).reshape(len(known["ids"]), -1)
    return Example(**values | {"known": CandidateInputs(**known)})
