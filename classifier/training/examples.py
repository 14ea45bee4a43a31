"""Queries with gold and all that the rescorer is given of their candidates, as a file.

Each is one MessagePack object, preceded by its length in 4 bytes, big-endian. All is stored as it was, so that features
made of an example are, bit for bit, those that were served.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from classifier.candidates import Particulars
from classifier.evidence import Evidence, Findings
from classifier.intents import Intent

_LENGTH_BYTES = 4


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """One query.

    Attributes:
        set: the evaluation set.
        namespace: within it.
        type: of the query.
        relevant: the gold.
        evidence: what the legs answered.
        known: of the candidates.
        fused: the candidates in the order of the fusion with the fixed weights.
    """

    set: str
    namespace: str
    type: str
    relevant: frozenset[str]
    evidence: Evidence
    known: Particulars
    fused: Sequence[str]


class _Evidence(msgspec.Struct):
    vector: tuple[list[str], list[float]]
    bm25: tuple[list[str], list[float]]
    graph: tuple[list[str], list[float]]
    attainable: float
    rarities: list[float]
    words: int
    probabilities: dict[Intent, float]


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
    relevant: list[str]
    evidence: _Evidence
    known: _Known
    fused: list[str]


def write_examples(path: Path, examples: Iterable[Example]) -> None:
    """Write a file anew."""
    encoder = msgspec.msgpack.Encoder()
    with path.open("wb") as file:
        for example in examples:
            content = encoder.encode(_stored(example))
            file.write(len(content).to_bytes(_LENGTH_BYTES, "big") + content)


def read_examples(path: Path) -> list[Example]:
    """Read a file.

    Raises:
        ValueError: it is not one of this version.
    """
    decoder = msgspec.msgpack.Decoder(_Stored)
    try:
        return [_restored(decoder.decode(content)) for content in _parts(path.read_bytes())]
    except msgspec.DecodeError as exc:
        raise ValueError(f"{path}: {exc}") from exc


def _parts(content: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(content):
        start = at + _LENGTH_BYTES
        at = start + int.from_bytes(content[at:start], "big")
        if at > len(content):
            raise ValueError("the last example is cut off")
        yield content[start:at]


def _stored(example: Example) -> _Stored:
    evidence, known = example.evidence, example.known
    values: dict[str, Any] = {name: getattr(known, name) for name in Particulars.__struct_fields__}
    values |= {name: value.tolist() for name, value in values.items() if isinstance(value, np.ndarray)}
    values["vectors"] = None if known.vectors is None else known.vectors.tobytes()
    return _Stored(
        set=example.set,
        namespace=example.namespace,
        type=example.type,
        relevant=sorted(example.relevant),
        evidence=_Evidence(
            vector=(list(evidence.vector.ids), list(evidence.vector.scores)),
            bm25=(list(evidence.bm25.ids), list(evidence.bm25.scores)),
            graph=(list(evidence.graph.ids), list(evidence.graph.scores)),
            attainable=evidence.attainable,
            rarities=list(evidence.rarities),
            words=evidence.words,
            probabilities=dict(evidence.probabilities),
        ),
        known=_Known(**values),
        fused=list(example.fused),
    )


def _restored(stored: _Stored) -> Example:
    evidence, known = stored.evidence, stored.known
    values: dict[str, Any] = msgspec.structs.asdict(known)
    for name in ("own", "mixed", "covered", "shared", "rarest"):
        values[name] = np.array(values[name], np.float32)
    if known.vectors is not None:
        values["vectors"] = np.frombuffer(known.vectors, np.float32).reshape(len(known.ids), -1)
    return Example(
        set=stored.set,
        namespace=stored.namespace,
        type=stored.type,
        relevant=frozenset(stored.relevant),
        evidence=Evidence(
            vector=Findings(*evidence.vector),
            bm25=Findings(*evidence.bm25),
            graph=Findings(*evidence.graph),
            attainable=evidence.attainable,
            rarities=evidence.rarities,
            words=evidence.words,
            probabilities=evidence.probabilities,
        ),
        known=Particulars(**values),
        fused=stored.fused,
    )
