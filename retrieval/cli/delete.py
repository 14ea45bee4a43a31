"""`trivet delete`."""

from __future__ import annotations

from typing import Any

import click

from retrieval.cli.engine import with_engine
from retrieval.cli.group import message_of
from retrieval.cli.inputs import convert, filter_options
from retrieval.cli.options import common_options, example, namespace_option
from retrieval.cli.output import confirm, print_json
from retrieval.engine import Trivet
from retrieval.errors import InvalidInput, NotFound
from retrieval.settings import Settings
from retrieval.types.search import Filters


@click.command(epilog=example("trivet delete -n alice m1 m2", "trivet delete -n alice --session s1 --yes"))
@click.argument("ids", metavar="[ID]...", nargs=-1)
@filter_options
@click.option("--all", "everything", is_flag=True, help="The whole namespace, including its settings and logs.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask before many are deleted.")
@namespace_option
@common_options
def command(
    ids: tuple[str, ...],
    filters: dict[str, Any],
    everything: bool,
    yes: bool,
    namespace: str,
    settings: Settings,
    as_json: bool,
) -> None:
    """Delete the memories with these IDs, all that match the filters, or the namespace. This cannot be undone."""
    if [bool(ids), bool(filters), everything].count(True) != 1:
        raise click.UsageError("Give ids, or filters, or --all.")
    wanted = convert(filters, Filters)
    if not ids and not yes:
        what = f"namespace {namespace!r}" if everything else f"all memories of {namespace!r} that meet the filters"
        confirm(f"Delete {what}?")

    failures: list[str] = []

    async def delete(engine: Trivet) -> int:
        if everything:
            return (await engine.delete_namespace(namespace)).deleted["memories"]
        if not ids:
            return await engine.delete_many(namespace, filters=wanted)
        for memory_id in ids:
            try:
                await engine.delete(namespace, memory_id)
            except (InvalidInput, NotFound) as exc:  # the others are deleted all the same
                failures.append(message_of(exc))
        return len(ids) - len(failures)

    deleted = with_engine(settings, delete)
    if as_json:
        print_json({"deleted": deleted})
    else:
        click.echo(f"{deleted} deleted")
    if failures:
        raise click.ClickException("; ".join(dict.fromkeys(failures)))
