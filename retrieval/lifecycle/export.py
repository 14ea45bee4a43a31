"""The export of a namespace: JSON lines, a header with the settings, then every memory as callers send it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from retrieval.types.namespace import NamespaceSettings
from retrieval.validation import decode

MOST_WRITTEN = 2**30
"""Highest count of memories ever written in a header, so that a namespace restored from one takes as many more."""


class ExportHeader(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first line: the version of the format, and everything of the namespace except its memories.

    Attributes:
        memories: how many follow.
        written: how many were ever written, `MOST_WRITTEN` at most, on which entities' weights depend.
        aliases: given by hand, each after the key of its entity.
        merges: made by hand, in order, each as the keys of the merged entity and of the one it was merged into.
    """

    trivet_export: Literal[1]
    memories: Annotated[int, Meta(ge=0)]
    written: Annotated[int, Meta(ge=0, le=MOST_WRITTEN)]
    settings: NamespaceSettings
    aliases: list[tuple[str, str]] = []
    merges: list[tuple[str, str]] = []


MARK = b'{"trivet_export":'
"""The beginning of an export."""

_encoder = msgspec.json.Encoder()
_header_decoder = msgspec.json.Decoder(ExportHeader)


def header_line(header: ExportHeader) -> bytes:
    """The first line of an export."""
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
    """The header of an export; raises InvalidInput if it is of another version, or damaged."""
    return decode(line, _header_decoder)
