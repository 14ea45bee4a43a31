"""The export of a namespace: JSON lines, a header with the settings and then every memory as callers send it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from retrieval.types.namespace import NamespaceSettings
from retrieval.validation import decode


class ExportHeader(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first line: the version of the format, and what the namespace has beside its memories.

    Attributes:
        memories: how many follow.
        written: how many were ever written; the weight of an entity depends on it.
    """

    trivet_export: Literal[1]
    memories: Annotated[int, Meta(ge=0)]
    written: Annotated[int, Meta(ge=0, le=2**30)]
    settings: NamespaceSettings


MARK = b'{"trivet_export":'
"""What an export begins with."""

_encoder = msgspec.json.Encoder()
_header_decoder = msgspec.json.Decoder(ExportHeader)


def header_line(*, memories: int, written: int, settings: NamespaceSettings) -> bytes:
    """The first line of an export."""
    header = ExportHeader(trivet_export=1, memories=memories, written=written, settings=settings)
    return _encoder.encode(header) + b"\n"


def memory_lines(memories: Iterable[Mapping[str, Any]]) -> bytes:
    r"""A line for each memory; empty fields are left out.

    >>> memory_lines([{"id": "m1", "text": "Hi.", "title": None, "tags": []}])
    b'{"id":"m1","text":"Hi."}\n'
    """
    return _encoder.encode_lines(
        {name: value for name, value in memory.items() if value not in (None, [], {})} for memory in memories
    )


def read_header(line: bytes) -> ExportHeader:
    """The header of an export.

    Raises:
        InvalidInput: it is one of another version, or damaged.
    """
    return decode(line, _header_decoder)
