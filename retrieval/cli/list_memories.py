"""`trivet list`."""

from __future__ import annotations

from typing import Any

import click

from retrieval.cli.engine import with_engine
from retrieval.cli.inputs import convert, filter_options
from retrieval.cli.options import common_options, example, namespace_option
from retrieval.cli.output import console, print_json, say, say_memory
from retrieval.settings import Settings
from retrieval.types.search import Filters


@click.command(epilog=example("trivet list -n alice --speaker Caroline --after 2023-05-01T00:00:00Z --limit 20"))
@filter_options
@click.option("--limit", type=click.IntRange(1, 1_000), default=100, help="Maximum number of memories.")
@click.option("--cursor", help="Where the previous page ended.")
@namespace_option
@common_options
def command(
    filters: dict[str, Any], limit: int, cursor: str | None, namespace: str, settings: Settings, as_json: bool
) -> None:
    """Show the memories that match the filters, in order of insertion, a page at a time.

    Expired memories are left out, though `trivet namespaces` counts them.
    """
    wanted = convert(filters, Filters)
    page = with_engine(settings, lambda engine: engine.list(namespace, wanted, cursor=cursor, limit=limit))
    if as_json:
        print_json(page)
        return
    to = console()
    for memory in page.memories:
        say_memory(to, memory)
    if not page.memories:
        say(to, "nothing found")
    if page.next_cursor is not None:
        say(to, f"there are more: --cursor {page.next_cursor}", "yellow")
