"""The API pages: the OpenAPI document as one HTML page that loads nothing from elsewhere."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from html import escape
from string import Template
from typing import Any

import msgspec

from retrieval.api.docs_style import STYLE
from retrieval.api.operation import JSON_TYPE
from retrieval.api.problems import STATUS_OF, TITLES, type_of

_PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title $version: API</title><style>$style</style></head><body>
<nav aria-label="Operations"><a class="brand" href="#top">$title <small>$version</small></a>$navigation
<a href="#problems">Problems</a><a href="/openapi.json">openapi.json</a></nav>
<main id="top"><h1>$title</h1><p>$about</p>$sections$problems</main></body></html>
""")
_OPERATION = Template("""<section class="operation" id="$id"><h3><span class="method $method">$method</span>
<code>$path</code></h3><p class="summary">$summary</p>$description$tables<h4>Try it</h4><pre>$curl</pre>$answer
<p class="statuses">$statuses</p></section>
""")


def render(document: Mapping[str, Any]) -> str:
    """The page of an OpenAPI document.

    Args:
        document: as `openapi.build` makes it; what is shown is escaped.
    """
    info = document["info"]
    return _PAGE.substitute(
        title=escape(info["title"]),
        version=escape(info["version"]),
        style=STYLE,
        about=_prose(info["description"]),
        navigation="".join(_navigation(document)),
        sections="".join(_sections(document)),
        problems=_problems(),
    )


def _operations(document: Mapping[str, Any], tag: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if tag in operation["tags"]:
                yield method.upper(), path, operation


def _navigation(document: Mapping[str, Any]) -> Iterator[str]:
    for tag in document["tags"]:
        yield f"<strong>{escape(tag['name'])}</strong>"
        for _, _, operation in _operations(document, tag["name"]):
            yield f'<a href="#{operation["operationId"]}">{escape(operation["summary"])}</a>'


def _sections(document: Mapping[str, Any]) -> Iterator[str]:
    for tag in document["tags"]:
        yield f"<h2>{escape(tag['name'])}</h2><p>{_prose(tag['description'])}</p>"
        for method, path, operation in _operations(document, tag["name"]):
            yield _operation(document, method, path, operation)


def _operation(document: Mapping[str, Any], method: str, path: str, operation: Mapping[str, Any]) -> str:
    description = operation.get("description")
    return _OPERATION.substitute(
        id=operation["operationId"],
        method=method,
        path=escape(path),
        summary=escape(operation["summary"]),
        description=f"<p>{_prose(description)}</p>" if description else "",
        tables="".join(_tables(document, operation)),
        curl=escape(_curl(document, method, path, operation)),
        answer="".join(_answer(operation)),
        statuses=" ".join(
            f'<a href="{type_of(int(status)).removeprefix("/docs")}">{status}</a>' if int(status) >= 400 else status
            for status in operation["responses"]
        ),
    )


def _tables(document: Mapping[str, Any], operation: Mapping[str, Any]) -> Iterator[str]:
    rows = [
        (one["name"], one["in"], _type(_schema_of(one)), one.get("description", ""))
        for one in operation.get("parameters", ())
    ]
    for body in operation.get("requestBody", {}).get("content", {}).values():
        schema = _resolved(document, body["schema"])
        for name, field in schema.get("properties", {}).items():
            notes = ["required"] if name in schema.get("required", ()) else []
            if field.get("default") not in (None, [], {}) and "$ref" not in field:
                notes.append(f"default {msgspec.json.encode(field['default']).decode()}")
            notes.append(_note(document, field))
            rows.append((name, "body", _type(field), "; ".join(note for note in notes if note)))
    if rows:
        cells = "".join(
            f"<tr><td><code>{escape(name)}</code><td>{place}<td>{escape(kind)}<td>{_prose(note)}"
            for name, place, kind, note in rows
        )
        yield f"<table><thead><tr><th>name<th>in<th>type<th>meaning</thead><tbody>{cells}</tbody></table>"


def _schema_of(parameter: Mapping[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = parameter.get("schema") or parameter["content"][JSON_TYPE]["schema"]
    return schema


def _resolved(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in schema:
        return schema
    found: Mapping[str, Any] = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found


def _type(schema: Mapping[str, Any]) -> str:
    """A short name of a schema's type.

    >>> _type({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]})
    'list of string or null'
    """
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(str(one) for one in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    bounds = [str(schema[key]) for key in ("minimum", "maximum") if key in schema]
    name = str(schema.get("format", schema.get("type", "any")))
    return f"{name} {' to '.join(bounds)}" if len(bounds) == 2 else name


def _note(document: Mapping[str, Any], field: Mapping[str, Any]) -> str:
    return str(_resolved(document, field).get("description", ""))


def _curl(document: Mapping[str, Any], method: str, path: str, operation: Mapping[str, Any]) -> str:
    """A command that works on a server with the examples' memories."""
    url = document["servers"][0]["url"] + path.replace("{ns}", "caroline").replace("{memory_id}", "m1")
    parts = ["curl -s" if method == "GET" else f"curl -s -X {method}", shlex.quote(url)]
    if operation.get("security"):
        parts.append('-H "Authorization: Bearer $TRIVET_API_KEY"')
    for media_type, body in operation.get("requestBody", {}).get("content", {}).items():
        example = body.get("example")
        text = example if isinstance(example, str) else _pretty(example)
        parts.append(f"-H 'Content-Type: {media_type}'")
        parts.append(f"{'-d' if media_type == JSON_TYPE else '--data-binary'} {shlex.quote(text)}")
    return " \\\n  ".join(parts)


def _answer(operation: Mapping[str, Any]) -> Iterator[str]:
    for status, response in operation["responses"].items():
        for body in response.get("content", {}).values():
            if int(status) < 400 and "example" in body:
                example = body["example"]
                text = example if isinstance(example, str) else _pretty(example)
                yield f"<h4>Answer {status}</h4><pre>{escape(text)}</pre>"


def _problems() -> str:
    causes: dict[int, list[str]] = {}
    for kind, status in STATUS_OF.items():
        causes.setdefault(status, []).append((kind.__doc__ or "").splitlines()[0])
    rows = "".join(
        f'<tr id="{type_of(status).removeprefix("/docs#")}"><td>{status}<td>{escape(title)}'
        f"<td>{escape(' '.join(causes.get(status, ())))}"
        for status, title in TITLES.items()
    )
    return (
        '<h2 id="problems">Problems</h2><p>Every error is <code>application/problem+json</code> with '
        "<code>type</code>, <code>title</code>, <code>status</code>, <code>detail</code>, and <code>errors</code> "
        f"where fields are at fault.</p><table><tbody>{rows}</tbody></table>"
    )


def _pretty(example: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(example), indent=2).decode()


def _prose(text: str) -> str:
    """Escaped text; what stands between backticks becomes code."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{piece}</code>" if at % 2 else piece for at, piece in enumerate(pieces))
