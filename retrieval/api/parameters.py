"""Path, query and body parameters of handlers, and the checks before a handler is called.

Large bodies are decoded in a thread, in pieces that do not hold the GIL for long (`retrieval.validation`).
"""

from __future__ import annotations

import codecs
import functools
import re
from collections.abc import Callable
from typing import Annotated, Any, Final
from urllib.parse import parse_qsl, unquote_to_bytes

import msgspec
from litestar import Request, Response
from litestar.enums import HttpMethod
from litestar.exceptions import HTTPException
from litestar.params import PathParameter, QueryParameter
from msgspec import Meta, Struct

from retrieval.api.state import AppState
from retrieval.api.tokens import check_route
from retrieval.error_messages import meant_or_known
from retrieval.errors import InvalidInput
from retrieval.profiles.profile import check_name
from retrieval.types.document import MAX_ID_CHARS
from retrieval.types.memory import MAX_BATCH, MemoryInput
from retrieval.validation import check_storable, decode, parse_batch

JSON_TYPE = "application/json"
NDJSON_TYPE = "application/x-ndjson"

MAX_BODY_BYTES: Final = 1024 * 1024
"""Longest body, except for batches and conversations."""

MAX_CONVERSATION_BYTES: Final = 4 * 1024 * 1024
MAX_BYTES: Final = "max_bytes"
"""Key in a handler's `opt` for another limit of its body."""


class AddRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A batch. Each memory is accepted or rejected on its own."""

    memories: Annotated[list[MemoryInput], Meta(min_length=1, max_length=MAX_BATCH)]


class Batch(Struct, frozen=True, kw_only=True):
    """An `AddRequest` as a handler gets it: an invalid memory is replaced by its `InvalidInput`."""

    memories: list[Any]


class TypedRequest(Request[None, None, Any]):
    """A request whose body is decoded, strictly and within limits, as the type of its handler's `data`."""

    async def json(self) -> Any:
        """The body, without a byte order mark.

        Raises:
            InvalidInput: it is not JSON, or not of the type; `loc` names the field.
        """
        decode_body = _decoder_of(self.route_handler.parsed_fn_signature.parameters["data"].annotation)
        state: AppState = self.app.state.api
        return await state.decoded((await self.body()).removeprefix(codecs.BOM_UTF8), decode_body)


async def _check_body(request: Request[Any, Any, Any]) -> None:
    """Refuse a body that is too long, of the wrong media type, or empty, before a handler gets it."""
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


def require_media_type(request: Request[Any, Any, Any], wanted: str, *, body_is_empty: bool) -> None:
    """Refuse a body that is not declared as uncompressed UTF-8 of the wanted type.

    Raises:
        HTTPException: 415.
    """
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise HTTPException(
            status_code=415,
            detail="Send the body without a Content-Encoding: compressed bodies are not read",
            headers={"accept-encoding": "identity"},
        )
    given = request.headers.get("content-type")
    if given == wanted or (given is None and body_is_empty):
        return
    media_type, _, parameters = (given or "").partition(";")
    charset = re.search(r"charset\s*=\s*\"?([^\s;\"]+)", parameters, re.IGNORECASE)
    if media_type.strip().lower() != wanted or (charset and charset[1].lower() not in ("utf-8", "utf8")):
        raise HTTPException(status_code=415, detail=f"Send the body as {wanted} in UTF-8")


def _in_path(description: str, max_length: int) -> PathParameter:
    return PathParameter(description=description, schema_extra={"min_length": 1, "max_length": max_length})


NamespaceName = Annotated[str, _in_path("the namespace: letters and digits of any script or any of `_ . : @ + -`", 128)]
MemoryName = Annotated[str, _in_path("the memory's id, percent-encoded, slashes included", 256)]
DocumentName = Annotated[str, _in_path("the document's id, percent-encoded, slashes included", MAX_ID_CHARS)]
ProfileName = Annotated[str, _in_path("the profile: letters and digits of any script or any of `_ . : + -`", 100)]
EntityName = Annotated[str, _in_path("the entity's id, from a list or page", 16)]
MergeName = Annotated[str, _in_path("the merge's id", 36)]
Cursor = Annotated[str | None, QueryParameter(description="`next_cursor` of the previous page")]
Limit = Annotated[int, QueryParameter(ge=1, le=1_000, description="maximum number of entries per page")]

_TIME_WITHOUT_PLUS = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+ \d\d:\d\d")
"""A time whose + was not percent-encoded."""

_NOT_QUERY = frozenset({"api", "data", "request", "self"})
_FIELDS = {
    "ns": "namespace",
    "memory_id": "id",
    "document_id": "id",
    "entity_id": "id",
    "merge_id": "merge_id",
    "name": "name",
}
"""Names of path parameters in problems."""


async def check_request(request: Request[Any, Any, Any]) -> Response[None] | None:
    """Decode the names in the path; refuse what the token does not allow, and a bad query string or body.

    OPTIONS is answered here: the router's own answer names only the first handler of a path.

    Raises:
        HTTPException: 403, 413, 415.
        InvalidInput: a name that is not UTF-8, a parameter that is unknown or given twice, an empty body.
    """
    if request.method == HttpMethod.OPTIONS:
        state: AppState = request.app.state.api
        return Response(None, status_code=204, headers={"allow": state.allowed[request.scope["path_template"]]})
    encoded = request.scope["path_params"]  # the router reuses it for the next request
    names = {part: unquoted(value, _FIELDS[part]) for part, value in encoded.items() if part in _FIELDS}
    request.scope["path_params"] = {**encoded, **names}
    check_route(request, names.get("ns"))
    if "name" in names:
        check_name(names["name"])
    if query_string := request.scope["query_string"]:
        _check_query(request, query_string)
    await _check_body(request)
    return None


def _check_query(request: Request[Any, Any, Any], query_string: bytes) -> None:
    try:
        text = query_string.decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=4_096)
    except ValueError as exc:
        raise InvalidInput(f"The query string cannot be read: {exc}", loc=("query_string",)) from exc
    fields = request.route_handler.parsed_fn_signature.parameters
    known = fields.keys() - _NOT_QUERY - request.scope["path_params"].keys()
    given: dict[str, Any] = {}
    for name, value in pairs:
        if name not in known:
            where = "fields are sent in the body" if "data" in fields else "this path takes none"
            meant = meant_or_known(name, sorted(known)) if known else where
            raise InvalidInput(f"there is no such parameter; {meant}", loc=(name,))
        if any(inner.is_non_string_sequence for inner in fields[name].inner_types):  # a list or null
            given.setdefault(name, []).append(value)
        elif name in given:
            raise InvalidInput(f"`{name}` is given twice", loc=(name,))
        elif value == "null" and str not in [inner.annotation for inner in fields[name].inner_types]:
            raise InvalidInput("must not be null; leave it out", loc=(name,))
        elif _TIME_WITHOUT_PLUS.fullmatch(value):
            raise InvalidInput("has a blank before its zone: write + as %2B", loc=(name,))
        else:
            given[name] = value
    check_storable(given)


def unquoted(segment: str, field: str) -> str:
    """A decoded name from a path or header; bytes that are not percent-encoded arrive as Latin-1.

    Raises:
        InvalidInput: it is not UTF-8.
    """
    if "%" not in segment and segment.isascii():
        return segment
    try:
        return unquote_to_bytes(segment.encode("latin-1")).decode("utf-8")
    except UnicodeDecodeError as exc:
        raise InvalidInput("is not percent-encoded UTF-8", loc=(field,)) from exc
