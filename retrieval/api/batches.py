"""From the bytes of a batch to its memories, each parsed whatever is wrong with the others."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from retrieval.api.bodies import decode, has_risky_escape, lenient_tree
from retrieval.errors import InvalidInput
from retrieval.parsing import check_storable, parse_memory
from retrieval.types import MAX_BATCH, MemoryInput

Parsed = MemoryInput | InvalidInput


class _Envelope(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    memories: Annotated[list[msgspec.Raw], Meta(min_length=1, max_length=MAX_BATCH)]


_envelope_decoder = msgspec.json.Decoder(_Envelope)


def parse_batch(body: bytes) -> list[Parsed]:
    """The memories of `{"memories": [...]}`, each parsed by itself.

    Raises:
        InvalidInput: the body as a whole is wrong: not JSON, an unknown field, none or too many memories.
    """
    unstorable: dict[int, InvalidInput] = {}
    if has_risky_escape(body):
        body, unstorable = _set_aside_unstorable(body)
    envelope = decode(body, _envelope_decoder)
    return [
        unstorable[index] if index in unstorable else parse_memory(raw, index)
        for index, raw in enumerate(envelope.memories)
    ]


def _set_aside_unstorable(body: bytes) -> tuple[bytes, dict[int, InvalidInput]]:
    """The body with `null` for each memory that has a null byte or half a surrogate pair, and what they have.

    The strict decoder refuses a whole document for half a surrogate pair anywhere in it.
    """
    tree = lenient_tree(body)
    found: dict[int, InvalidInput] = {}
    memories = tree.get("memories") if isinstance(tree, dict) else None
    try:
        if isinstance(memories, list):
            for index, memory in enumerate(memories):
                try:
                    check_storable(memory, ("memories", index))
                except InvalidInput as exc:
                    found[index] = exc
                    memories[index] = None
        check_storable(tree)
        return msgspec.json.encode(tree), found
    except RecursionError as exc:
        raise InvalidInput("The body is nested too deeply") from exc
