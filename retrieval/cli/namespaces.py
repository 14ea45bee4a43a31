"""`trivet namespaces`."""

from __future__ import annotations

import click
from rich.table import Column, Table

from retrieval.cli.engine import with_engine
from retrieval.cli.options import common_options, example
from retrieval.cli.output import console, print_json, printable
from retrieval.settings import Settings


@click.command(epilog=example("trivet namespaces --json"))
@common_options
def command(settings: Settings, as_json: bool) -> None:
    """Show all namespaces with their counts (expired memories included), embedders and profiles."""
    found = with_engine(settings, lambda engine: engine.list_namespaces())
    if as_json:
        print_json({"namespaces": found})
        return
    name = Column("namespace", overflow="fold")
    table = Table(name, "memories", "entities", "relations", "embedder", "profile", "created", box=None)
    for each in found:
        counts = (f"{each.memories:,}", f"{each.entities:,}", f"{each.relations:,}")
        table.add_row(
            printable(each.name),
            *counts,
            each.settings.embedder,
            each.settings.profile or "default",
            f"{each.created_at:%Y-%m-%d}",
        )
    to = console()
    if not to.is_terminal:  # one line each, uncut
        to.width = 1_000
    to.print(table)
