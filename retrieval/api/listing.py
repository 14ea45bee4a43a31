"""The query string of a listing: filters as JSON or one by one, cursor, limit."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from retrieval.api.bodies import decode
from retrieval.api.operation import QueryParameter
from retrieval.api.paging import DEFAULT_LIMIT, Limit, collected
from retrieval.errors import InvalidInput
from retrieval.parsing import check_storable, invalid_input
from retrieval.types import Filters, Kind, Label, Zoned

_MANY = ("kind", "session_id", "document_id", "speaker", "tags_all", "tags_any")
_ONE = ("created_after", "created_before")
_filters_decoder = msgspec.json.Decoder(Filters)

PARAMETERS = (
    QueryParameter(name="filters", type=Filters, description="all filters as one JSON document", as_json=True),
    QueryParameter(name="kind", type=list[Kind], description="any of these kinds", repeated=True),
    QueryParameter(name="session_id", type=list[str], description="any of these sessions", repeated=True),
    QueryParameter(name="document_id", type=list[str], description="any of these documents", repeated=True),
    QueryParameter(name="speaker", type=list[str], description="any of these speakers", repeated=True),
    QueryParameter(name="tags_all", type=list[Label], description="all of these tags", repeated=True),
    QueryParameter(name="tags_any", type=list[Label], description="any of these tags", repeated=True),
    QueryParameter(name="created_after", type=Zoned, description="RFC 3339 with a zone; write + as %2B"),
    QueryParameter(name="created_before", type=Zoned, description="RFC 3339 with a zone; write + as %2B"),
    QueryParameter(name="cursor", type=str, description="`next_cursor` of the page before"),
    QueryParameter(name="limit", type=Limit, description=f"memories per page; {DEFAULT_LIMIT} if left out"),
)
"""What the query string of a listing may have, for the OpenAPI document."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """What a listing asks for."""

    filters: Filters
    cursor: str | None
    limit: int


def read_listing(query_string: bytes) -> Listing:
    """Parse the query string.

    Raises:
        InvalidInput: an unknown or twice given parameter, or a bad value; `loc` names the parameter.

    >>> read_listing(b"kind=message&kind=chunk&limit=5").filters.kind
    ['message', 'chunk']
    """
    given = collected(query_string, once=(*_ONE, "filters", "cursor", "limit"), often=_MANY)
    cursor, limit, document = given.pop("cursor", None), given.pop("limit", None), given.pop("filters", None)
    try:
        simple = msgspec.convert(given, Filters)
        check_storable(simple)
        size = DEFAULT_LIMIT if limit is None else msgspec.convert({"limit": limit}, _LimitField, strict=False).limit
    except msgspec.ValidationError as exc:
        raise invalid_input(exc) from exc
    filters = simple if document is None else _merged(_from_json(document), simple, tuple(given))
    return Listing(filters=filters, cursor=cursor or None, limit=size)


class _LimitField(msgspec.Struct):
    limit: Limit


def _from_json(document: str) -> Filters:
    try:
        return decode(document.encode(), _filters_decoder)
    except InvalidInput as exc:
        raise InvalidInput(str(exc), loc=("filters", *exc.loc)) from exc


def _merged(filters: Filters, simple: Filters, names: tuple[str, ...]) -> Filters:
    """Both ways at once are fine as long as no filter is given in both."""
    for name in names:
        if getattr(filters, name):
            raise InvalidInput(f"`{name}` is given twice", loc=(name,))
    return msgspec.structs.replace(filters, **{name: getattr(simple, name) for name in names})
