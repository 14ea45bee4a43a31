"""The OpenAPI document and the API pages: what Litestar derives from the handlers, and the rest."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import cache
from importlib import resources
from inspect import cleandoc
from typing import Any

import msgspec
from litestar import MediaType, Request, Router
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import OpenAPIRenderPlugin
from litestar.openapi.spec import Components, License, OpenAPIHeader, Schema, SecurityScheme, Server, Tag
from litestar.plugins import OpenAPISchemaPlugin
from litestar.typing import FieldDefinition

from retrieval.api.bulk import BulkResult
from retrieval.api.entities import GRAPHML_TYPE
from retrieval.api.middleware import is_open
from retrieval.api.openapi_page import EXAMPLE_NAMES, PAGE_HEADERS, description_of
from retrieval.api.parameters import JSON_TYPE, NDJSON_TYPE, AddRequest, Batch
from retrieval.api.problems import PROBLEM_TYPE, TITLES, Problem, type_of
from retrieval.api.tokens import READS
from retrieval.installation import installed_version
from retrieval.types.memory import MemoryInput
from retrieval.types.search import Filters

_TEXTS = msgspec.json.decode(resources.files(__package__).joinpath("openapi.json").read_bytes())
"""Descriptions of the API and of each tag, and examples: of filters, and by operation `request` and `response`."""

_FIELDS = msgspec.json.decode(resources.files(__package__).joinpath("fields.json").read_bytes())
"""Descriptions of fields: `own` by struct and name, before the struct's; `any` by name alone, where there is none."""

_REQUEST_ID = "X-Request-Id"
_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
_REF = "#/components/schemas/{name}"
_DOCS = {
    "operationId": "docs",
    "tags": ["server"],
    "description": "API pages\n\nThis page; it loads nothing from elsewhere.",
    "responses": {"200": {"description": "Done", "content": {"text/html": {"schema": {"type": "string"}}}}},
}
_SUCCESSES = {"200": "Done", "201": "Stored", "202": "Started", "204": "Done, without a body"}
_STREAMED: Mapping[str, tuple[type[msgspec.Struct] | None, type[msgspec.Struct]]] = {
    "bulk_add_memories": (MemoryInput, BulkResult),
    "export_namespace": (None, MemoryInput),
}
"""Operations with streams of JSON lines: the types of a line of the body and of the response."""


class StructSchemas(OpenAPISchemaPlugin):
    """Collects the structs that handlers read and write; msgspec makes their schemas."""

    def __init__(self) -> None:
        self.structs: set[type[msgspec.Struct]] = {Problem, Filters, BulkResult}

    def is_plugin_supported_field(self, field_definition: FieldDefinition) -> bool:
        """Whether it is a struct."""
        return field_definition.is_subclass_of(msgspec.Struct)

    def to_openapi_schema(self, field_definition: FieldDefinition, schema_creator: Any) -> Schema:
        """A component with the struct's name, which `complete` fills."""
        schema: Schema
        if field_definition.annotation is Batch:
            schema = schema_creator.for_field_definition(FieldDefinition.from_annotation(AddRequest))
            return schema
        self.structs.add(field_definition.annotation)
        schema = schema_creator.create_component_schema(field_definition, required=[], property_fields={})
        return schema


class CachedRenderer(OpenAPIRenderPlugin):
    """Serves content made at its first request: making it takes as long as the rest of the application."""

    def __init__(self, make: Callable[[], bytes], *, path: str, media_type: MediaType = MediaType.HTML) -> None:
        super().__init__(path=path, media_type=media_type)
        self.content = cache(make)

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        """The content."""
        return self.content()


def config(pages: Sequence[CachedRenderer], server_url: str, *, with_key: bool) -> OpenAPIConfig:
    """Litestar's configuration; `pages` are served below `/docs`, `with_key` tells whether a key is configured."""
    return OpenAPIConfig(
        title="Trivet",
        version=installed_version(),
        description=_TEXTS["description"],
        license=License(name="Apache-2.0", identifier="Apache-2.0"),
        servers=[Server(url=server_url)],
        tags=[Tag(name=name, description=text) for name, text in _TEXTS["tags"].items()],
        use_handler_docstrings=True,
        operation_id_creator=lambda handler, *_: handler.handler_name,
        components=Components(
            headers={
                _REQUEST_ID: OpenAPIHeader(
                    description="identifies this request in the server's log",
                    schema=Schema(type="string"),  # type: ignore[arg-type]
                )
            },
            security_schemes={"key": SecurityScheme(type="http", scheme="bearer")} if with_key else None,
        ),
        render_plugins=pages,
        openapi_router=Router(
            "/docs", route_handlers=[], include_in_schema=False, opt={READS: True}, response_headers=PAGE_HEADERS
        ),
    )


