"""`trivet add`."""

from __future__ import annotations

import sys
from typing import Any

import click

from retrieval.cli.engine import with_engine
from retrieval.cli.inputs import KINDS, convert, metadata_option
from retrieval.cli.options import common_options, example, namespace_option
from retrieval.cli.output import print_json
from retrieval.errors import InvalidInput
from retrieval.settings import Settings
from retrieval.types.memory import MemoryInput, as_superseded


@click.command(
    epilog=example(
        'trivet add -n alice "Caroline: I went to the support group." --id m1 \\',
        "  --kind message --speaker Caroline --created-at 2023-05-08T13:56:00Z --tag chat",
    )
)
@click.argument("text", required=False)
@click.option("--id", help="The memory's id; the same id replaces it.  [default: a new one]")
@click.option("--kind", type=click.Choice(KINDS), help="[default: memory]")
@click.option("--title")
@click.option("--speaker", help="Who said it.")
@click.option("--session", "session_id", help="The conversation it belongs to.")
@click.option("--position", type=click.IntRange(0, 2_147_483_647), help="Its position in the session.")
@click.option("--document", "document_id", help="The document it is part of.")
@click.option("--created-at", help="When it happened, RFC 3339 with a zone.  [default: now]")
@click.option("--expires-at", help="When it stops being true.")
@click.option("--tag", "tags", multiple=True, help="A tag; repeatable.")
@metadata_option("A JSON object.")
@click.option("--entity", "entities", multiple=True, metavar="NAME[:TYPE]", help="An entity it mentions; repeatable.")
@click.option("--supersedes", multiple=True, help="Id of a memory that it replaces in answers; repeatable.")
@namespace_option
@common_options
def command(text: str | None, namespace: str, settings: Settings, as_json: bool, **fields: Any) -> None:
    """Add or replace one memory: TEXT, or standard input if TEXT is missing or "-"."""
    fields["text"] = _standard_input() if text in (None, "-") else text
    fields["entities"] = [_entity(entity) for entity in fields["entities"]]
    fields["supersedes"] = as_superseded(fields["supersedes"])
    memory = convert(fields, MemoryInput)
    (result,) = with_engine(settings, lambda engine: engine.add(namespace, [memory]))
    if as_json:
        print_json(result)
    elif result.status != "rejected":
        click.echo(f"{result.id} {result.status}")
    if result.warning:
        click.echo(result.warning, err=True)
    if result.status == "rejected":
        raise InvalidInput(result.error)


def _entity(text: str) -> dict[str, str]:
    """Name and type from `NAME:TYPE`; a colon before a blank belongs to the name."""
    name, colon, type_ = text.rpartition(":")
    return {"name": name, "type": type_} if colon and name and type_.strip() == type_ != "" else {"name": text}


def _standard_input() -> str:
    """All of standard input, without a byte-order mark and the last line end; raises UsageError for a terminal."""
    if sys.stdin is None or sys.stdin.isatty():
        raise click.UsageError("Give TEXT, or pipe it in.")
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as exc:
        raise InvalidInput(f"not UTF-8: {exc}", loc=("text",)) from exc
