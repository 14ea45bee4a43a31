"""What handlers take from the path and from the query string, and what is refused before one is called."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import parse_qsl, unquote_to_bytes

from litestar import Request, Response
from litestar.enums import HttpMethod
from litestar.params import PathParameter, QueryParameter
from msgspec import Struct

from retrieval.api.bodies import check_body
from retrieval.api.state import AppState
from retrieval.errors import InvalidInput
from retrieval.profiles.profile import check_name
from retrieval.validation import check_storable


def _in_path(description: str, max_length: int) -> PathParameter:
    return PathParameter(description=description, schema_extra={"min_length": 1, "max_length": max_length})


NamespaceName = Annotated[
    str, _in_path("the namespace: 1 to 128 letters and digits of any script or any of `_ . : @ + -`", 128)
]
MemoryName = Annotated[str, _in_path("the memory's id, percent-encoded, slashes included", 256)]
ProfileName = Annotated[
    str, _in_path("the profile: 1 to 100 letters and digits of any script or any of `_ . : + -`", 100)
]
Cursor = Annotated[str | None, QueryParameter(description="`next_cursor` of the page before")]
Limit = Annotated[int, QueryParameter(ge=1, le=1_000, description="most entries of the page")]

_NOT_QUERY = frozenset({"api", "data", "request", "self"})
_FIELDS = {"ns": "namespace", "memory_id": "id", "name": "name"}
"""What the parts of a path are called in problems."""


class Deleted(Struct, frozen=True, kw_only=True):
    """How many entries were deleted."""

    deleted: int


async def check_request(request: Request[Any, Any, Any]) -> Response[None] | None:
    """Decode the names in the path, and refuse a query string or a body that no handler should get.

    OPTIONS is answered here: the router's own answer names only the first handler that it met at a path.

    Raises:
        HTTPException: as `check_body` does.
        InvalidInput: a name that is not UTF-8, a parameter that is unknown or given twice, an empty body.
    """
    if request.method == HttpMethod.OPTIONS:
        state: AppState = request.app.state.api
        return Response(None, status_code=204, headers={"allow": state.allowed[request.scope["path_template"]]})
    encoded = request.scope["path_params"]  # the router keeps it for the next request
    names = {part: _decoded(value, _FIELDS[part]) for part, value in encoded.items() if part in _FIELDS}
    request.scope["path_params"] = {**encoded, **names}
    if "name" in names:
        check_name(names["name"])
    if query_string := request.scope["query_string"]:
        _check_query(request, query_string)
    await check_body(request)
    return None


def _check_query(request: Request[Any, Any, Any], query_string: bytes) -> None:
    try:
        text = query_string.decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=4_096)
    except ValueError as exc:
        raise InvalidInput(f"The query string cannot be read: {exc}", loc=("query_string",)) from exc
    fields = request.route_handler.parsed_fn_signature.parameters
    given: dict[str, Any] = {}
    for name, value in pairs:
        if name not in fields or name in _NOT_QUERY or name in request.scope["path_params"]:
            raise InvalidInput(f"There is no parameter `{name}`", loc=(name,))
        if any(inner.is_non_string_sequence for inner in fields[name].inner_types):  # a list or null
            given.setdefault(name, []).append(value)
        elif name in given:
            raise InvalidInput(f"`{name}` is given twice", loc=(name,))
        elif value == "null" and str not in [inner.annotation for inner in fields[name].inner_types]:
            raise InvalidInput("must not be null; leave it out", loc=(name,))
        else:
            given[name] = value
    check_storable(given)


def _decoded(segment: str, field: str) -> str:
    if "%" not in segment and segment.isascii():
        return segment
    try:
        return unquote_to_bytes(segment.encode("latin-1")).decode("utf-8")
    except UnicodeDecodeError as exc:
        raise InvalidInput("is not percent-encoded UTF-8", loc=(field,)) from exc
