"""Generate the reference pages from the code: `python -m docs.reference.generate`; `--check` only compares.

They are http.md from the OpenAPI document, python.md from the client, command-line.md from the commands, settings.md
from the settings' class and metrics.md from the server's metrics.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, get_type_hints

import click
import msgspec

import trivet
from retrieval.api.app import create_app
from retrieval.api.metrics import Metrics
from retrieval.api.openapi_page import description_of, kind_of, meaning, schema_of, sentence
from retrieval.cli import main as command_line
from retrieval.settings import Settings, variable_of

HERE = Path(__file__).parent
_DEPENDENT = {
    "data_dir": "`$XDG_DATA_HOME/trivet` or `~/.local/share/trivet`; for root `/var/lib/trivet`",
    "embedding_model": "the provider's",
    "embedding_url": "the provider's",
}
"""Defaults that depend on the machine or on other settings."""

Schema = Mapping[str, Any]


def http() -> Iterator[str]:
    """Every operation, then every object in requests and answers."""
    document = msgspec.json.decode(create_app(Settings()).state.api.openapi())
    yield "# HTTP API\n\n" + document["info"]["description"]
    yield (
        "A running server has the same as a page at `/docs` and as an OpenAPI document at `/openapi.json`. A parameter "
        "or a field of a request without a default is required."
    )
    for tag in document["tags"]:
        yield f"## {tag['name'].capitalize()}\n\n{tag['description']}"
        for path, item in document["paths"].items():
            for method, operation in item.items():
                if tag["name"] in operation["tags"]:
                    yield from _operation(method, path, operation)
    yield "## Objects\n\nWhat requests and answers consist of."
    for name, schema in document["components"]["schemas"].items():
        yield from _object(name, schema)


def _operation(method: str, path: str, operation: Schema) -> Iterator[str]:
    yield f"### {operation['summary']}\n\n`{method.upper()} {path}`\n\n{operation['description']}".rstrip()
    if parameters := operation.get("parameters"):
        rows = [
            (
                f"`{one['name']}`",
                one["in"],
                _kind(schema_of(one)),
                "" if one["required"] else _default(schema_of(one)),
                meaning(one["description"], schema_of(one)),
            )
            for one in parameters
        ]
        yield _table(("parameter", "in", "type", "default", "meaning"), rows)
    for media_type, body in operation.get("requestBody", {}).get("content", {}).items():
        yield f"Body (`{media_type}`): {_kind(body['schema'])}"
        if "example" in body and media_type == "application/json":
            yield f"```json\n{json.dumps(body['example'], ensure_ascii=False, indent=2)}\n```"
    answers = [
        (status, one["description"], " or ".join(_kind(body["schema"]) for body in one.get("content", {}).values()))
        for status, one in operation["responses"].items()
    ]
    yield _table(("status", "meaning", "body"), answers)


def _object(name: str, schema: Schema) -> Iterator[str]:
    yield f"### {name}\n\n{schema.get('description', '')}".rstrip()
    if "properties" not in schema:
        yield "One of " + ", ".join(f"`{value}`" for value in schema["enum"]) + "."
        return
    required = schema.get("required", ())
    rows = [
        (
            f"`{field}`",
            _kind(about),
            "" if field in required else _default(about),
            meaning(description_of(about), about),
        )
        for field, about in schema["properties"].items()
    ]
    if rows:
        yield _table(("field", "type", "default", "meaning"), rows)


def _default(schema: Schema) -> str:
    if "default" not in schema:
        return "left out"
    if isinstance(schema["default"], dict):
        return "`{}`"
    return f"`{json.dumps(schema['default'], ensure_ascii=False)}`"


def _kind(schema: Schema) -> str:
    return kind_of(schema, lambda name: f"[{name}](#{name.lower()})", lambda value: f"`{value}`")


def python() -> Iterator[str]:
    """The client's methods, its constructors, and the errors."""
    yield (
        "# Python client\n\n`import trivet`. `trivet.Client` and `trivet.AsyncClient` talk to a server; `trivet.open` "
        "and `trivet.aopen` run Trivet in your own process. All four have the methods below. Those of `AsyncClient` "
        "and `aopen` are awaited, and iterated over with `async for`.\n\nFields are named as in the [HTTP "
        "API](http.md), and answers are its [objects](http.md#objects)."
    )
    yield "## Make a client"
    for name, made in (("trivet.Client", trivet.Client), ("trivet.open", trivet.open), ("trivet.aopen", trivet.aopen)):
        yield from _described(name, made, returns=False)
    yield "## Methods"
    for name, method in vars(trivet.Client).items():
        if inspect.isfunction(method) and not name.startswith("_"):
            yield from _described(name, method)
    yield "## Merge rankings"
    yield from _described("trivet.weighted_rrf", trivet.weighted_rrf)
    yield "## See the terms of a text"
    yield from _described("trivet.terms", trivet.terms)
    yield "## Errors\n\nAll of them are `trivet.TrivetError`."
    kinds = [(name, kind) for name, kind in vars(trivet).items() if inspect.isclass(kind) and name in trivet.__all__]
    rows = [(f"`{name}`", _line(kind.__doc__)) for name, kind in kinds if issubclass(kind, trivet.TrivetError)]
    yield _table(("error", "raised when"), sorted(rows))


