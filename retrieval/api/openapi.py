"""The OpenAPI 3.1 document, from the routes' own descriptions and the types they read and write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from litestar.handlers import HTTPRouteHandler

from retrieval.api.operation import JSON_TYPE, OPERATION, Endpoint, Operation
from retrieval.api.problems import PROBLEM_TYPE, TITLES, Problem, type_of
from retrieval.types import Memory, NamespaceInfo, SearchResult
from retrieval.version import installed_version

_ID = "X-Request-Id"
_REF = "#/components/schemas/{name}"
_TAGS = {
    "retrieval": "Search, context packs, classification.",
    "memories": "What is stored.",
    "namespaces": "The tenants: nothing crosses from one to another.",
    "profiles": "How rankings are fused: versions, which one is live, and what answers beside it unseen.",
    "journal": "What callers say of rankings, and, where a namespace's owner wants that kept, what was asked.",
    "server": "Health, version, metrics, these pages.",
}
_ABOUT = (
    "Retrieval for assistants and chat memory by three legs: vectors, BM25 and an entity graph, weighted by the "
    "query's intent. Unknown fields are refused. Times are RFC 3339 with a zone. Strings may not have a null byte "
    "or half a surrogate pair. Errors are `application/problem+json` (RFC 9457). Every answer bears an `X-Request-Id`."
)
_NAMESPACE = {"type": "string", "minLength": 1, "maxLength": 128}
_MEMORY_ID = {"type": "string", "minLength": 1, "maxLength": 256}
_PROFILE = {"type": "string", "minLength": 1, "maxLength": 100}


def endpoints(handlers: Iterable[HTTPRouteHandler]) -> list[Endpoint]:
    """The documented operations of the handlers, in their order."""
    found: list[Endpoint] = []
    for handler in handlers:
        operation: Operation = handler.opt[OPERATION]
        path = operation.path or min(handler.paths).replace(":str}", "}")
        found += [Endpoint(method=str(method), path=path, operation=operation) for method in handler.http_methods]
    return found


def build(found: Sequence[Endpoint], *, server_url: str, with_key: bool) -> dict[str, Any]:
    """The document.

    Args:
        found: the operations.
        server_url: where this server is.
        with_key: whether a bearer key is configured.
    """
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in found:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, with_key=with_key)
    components: dict[str, Any] = {
        "schemas": _schemas(found),
        "headers": {_ID: {"description": "names this request in the server's log", "schema": {"type": "string"}}},
    }
    if with_key:
        components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Trivet",
            "version": installed_version(),
            "description": _ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": server_url}],
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "paths": paths,
        "components": components,
    }


def _operation(endpoint: Endpoint, *, with_key: bool) -> dict[str, Any]:
    operation = endpoint.operation
    made: dict[str, Any] = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "responses": {str(operation.status): _success(operation)},
    }
    if operation.unchanged_status is not None:
        made["responses"][str(operation.unchanged_status)] = _success(operation)
    if operation.description:
        made["description"] = operation.description
    if parameters := _parameters(endpoint):
        made["parameters"] = parameters
    if operation.request is not None:
        made["requestBody"] = {
            "required": True,
            "content": {operation.request_type: _body(operation.request, operation.request_type, operation.example)},
        }
    for status in _problem_statuses(endpoint, with_key=with_key):
        made["responses"][str(status)] = _problem(status)
    if with_key and not operation.is_open:
        made["security"] = [{"key": []}]
    return made


def _problem_statuses(endpoint: Endpoint, *, with_key: bool) -> list[int]:
    operation = endpoint.operation
    statuses = {500, *operation.errors}
    if with_key and not operation.is_open:
        statuses.add(401)
    if operation.tag != "server":
        statuses |= {400, 503}
    if operation.request is not None:
        statuses |= {413, 415, 422}
    if "{" in endpoint.path or operation.query:
        statuses.add(422)
    return sorted(statuses)


def _success(operation: Operation) -> dict[str, Any]:
    made: dict[str, Any] = {"description": "Done", "headers": _headers()}
    if operation.response is not None:
        body = _body(operation.response, operation.response_type, operation.answer)
        made["content"] = {operation.response_type: body}
    return made


def _problem(status: int) -> dict[str, Any]:
    example = {"type": type_of(status), "title": TITLES[status], "status": status, "detail": "…"}
    if status == 422:
        example["errors"] = [{"loc": ["weights", "vector"], "msg": "Expected `float` >= 0.0"}]
    content: dict[str, Any] = {PROBLEM_TYPE: {"schema": _reference(Problem), "example": example}}
    if status == 400:
        # malformed HTTP, such as an overlong line, never reaches the application
        content["text/plain"] = {"schema": {"type": "string"}}
    return {"description": TITLES[status], "headers": _headers(), "content": content}


def _headers() -> dict[str, Any]:
    return {_ID: {"$ref": f"#/components/headers/{_ID}"}}


def _body(kind: Any, media_type: str, example: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"schema": {"type": "string"} if kind is str else _reference(kind)}
    if example is not None:
        made["example"] = example if media_type == JSON_TYPE else msgspec.json.encode(example).decode() + "\n"
    if media_type not in (JSON_TYPE, PROBLEM_TYPE) and kind is not str:
        # a stream of lines is no JSON document: the schema of one line goes into the description
        made["schema"] = {"type": "string", "description": f"one `{kind.__name__}` as JSON on each line"}
    return made


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for name, description, schema in (
        ("ns", "the namespace: 1 to 128 letters and digits of any script or any of `_ . : @ + -`", _NAMESPACE),
        ("memory_id", "the memory's id, percent-encoded", _MEMORY_ID),
        ("name", "the profile: 1 to 100 letters and digits of any script or any of `_ . : + -`", _PROFILE),
    ):
        if "{" + name + "}" in endpoint.path:
            made.append({"name": name, "in": "path", "required": True, "description": description, "schema": schema})
    for parameter in endpoint.operation.query:
        one: dict[str, Any] = {"name": parameter.name, "in": "query", "description": parameter.description}
        schema = _reference(parameter.type)
        if parameter.as_json:
            one["content"] = {JSON_TYPE: {"schema": schema}}
        else:
            one["schema"] = schema
            if parameter.repeated:
                one |= {"style": "form", "explode": True}
        made.append(one)
    return made


def _reference(kind: Any) -> dict[str, Any]:
    """The schema of a type; of a struct a reference to its component."""
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=_REF)
    return schema


def _schemas(found: Sequence[Endpoint]) -> dict[str, Any]:
    """The components that the operations refer to."""
    kinds: list[Any] = [Problem]
    for endpoint in found:
        operation = endpoint.operation
        kinds += [kind for kind in (operation.request, operation.response) if kind is not None and kind is not str]
        kinds += [parameter.type for parameter in operation.query]
    _, schemas = msgspec.json.schema_components(kinds, ref_template=_REF)
    for kind in (Memory, NamespaceInfo, SearchResult):
        schemas[kind.__name__]["properties"]["created_at"]["format"] = "date-time"
    return schemas
