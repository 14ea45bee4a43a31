"""Every error as RFC 9457 `application/problem+json`; the one table from errors to statuses."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, InternalServerException
from msgspec import UNSET, Meta, Struct, UnsetType

from retrieval.errors import (
    AllLegsFailed,
    Conflict,
    EmbeddedPostgresError,
    InvalidInput,
    MigrationError,
    NotFound,
    StoreUnavailable,
)
from retrieval.settings import Settings

logger = logging.getLogger(__name__)

PROBLEM_TYPE = "application/problem+json"
MAX_DETAIL_CHARS = 500


class ProblemField(Struct, frozen=True, kw_only=True):
    """One fault of a request: where it is and what is wrong there."""

    loc: Annotated[list[str | int], Meta(description="path to the field; empty for the whole body")]
    msg: str


class Problem(Struct, frozen=True, kw_only=True):
    """Why a request was not fulfilled (RFC 9457)."""

    type: Annotated[str, Meta(description="a URI reference that identifies the kind of problem")]
    title: str
    status: int
    detail: str
    errors: list[ProblemField] | UnsetType = UNSET


class BatchRejected(InvalidInput):
    """Every memory of the batch was rejected."""

    def __init__(self, faults: Sequence[ProblemField]) -> None:
        super().__init__()
        self.faults = list(faults)


class NotReady(StoreUnavailable):
    """A part of the server is not ready."""

    def __init__(self, parts: Iterable[str]) -> None:
        self.parts = list(parts)
        super().__init__(f"Not ready: {', '.join(self.parts)}")


STATUS_OF: Mapping[type[Exception], int] = {
    InvalidInput: 422,
    NotFound: 404,
    Conflict: 409,
    AllLegsFailed: 503,
    StoreUnavailable: 503,
    MigrationError: 503,
    EmbeddedPostgresError: 503,
}
"""The status of each error that may be told to the caller; all others are 500 without their message."""

TITLES: Mapping[int, str] = {
    400: "Bad request",
    401: "A valid key is needed",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    413: "Body too large",
    415: "Unsupported media type",
    422: "Invalid input",
    500: "Internal error",
    503: "Not available",
}

_ROUTER_DETAILS: Mapping[int, str] = {
    404: "Nothing is at this path",
    405: "This path does not take this method; the header Allow names those that it takes",
    413: "The body is longer than the server takes; add large amounts in several batches or by the bulk path",
}
"""What to say of the errors that the router raises by itself."""


def type_of(status: int) -> str:
    """The problem type of a status: a link into the API pages."""
    return "/docs#" + title_of(status).lower().replace(" ", "-")


def title_of(status: int) -> str:
    """What a status is called."""
    return TITLES.get(status) or HTTPStatus(status).phrase


def problem(status: int, detail: str, errors: Sequence[ProblemField] | None = None) -> Problem:
    """A problem of the table's title and type; long details are cut."""
    return Problem(
        type=type_of(status),
        title=title_of(status),
        status=status,
        detail=shorten(detail),
        errors=UNSET if errors is None else list(errors),
    )


def shorten(text: str) -> str:
    """At most `MAX_DETAIL_CHARS` of the text, in characters that JSON can carry."""
    text = text if len(text) <= MAX_DETAIL_CHARS else text[: MAX_DETAIL_CHARS - 1] + "…"
    return text.encode("utf-8", "replace").decode()


def faults_of(error: InvalidInput) -> list[ProblemField]:
    """The faults that an error names."""
    if isinstance(error, BatchRejected):
        return error.faults
    loc = [shorten(part) if isinstance(part, str) else part for part in error.loc]
    return [ProblemField(loc=loc, msg=shorten(str(error)))]


def _in_words(fault: ProblemField) -> str:
    where = ".".join(str(part) for part in fault.loc)
    return f"{where}: {fault.msg}" if where else fault.msg


def status_of(error: Exception) -> int:
    """The status of the nearest class in the table; 500 for an error that is not there."""
    return next((STATUS_OF[kind] for kind in type(error).__mro__ if kind in STATUS_OF), 500)


def describe(error: Exception) -> Problem:
    """What the caller is told of an error. Nothing of an unexpected one.

    The router's own InternalServerException says that the client went away while it sent its body.
    """
    if isinstance(error, InternalServerException):
        return problem(400, "The body ended before its end")
    if isinstance(error, HTTPException):
        return problem(error.status_code, _ROUTER_DETAILS.get(error.status_code, error.detail))
    status = status_of(error)
    if isinstance(error, NotReady):
        return problem(status, str(error), [ProblemField(loc=[part], msg="not ready") for part in error.parts])
    if isinstance(error, InvalidInput):
        faults = faults_of(error)
        return problem(status, "; ".join(_in_words(fault) for fault in faults[:3]), faults)
    if status == 500:
        return problem(500, "An unexpected error happened; the server's log has it under the request's id.")
    return problem(status, str(error))


def problem_response(found: Problem, headers: Mapping[str, str] | None = None) -> Response[bytes]:
    """The problem as a response."""
    return Response(
        msgspec.json.encode(found),
        status_code=found.status,
        media_type=PROBLEM_TYPE,
        headers=dict(headers) if headers else None,
    )


def secrets_of(settings: Settings) -> tuple[str, ...]:
    """What must never reach a log: the key, the database URL and its password, raw and decoded."""
    password = urlsplit(settings.database_url).password if not settings.uses_embedded else None
    url = None if settings.uses_embedded else settings.database_url
    found = {settings.api_key, url, password, unquote(password) if password else None}
    return tuple(sorted((secret for secret in found if secret), key=len, reverse=True))


def exception_handler(settings: Settings) -> Callable[[Request[Any, Any, Any], Exception], Response[bytes]]:
    """The handler of every exception of an application; unexpected ones are logged with their traceback."""
    secrets = secrets_of(settings)

    def handle(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
        found = describe(error)
        if found.status >= 500:
            log_failure(error, found.status, request.scope.get("state", {}).get("request_id", "-"), secrets)
        return problem_response(found, getattr(error, "headers", None))

    return handle


def log_failure(error: BaseException, status: int, request_id: str, secrets: Sequence[str]) -> None:
    """Log an error with its traceback, and with the cause alone where the table knows it."""
    known = f"{type(error).__name__}: {error}"
    text = known if status == 503 else "".join(traceback.format_exception(error))
    for secret in secrets:
        text = text.replace(secret, "***")
    logger.error("request %s failed with %d: %s", request_id, status, text)