def _described(name: str, made: Callable[..., Any], *, returns: bool = True) -> Iterator[str]:
    yield f"### `{name}`"
    parameters = [
        str(one.replace(annotation=inspect.Parameter.empty) if one.name == "transport" else one)
        for one in inspect.signature(made).parameters.values()
        if one.name != "self"
    ]
    kinds = [one.kind for one in inspect.signature(made).parameters.values() if one.name != "self"]
    if inspect.Parameter.KEYWORD_ONLY in kinds:
        parameters.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    parameters = [re.sub(r": '([^']+)'", r": \1", one) for one in parameters]  # annotations are text
    end = f") -> {inspect.signature(made).return_annotation}" if returns else ")"
    yield "```text\n" + "\n".join([f"{name}(", *(f"    {one}," for one in parameters), end]) + "\n```"
    text = inspect.getdoc(made.__init__ if inspect.isclass(made) else made) or ""
    for paragraph in re.split(r"\n\n+", text):
        section, _, rest = paragraph.partition("\n")
        if section in ("Args:", "Returns:", "Raises:"):
            entries = [" ".join(entry.split()) for entry in re.split(r"\n(?=\S)", textwrap.dedent(rest))]
            named = (re.sub(r"^(\w+): ", r"`\1`: ", entry) for entry in entries)
            yield f"{section}\n\n" + "\n".join(f"- {entry}" for entry in named)
        else:
            yield " ".join(paragraph.split())


def commands() -> Iterator[str]:
    """Every command with its arguments and options."""
    yield (
        "# Command line\n\nEvery command has `--help`. Its exit status is 0 on success, 1 on failure, and 2 for "
        "wrong usage. The [settings](settings.md) say which database it uses."
    )
    for name in command_line.list_commands(click.Context(command_line)):
        command = command_line.get_command(click.Context(command_line), name)
        if command is not None:
            yield from _command(f"trivet {name}", command, "##")


def _command(name: str, command: click.Command, level: str) -> Iterator[str]:
    context = click.Context(command, info_name=name, **command_line.context_settings)
    yield f"{level} `{name}`\n\n{_escaped(_line(command.help))}"
    yield "```text\n" + " ".join([name, *command.collect_usage_pieces(context)]) + "\n```"
    records = [record for one in command.get_params(context) if (record := one.get_help_record(context))]
    rows = [(f"`{_line(option)}`", _escaped(_line(text))) for option, text in records if "--help" not in option]
    if rows:
        yield _table(("option", "meaning"), rows)
    if command.epilog:
        lines = [line.strip() for line in command.epilog.replace("\b", "").strip().splitlines()]
        yield "Example:\n\n```text\n" + "\n".join(line for line in lines if line != "Example:") + "\n```"
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            if (found := command.get_command(context, inner)) is not None:
                yield from _command(f"{name} {inner}", found, level + "#")


def settings() -> Iterator[str]:
    """Each setting's variable, meaning, values and default."""
    yield (
        "# Settings\n\nSettings are environment variables. The server and every command read them when they start. An "
        "invalid value is an error at startup; an unknown variable gives a warning."
    )
    text = inspect.getdoc(Settings) or ""
    said = dict(re.findall(r"^    (\w+): (.+)$", text, re.MULTILINE))
    hints = get_type_hints(Settings, include_extras=True)
    rows = [
        (f"`{variable_of(one.name)}`", sentence(said[one.name]), _values(hints[one.name]), _default_of(one))
        for one in fields(Settings)
    ]
    yield _table(("variable", "meaning", "values", "default"), rows)
    yield (
        "The embedding provider applies to new namespaces: each namespace has its embedder among its own "
        "[settings](http.md#namespacesettings). [Embeddings by a provider](../how-to/embed-by-a-provider.md) describes "
        "the providers' models and addresses.\n\n"
        "The standard `OTEL_*` variables [switch traces on](../how-to/operate.md#traces)."
    )


def _values(hint: Any) -> str:
    described = [one.description for one in getattr(hint, "__metadata__", ()) if one.description]
    return _escaped(described[0]) if described else ("a path" if hint is Path else "text")


def _default_of(one: Field[Any]) -> str:
    if one.name in _DEPENDENT:
        return _DEPENDENT[one.name]
    if one.default in (None, ""):
        return "none"
    return f"`{str(one.default).lower() if isinstance(one.default, bool) else one.default}`"


def metrics() -> Iterator[str]:
    """The metrics at `/metrics`."""
    yield (
        "# Metrics\n\n`GET /metrics` answers in Prometheus' text format. With several worker processes it sums "
        "them up and leaves out the metrics of a single process (`process_…`). If a key is configured, it is required."
    )
    registered = Metrics()
    families = re.findall(r"^# HELP (\S+) (.+)\n# TYPE \S+ (\S+)\n", registered.exposition().decode(), re.MULTILINE)
    rows = [(f"`{name}`", kind, _escaped(text)) for name, text, kind in families if not name.endswith("_created")]
    yield _table(("metric", "type", "meaning"), rows)
    yield "Names that end in `_seconds` are in seconds, names that end in `_bytes` in bytes."


def _line(text: str | None) -> str:
    return " ".join((text or "").replace("\b", "").split())


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines)


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "http.md": http,
    "python.md": python,
    "command-line.md": commands,
    "settings.md": settings,
    "metrics.md": metrics,
}


def text_of(name: str) -> str:
    """A page generated from the code."""
    return "\n\n".join(PAGES[name]()) + "\n"


def stale() -> list[str]:
    """The pages that differ from the generated ones."""
    return [name for name in PAGES if not (HERE / name).exists() or (HERE / name).read_text("utf-8") != text_of(name)]


if __name__ == "__main__":
    found = stale()
    if "--check" in sys.argv[1:]:
        sys.exit(f"not up to date: {', '.join(found)}; run python -m docs.reference.generate" if found else 0)
    for page in found:
        (HERE / page).write_text(text_of(page), encoding="utf-8")
        print(f"wrote docs/reference/{page}")
