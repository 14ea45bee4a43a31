"""How a route describes itself to the OpenAPI document; it travels in the handler's `opt`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

OPERATION = "operation"
"""The key of a handler's `opt` under which its `Operation` is."""

JSON_TYPE = "application/json"


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryParameter:
    """A parameter of the query string.

    Attributes:
        name: as it stands in the URL.
        type: what it must be; for `as_json` what its JSON must be.
        description: for the reader.
        as_json: whether the value is a JSON document.
        repeated: whether it may be given several times.
    """

    name: str
    type: Any
    description: str
    as_json: bool = False
    repeated: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """One documented operation.

    Attributes:
        id: unique name, used by generated clients.
        tag: the group it is shown in.
        summary: one line.
        description: what the summary leaves out.
        request: type of the body; None for no body.
        response: type of the answer's body; None for none, `str` for text.
        status: of success.
        unchanged_status: of success where nothing had to be changed; None where there is no difference.
        errors: statuses of the problems that it answers, beyond those that all have.
        request_type: media type of the body.
        response_type: media type of the answer.
        example: a request body that works.
        answer: what it is answered with.
        query: parameters of the query string.
        is_open: whether it answers without the key.
        path: the documented path, where the handler serves others besides.
    """

    id: str
    tag: str
    summary: str
    description: str = ""
    request: Any = None
    response: Any = None
    status: int = 200
    unchanged_status: int | None = None
    errors: tuple[int, ...] = ()
    request_type: str = JSON_TYPE
    response_type: str = JSON_TYPE
    example: Any = None
    answer: Any = None
    query: tuple[QueryParameter, ...] = ()
    is_open: bool = False
    path: str | None = None

    @property
    def as_opt(self) -> Mapping[str, Operation]:
        """For a handler's `opt=`."""
        return {OPERATION: self}


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """An operation at its path."""

    method: str
    path: str
    operation: Operation = field(repr=False)
