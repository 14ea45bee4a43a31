"""The query string of what is listed in pages: plain parameters, cursor, limit."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import parse_qsl

import msgspec
from msgspec import Meta, Struct

from retrieval.api.operation import QueryParameter
from retrieval.errors import InvalidInput
from retrieval.parsing import check_storable, invalid_input

DEFAULT_LIMIT = 100
Limit = Annotated[int, Meta(ge=1, le=1_000)]

_MAX_PAIRS = 4_096

PARAMETERS = (
    QueryParameter(name="cursor", type=str, description="`next_cursor` of the page before"),
    QueryParameter(name="limit", type=Limit, description=f"entries per page; {DEFAULT_LIMIT} if left out"),
)
"""What the query string may have, for the OpenAPI document."""


class Deleted(Struct, frozen=True, kw_only=True):
    """How many entries were deleted."""

    deleted: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PageRequest:
    """Which page is asked for."""

    cursor: str | None
    limit: int


class _LimitField(Struct):
    limit: Limit = DEFAULT_LIMIT


def read_page(query_string: bytes) -> PageRequest:
    """Parse the query string.

    Raises:
        InvalidInput: an unknown or twice given parameter, or a bad value; `loc` names the parameter.

    >>> read_page(b"limit=5")
    PageRequest(cursor=None, limit=5)
    """
    given = collected(query_string, once=("cursor", "limit"))
    cursor = given.pop("cursor", None)
    try:
        limit = msgspec.convert(given, _LimitField, strict=False).limit
    except msgspec.ValidationError as exc:
        raise invalid_input(exc) from exc
    return PageRequest(cursor=cursor or None, limit=limit)


def collected(query_string: bytes, *, once: Collection[str] = (), often: Collection[str] = ()) -> dict[str, Any]:
    """Each parameter given with its value, or its values where it may be repeated.

    Args:
        query_string: as it stands in the URL.
        once: names that may be given once.
        often: names that may be given several times.

    Raises:
        InvalidInput: it cannot be read, or has a parameter that is unknown or given twice.
    """
    try:
        pairs = parse_qsl(
            query_string.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MAX_PAIRS
        )
    except ValueError as exc:
        raise InvalidInput(f"The query string cannot be read: {exc}", loc=("query_string",)) from exc
    given: dict[str, Any] = {}
    for name, value in pairs:
        if name in often:
            given.setdefault(name, []).append(value)
        elif name not in once:
            raise InvalidInput(f"There is no parameter `{name}`", loc=(name,))
        elif name in given:
            raise InvalidInput(f"`{name}` is given twice", loc=(name,))
        else:
            given[name] = value
    check_storable(given)
    return given
