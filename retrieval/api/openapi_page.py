"""The API pages at `/docs`: the OpenAPI document as one HTML page that loads nothing, not even a script."""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections.abc import Callable, Mapping
from functools import partial
from html import escape
from importlib import resources
from string import Template
from typing import Any

import msgspec

from retrieval.api.parameters import JSON_TYPE
from retrieval.api.problems import STATUS_OF, TITLES, type_of

_TEMPLATE = resources.files(__package__).joinpath("docs.html").read_text()
_STYLE = re.search("<style>(.*)</style>", _TEMPLATE, re.DOTALL)[1]  # type: ignore[index]
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

PAGE_HEADERS = {
    "content-security-policy": f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; img-src data:",
    "x-content-type-options": "nosniff",
}
EXAMPLE_NAMES = {
    "ns": "caroline",
    "memory_id": "m1",
    "document_id": "handbook",
    "entity_id": "a6191d0210204da3",
    "merge_id": "0199f0a0-7c00-7000-8000-000000000000",
    "name": "default",
}
"""Names in the paths of the examples."""

_BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {}",
    "maxItems": "at most {} entries",
}

EXAMPLE_QUERIES = {
    "delete_namespace": "?confirm=caroline",
    "list_paths": f"?source={EXAMPLE_NAMES['entity_id']}&target=0a47b07992bc3610",
}


def page(document: Mapping[str, Any]) -> bytes:
    """The page: every operation with its parameters, its fields and a working command, then all types."""
    sections, contents = [], []
    for tag in document["tags"]:
        sections.append(f'<h2 id="{tag["name"]}">{escape(tag["name"])}</h2><p>{_prose(tag["description"])}</p>')
        contents.append(f'<li><a href="#{tag["name"]}">{escape(tag["name"].capitalize())}</a><ul>')
        for path, item in document["paths"].items():
            for method, operation in item.items():
                if tag["name"] in operation["tags"]:
                    sections.append(_section(document, method.upper(), path, operation))
                    contents.append(f'<li><a href="#{operation["operationId"]}">{escape(operation["summary"])}</a>')
        contents.append("</ul>")
    causes = {status: [kind.__doc__ or "" for kind in STATUS_OF if STATUS_OF[kind] == status] for status in TITLES}
    problems = (
        f'<tr id="{type_of(status).removeprefix("/docs#")}"><td>{status}<td>{title}<td>{" ".join(causes[status])}'
        for status, title in TITLES.items()
    )
    return (
        Template(_TEMPLATE)
        .substitute(
            version=escape(document["info"]["version"]),
            about=_prose(document["info"]["description"]),
            contents="".join(contents),
            sections="".join(sections),
            types="".join(_type(name, schema) for name, schema in document["components"]["schemas"].items()),
            problems="".join(problems),
        )
        .encode()
    )


def _section(document: Mapping[str, Any], method: str, path: str, operation: Mapping[str, Any]) -> str:
    parameters = "".join(_parameter(one) for one in operation.get("parameters", ()))
    table = _table("Parameters", "<th>In", parameters) if parameters else ""
    bodies = operation.get("requestBody", {}).get("content", {}).values()
    answer = next(iter(operation["responses"].values())).get("content", {}).values()
    types = [("Body", body["schema"]) for body in bodies] + [("Answer", body["schema"]) for body in answer]
    mentioned = "".join(f"<p>{title}: {_kind(schema)}.</p>" for title, schema in types)
    return (
        f'<section id="{operation["operationId"]}"><h3><span>{method}</span> <code>{escape(path)}</code></h3>'
        f"<p><b>{escape(operation['summary'])}.</b> {_prose(operation['description'])}</p>"
        f'{table}{mentioned}<pre tabindex="0">{escape(_curl(document, method, path, operation))}</pre></section>'
    )


def _parameter(parameter: Mapping[str, Any]) -> str:
    is_required, text = parameter.get("required", False), parameter.get("description", "")
    return _row(parameter["name"], f"<td>{parameter['in']}", schema_of(parameter), text, is_required=is_required)