def complete(document: dict[str, Any], schemas: StructSchemas, *, with_key: bool, with_rate_limit: bool) -> None:
    """Add what Litestar does not know: the structs' schemas, examples, problems of all operations, the key."""
    document["paths"]["/docs"] = {"get": deepcopy(_DOCS)}
    for path, operation in ((path, one) for path, item in document["paths"].items() for one in item.values()):
        summary, _, text = operation["description"].partition("\n\n")
        operation |= {"summary": summary.removesuffix("."), "description": " ".join(text.split())}
        for parameter in operation.get("parameters", ()):
            parameter["schema"] |= parameter["schema"].pop("oneOf", [{}])[0]  # the other one is null: left out
            if parameter["name"] == "filters":
                del parameter["schema"]
                parameter.pop("allowReserved", None)  # which only a `schema` may have
                parameter["content"] = {JSON_TYPE: {"schema": _reference(Filters), "example": _TEXTS["filters"]}}
            if parameter["in"] == "path":
                parameter["example"] = EXAMPLE_NAMES[parameter["name"]]
        if kinds := _STREAMED.get(operation["operationId"]):
            if kinds[0] is not None:
                operation["requestBody"] = {"required": True, "content": _lines(kinds[0])}
            operation["responses"]["200"]["content"] = _lines(kinds[1])
        if operation["operationId"] == "get_graph":
            operation["responses"]["200"]["content"][GRAPHML_TYPE] = {"schema": {"type": "string"}}
        _add_examples(operation, _TEXTS["examples"].get(operation["operationId"], {}))
        _complete_responses(path, operation, with_key=with_key, with_rate_limit=with_rate_limit)
    _, components = msgspec.json.schema_components(schemas.structs, ref_template=_REF)
    _describe_fields(components)
    _allow_anything(components)
    document["components"]["schemas"] = dict(sorted(components.items()))  # msgspec's order differs between processes


def _describe_fields(components: Mapping[str, dict[str, Any]]) -> None:
    """Describe each field: by `fields.json` for its struct, else its type, its class's docstring, or for any struct."""
    for name, component in components.items():
        text, _, attributes = cleandoc(component.get("description", "")).partition("\n\nAttributes:\n")
        component["description"] = " ".join(text.split())
        told = {field: " ".join(words.split()) for field, words in _ATTRIBUTE.findall(attributes)}
        for field, schema in component.get("properties", {}).items():
            own = _FIELDS["own"].get(name, {}).get(field) or description_of(schema) or told.get(field)
            if text := own or _FIELDS["any"].get(field, ""):
                schema["description"] = text


def _allow_anything(schema: Any) -> None:
    """Say where a list or an object may hold anything: some generators of clients take one that does not say for empty.

    Some cannot read `items: false` either; the `maxItems` of a tuple says the same.
    """
    for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        _allow_anything(inner)
    if isinstance(schema, dict) and schema.get("type") == "array":
        schema["items"] = schema.get("items") or {}
    if isinstance(schema, dict) and schema.get("type") == "object" and "properties" not in schema:
        schema.setdefault("additionalProperties", True)


def _reference(kind: type[msgspec.Struct]) -> dict[str, str]:
    return {"$ref": _REF.format(name=kind.__name__)}


def _lines(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """A stream of lines is no JSON document: the schema of one line goes into the description."""
    return {NDJSON_TYPE: {"schema": {"type": "string", "description": f"one `{kind.__name__}` as JSON on each line"}}}


def _add_examples(operation: Mapping[str, Any], examples: Mapping[str, Any]) -> None:
    """`request` for the body, `response` for every success; for a stream, a list of its lines."""
    successes = [response for status, response in operation["responses"].items() if status < "400"]
    for key, parts in (("request", [operation.get("requestBody", {})]), ("response", successes)):
        for content in (part.get("content", {}) for part in parts if key in examples):
            if JSON_TYPE in content:
                content[JSON_TYPE]["example"] = examples[key]
            if NDJSON_TYPE in content:
                content[NDJSON_TYPE]["example"] = msgspec.json.Encoder().encode_lines(examples[key]).decode()


def _complete_responses(path: str, operation: dict[str, Any], *, with_key: bool, with_rate_limit: bool) -> None:
    responses, is_closed, is_of_api = operation["responses"], not is_open(path), path.startswith("/v1/")
    needs_key = with_key and is_closed
    refusals = {
        **dict.fromkeys((400, 422, 503), is_of_api),
        **dict.fromkeys((401, 403), needs_key),
        **dict.fromkeys((413, 415), "requestBody" in operation),
        429: with_rate_limit and is_closed,
        500: True,
    }
    for status in (status for status, may_be in refusals.items() if may_be):
        responses[str(status)] = {"description": TITLES[status]}
    for status, response in responses.items():
        response["headers"] = {_REQUEST_ID: {"$ref": f"#/components/headers/{_REQUEST_ID}"}}
        if status < "400":
            response["description"] = _SUCCESSES[status]  # Litestar's would promise a URL with a 201
        else:
            example = {"type": type_of(int(status)), "title": TITLES[int(status)], "status": int(status), "detail": "…"}
            if status == "422":
                example["errors"] = [{"loc": ["weights", "vector"], "msg": "must be a number of at least 0"}]
            response["content"] = {PROBLEM_TYPE: {"schema": _reference(Problem), "example": example}}
        if status == "400":  # malformed HTTP, such as an overlong line, never reaches the application
            response["content"]["text/plain"] = {"schema": {"type": "string"}}
    operation["responses"] = dict(sorted(responses.items(), key=lambda item: item[0] if item[0] >= "400" else ""))
    if needs_key:
        operation["security"] = [{"key": []}]
