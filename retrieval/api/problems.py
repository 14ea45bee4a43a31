"""Every error as RFC 9457 `application/problem+json`; the one table from errors to statuses."""

from __future__ import annotations

import errno
import logging
import re
import traceback
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, InternalServerException, MethodNotAllowedException, ValidationException
from litestar.openapi.datastructures import ResponseSpec
from litestar.plugins.problem_details import ProblemDetailsConfig, ProblemDetailsException, ProblemDetailsPlugin
from litestar.types import Scope
from msgspec import UNSET, Meta, Struct, UnsetType

from retrieval.api.tokens import token_in
from retrieval.error_messages import invalid_input
from retrieval.errors import (
    NO_SUCH_PATH,
    AllLegsFailed,
    Conflict,
    DatabaseUnreachable,
    EmbeddingFailed,
    InvalidInput,
    ModelFileError,
    NotFound,
    StoreError,
    StoreUnavailable,
    UnknownProfile,
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


class NotReady(StoreUnavailable):
    """A part of the server is not ready."""

    def __init__(self, parts: list[str]) -> None:
        loading = parts == ["namespaces"]  # which ends by itself
        super().__init__(f"Not ready: {', '.join(parts)}" + ("" if loading else "; `trivet doctor` says why"))
        self.faults = [ProblemField(loc=[part], msg="not ready") for part in parts]


STATUS_OF: Mapping[type[Exception], int] = {
    InvalidInput: 422,
    NotFound: 404,
    Conflict: 409,
    AllLegsFailed: 503,
    ModelFileError: 503,
    EmbeddingFailed: 503,
    StoreError: 503,
}
"""The status of each error whose message the caller may see; all others are a 500 without their message."""

_SHORTAGES = frozenset({errno.EAGAIN, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC})
"""The server's machine is short of disk space, open files, processes or memory."""

TITLES: Mapping[int, str] = {
    400: "Bad request",
    401: "A valid key is needed",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    413: "Body too large",
    415: "Unsupported media type",
    421: "Misdirected request",
    422: "Invalid input",
    429: "Too many requests",
    500: "Internal error",
    503: "Not available",
}

_ROUTER_DETAILS: Mapping[int, str] = {
    404: NO_SUCH_PATH,
    405: "This path does not take this method; the header Allow names those that it takes",
    413: "The body is longer than the server takes; add large amounts in several batches or by the bulk path",
}
"""Details of errors that the router itself raises."""


def type_of(status: int) -> str:
    """The problem type of a status: a link into the API pages."""
    return "/docs#" + TITLES[status].lower().replace(" ", "-")


def problem(
    status: int, detail: str, errors: Sequence[ProblemField] | None = None, headers: Mapping[str, str] | None = None
) -> ProblemDetailsException:
    """A problem with the table's title and type; long details are cut."""
    return ProblemDetailsException(
        status_code=status,
        type_=type_of(status),
        title=TITLES[status],
        detail=shorten(detail),
        extra=None if errors is None else {"errors": list(errors)},
        headers=None if headers is None else dict(headers),
    )


def allow(methods: Collection[str]) -> str:
    """The header `Allow` of a path with handlers of some methods; HEAD is answered wherever GET is."""
    return ", ".join(sorted({*methods, "HEAD"} if "GET" in methods else methods))


def problems(*statuses: int) -> dict[int, ResponseSpec]:
    """The problems specific to an operation, for the OpenAPI document."""
    return {status: ResponseSpec(None, description=TITLES[status]) for status in statuses}


def shorten(text: str) -> str:
    """At most `MAX_DETAIL_CHARS` of the text, in characters that JSON can carry."""
    text = text if len(text) <= MAX_DETAIL_CHARS else text[: MAX_DETAIL_CHARS - 1] + "…"
    return text.encode("utf-8", "replace").decode()


def faults_of(error: InvalidInput) -> list[ProblemField]:
    """The faults that an error names."""
    if error.errors:
        return [ProblemField(loc=list(loc), msg=reason) for loc, reason in error.errors]
    loc = [shorten(part) if isinstance(part, str) else part for part in error.loc]
    return [ProblemField(loc=loc, msg=shorten(str(error)))]


def describe(error: Exception) -> ProblemDetailsException:
    """The problem that the caller sees for an error; it reveals nothing about an unexpected one.

    The router raises InternalServerException if the client disconnects while sending its body.
    """
    if isinstance(error, InternalServerException):
        return problem(400, "The connection closed before the body was complete")
    if isinstance(error, HTTPException) and error.status_code in TITLES:
        detail = _ROUTER_DETAILS.get(error.status_code, error.detail)
        headers = error.headers
        if isinstance(error, MethodNotAllowedException) and headers:
            headers = {"allow": allow(headers["allow"].split(", "))}
        return problem(error.status_code, detail, headers=headers)
    if isinstance(error, OSError) and error.errno in _SHORTAGES:
        return problem(503, f"The server's machine is short of something: {error.strerror}")  # without the file's name
    if isinstance(error, DatabaseUnreachable):
        return problem(503, "The database cannot be reached; try again later. The log says why.")
    status = next((STATUS_OF[kind] for kind in type(error).__mro__ if kind in STATUS_OF), 500)
    if isinstance(error, NotReady):
        return problem(status, str(error), error.faults)
    if isinstance(error, InvalidInput):
        faults = faults_of(error)
        told = [": ".join(filter(None, (".".join(map(str, fault.loc)), fault.msg))) for fault in faults[:3]]
        return problem(status, "; ".join(told), faults)
    if status == 500:
        return problem(500, "An unexpected error happened; the server's log has it under the request's id.")
    return problem(status, str(error))


_MISSING = re.compile(r"Missing required \w+ parameter '(\w+)'")


def bad_parameter(request: Request[Any, Any, Any], error: ValidationException) -> Response[dict[str, Any]]:
    """The problem for an invalid parameter."""
    fault: Exception = error
    if isinstance(error.__cause__, msgspec.ValidationError):
        fault = invalid_input(error.__cause__, request.route_handler.signature_model)
    elif missing := _MISSING.match(error.detail):
        fault = InvalidInput("is required", loc=(missing[1],))
    return describe(fault).to_response(request)


def unknown_profile(request: Request[Any, Any, Any], error: UnknownProfile) -> Response[dict[str, Any]]:
    """The problem of an unknown profile; the known ones are listed only for the server's key."""
    is_told = token_in(request.scope) is None
    told = error if is_told else InvalidInput(f"there is no profile {error.name!r}", loc=error.loc)
    return describe(told).to_response(request)


PROBLEMS = ProblemDetailsPlugin(ProblemDetailsConfig(exception_to_problem_detail_map={Exception: describe}))


def logging_failures(settings: Settings) -> Callable[[Exception, Scope], Awaitable[None]]:
    """A hook that logs exceptions that are the server's fault."""

    async def log(error: Exception, scope: Scope) -> None:
        if describe(error).status_code >= 500 and not isinstance(error, NotReady):  # not a failure
            log_failure(error, scope["state"].get("request_id", "-"), settings.secrets)

    return log


def log_failure(error: Exception, request_id: str, secrets: Sequence[str]) -> None:
    """Log an error with its traceback; for a 503 only its type and message."""
    status = describe(error).status_code
    known = f"{type(error).__name__}: {error}"
    text = known if status == 503 else "".join(traceback.format_exception(error))
    for secret in secrets:
        text = text.replace(secret, "***")
    logger.error("request %s failed with %d: %s", request_id, status, text)