def schema_of(parameter: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a parameter; one that is a JSON document has it below its media type."""
    schema: Mapping[str, Any] = parameter.get("schema") or parameter["content"][JSON_TYPE]["schema"]
    return schema


def _type(name: str, schema: Mapping[str, Any]) -> str:
    """A type with all its fields."""
    required = schema.get("required", ())
    fields = "".join(
        _row(field, "", one, description_of(one), is_required=field in required)
        for field, one in schema.get("properties", {}).items()
    )
    values = f"<p>One of {', '.join(map(_value, schema['enum']))}.</p>" if "enum" in schema else ""
    table = _table("Fields", "", fields) if fields else ""
    return (
        f'<section id="type-{name}"><h3><code>{name}</code></h3>'
        f"<p>{_prose(schema.get('description', ''))}</p>{values}{table}</section>"
    )


def _table(title: str, head: str, rows: str) -> str:
    return (
        f'<div role="region" aria-label="{title}" tabindex="0"><table><thead><tr><th>{title}{head}<th>Type<th>Default'
        f"<th>Meaning</thead><tbody>{rows}</tbody></table></div>"
    )


def _row(name: str, place: str, schema: Mapping[str, Any], text: str, *, is_required: bool) -> str:
    default = "required" if is_required else _value(schema["default"]) if "default" in schema else ""
    return (
        f"<tr><th scope=row><code>{escape(name)}</code>{place}<td>{_kind(schema)}"
        f"<td>{default}<td>{_prose(meaning(text, schema))}"
    )


def description_of(schema: Mapping[str, Any]) -> str:
    """The description in a field's schema, at its top or in an alternative; empty if there is none."""
    told = (one.get("description") for one in (schema, *schema.get("anyOf", ())))
    text: str = next(filter(None, told), "")
    return text


def _kind(schema: Mapping[str, Any]) -> str:
    return kind_of(schema, lambda name: f'<a href="#type-{name}"><code>{name}</code></a>', _value)


def kind_of(schema: Mapping[str, Any], link: Callable[[str], str], show: Callable[[Any], str]) -> str:
    """The type of a value in words; `link` renders the name of a type, `show` a value."""
    kind = partial(kind_of, link=link, show=show)
    if "$ref" in schema:
        return link(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(kind, schema["anyOf"])))
    if "enum" in schema:
        return ", ".join(map(show, schema["enum"]))
    if schema.get("type") == "array":
        items = schema.get("prefixItems") or [schema.get("items", {})]  # a tuple has the former
        return f"list of {', '.join(dict.fromkeys(map(kind, items)))}"
    if isinstance(values := schema.get("additionalProperties"), Mapping) and values:
        return f"object of {kind(values)}"
    return "time" if schema.get("format") == "date-time" else str(schema.get("type", "any"))


def meaning(text: str, schema: Mapping[str, Any]) -> str:
    """A field's description and its bounds, also those of the alternative to null, as sentences."""
    bounds = [
        words.format(f"{one[key]:,.12g}")  # Litestar has made floats of some
        for one in (schema, *schema.get("anyOf", ()))
        for key, words in _BOUNDS.items()
        if key in one and (key, one[key]) != ("minLength", 1)
    ]
    return " ".join(map(sentence, filter(None, (text, ", ".join(bounds)))))


def sentence(text: str) -> str:
    """With a capital at its beginning and a full stop at its end."""
    return f"{text[0].upper()}{text[1:]}".rstrip(".") + "."


def _value(value: Any) -> str:
    return f"<code>{escape(msgspec.json.encode(value).decode())}</code>"


def _curl(document: Mapping[str, Any], method: str, path: str, operation: Mapping[str, Any]) -> str:
    """A command that works on a server with the examples' memories."""
    url = document["servers"][0]["url"] + path
    for name, value in EXAMPLE_NAMES.items():
        url = url.replace(f"{{{name}}}", value)
    url += EXAMPLE_QUERIES.get(operation["operationId"], "")
    parts = ["curl -s" if method == "GET" else f"curl -s -X {method}", shlex.quote(url)]
    if operation.get("security"):
        parts.append('-H "Authorization: Bearer $TRIVET_API_KEY"')
    for media_type, body in operation.get("requestBody", {}).get("content", {}).items():
        parts.append(f"-H 'Content-Type: {media_type}'")
        is_json = media_type == JSON_TYPE
        example = msgspec.json.encode(body["example"]).decode() if is_json else body["example"]
        parts.append(f"{'-d' if is_json else '--data-binary'} {shlex.quote(example)}")
    return " \\\n  ".join(parts)


def _prose(text: str) -> str:
    """Escaped text; what is between backticks becomes code."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{piece}</code>" if at % 2 else piece for at, piece in enumerate(pieces))
