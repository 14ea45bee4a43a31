"""Request bodies: their media type, their JSON, and the place of what is wrong in them."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn, TypeVar

import msgspec
from litestar import Request
from litestar.exceptions import HTTPException

from retrieval.errors import InvalidInput
from retrieval.parsing import check_storable, invalid_input

T = TypeVar("T")

JSON_TYPE = "application/json"
NDJSON_TYPE = "application/x-ndjson"

_RISKY_ESCAPE = re.compile(
    rb"\\u0000"
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)


async def read_json(request: Request[Any, Any, Any], decoder: msgspec.json.Decoder[T]) -> T:
    """The request's body, decoded and checked.

    Raises:
        HTTPException: 413 for a body over the limit, 415 for another media type.
        InvalidInput: it is not JSON, or not of the decoder's type; `loc` names the field.
    """
    body = await request.body()
    require_media_type(request, JSON_TYPE, body_is_empty=not body)
    return decode(body, decoder)


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


def decode(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Decode JSON and refuse what cannot be stored.

    Raises:
        InvalidInput: not JSON, not of the decoder's type, a null byte or a lone surrogate in a string.
    """
    if not body or body.isspace():
        raise InvalidInput("The body is empty; send a JSON object")
    try:
        value = decoder.decode(body)
        if has_risky_escape(body):
            check_storable(value)
    except msgspec.ValidationError as exc:
        raise invalid_input(exc) from exc
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        if has_risky_escape(body):
            check_storable(lenient_tree(body))
        raise InvalidInput(f"The body is not valid JSON: {exc}") from exc
    except RecursionError as exc:
        raise InvalidInput("The body is nested too deeply") from exc
    return value


def has_risky_escape(body: bytes) -> bool:
    """Whether an escape may stand for a null byte or half a surrogate pair."""
    return _RISKY_ESCAPE.search(body) is not None


def lenient_tree(body: bytes) -> Any:
    """JSON in which half a surrogate pair is allowed, for finding the string that has it.

    Raises:
        InvalidInput: it is not JSON even so.
    """
    try:
        return json.loads(body, parse_constant=_refuse, parse_float=_finite)
    except RecursionError as exc:
        raise InvalidInput("The body is nested too deeply") from exc
    except ValueError as exc:
        raise InvalidInput(f"The body is not valid JSON: {exc}") from exc


def _refuse(number: str) -> NoReturn:
    raise ValueError(f"{number} is not a number that can be stored")


def _finite(number: str) -> float:
    value = float(number)
    return value if math.isfinite(value) else _refuse(number)
