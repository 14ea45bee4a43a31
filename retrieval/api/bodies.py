"""Request bodies: their media type, their size, and what of them handlers get.

Large ones are decoded in a thread, in pieces that do not hold the interpreter for long (`retrieval.validation`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Annotated, Any, Final

import msgspec
from litestar import Request
from litestar.exceptions import HTTPException
from msgspec import Meta, Struct

from retrieval.api.state import AppState
from retrieval.errors import InvalidInput
from retrieval.types.memory import MAX_BATCH, MemoryInput
from retrieval.validation import SMALL_BYTES, Parsed, check_storable, decode, parse_batch, parse_memory

JSON_TYPE = "application/json"
NDJSON_TYPE = "application/x-ndjson"

MAX_BODY_BYTES: Final = 1024 * 1024
"""Longest body of what is neither a batch nor a conversation."""

MAX_CONVERSATION_BYTES: Final = 4 * 1024 * 1024
MAX_BYTES: Final = "max_bytes"
"""The key of a handler's `opt` under which another limit of its body stands."""


class AddRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A batch. Each memory is taken or rejected by itself."""

    memories: Annotated[list[MemoryInput], Meta(min_length=1, max_length=MAX_BATCH)]


class Batch(Struct, frozen=True, kw_only=True):
    """An `AddRequest` as a handler gets it: what is wrong with a memory, an `InvalidInput`, stands in its place."""

    memories: list[Any]


class TypedRequest(Request[None, None, Any]):
    """A request whose body is decoded as what its handler takes as `data`: strictly, and within bounds."""

    async def json(self) -> Any:
        """The body.

        Raises:
            InvalidInput: it is not JSON, or not of the type; `loc` names the field.
        """
        decode_body = _decoder_of(self.route_handler.parsed_fn_signature.parameters["data"].annotation)
        body = await self.body()
        if len(body) <= SMALL_BYTES:
            return decode_body(body)
        state: AppState = self.app.state.api
        return await state.in_turn(lambda: decode_body(body))


async def check_body(request: Request[Any, Any, Any]) -> None:
    """Refuse a body that is too long, of another media type, or empty, before a handler gets it.

    Raises:
        HTTPException: 413, 415.
        InvalidInput: it is empty.
    """
    data = request.route_handler.parsed_fn_signature.parameters.get("data")
    if data is None:
        return
    max_bytes = request.route_handler.opt.get(MAX_BYTES, MAX_BODY_BYTES)
    if (request.content_length or 0) > max_bytes:  # it need not be read
        raise HTTPException(status_code=413)
    body = await request.body()
    if not body and data.has_default:
        return
    require_media_type(request, JSON_TYPE, body_is_empty=not body)
    if len(body) > max_bytes:
        raise HTTPException(status_code=413)
    if not body:
        raise InvalidInput("The body is empty; send a JSON object")


@functools.cache
def _decoder_of(kind: Any) -> Callable[[bytes], Any]:
    if kind is Batch:
        return lambda body: Batch(memories=parse_batch(body))
    decoder = msgspec.json.Decoder(kind)

    def decode_body(body: bytes) -> Any:
        value = decode(body, decoder)
        if rb"\u" in body:  # half a surrogate pair, or a null byte
            check_storable(value)
        return value

    return decode_body


async def read_line(state: AppState, content: bytes, number: int) -> Parsed:
    """The memory of one line of a stream."""
    if len(content) <= SMALL_BYTES:
        return parse_memory(content, number)
    return await state.in_turn(lambda: parse_memory(content, number))


def require_media_type(request: Request[Any, Any, Any], wanted: str, *, body_is_empty: bool) -> None:
    """Refuse a body that is declared to be something else than UTF-8 of the wanted type.

    Raises:
        HTTPException: 415.
    """
    given = request.headers.get("content-type")
    if given == wanted or (given is None and body_is_empty):
        return
    media_type, _, parameters = (given or "").partition(";")
    charset = re.search(r"charset\s*=\s*\"?([^\s;\"]+)", parameters, re.IGNORECASE)
    if media_type.strip().lower() != wanted or (charset and charset[1].lower() not in ("utf-8", "utf8")):
        raise HTTPException(status_code=415, detail=f"Send the body as {wanted} in UTF-8")
