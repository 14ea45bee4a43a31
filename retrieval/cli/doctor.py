"""`trivet doctor`."""

from __future__ import annotations

import asyncio
from functools import partial

import click

from retrieval.cli.options import example, json_option, settings_options
from retrieval.cli.output import console, print_json, printable, say
from retrieval.doctor import examine
from retrieval.index.comparison import check_files
from retrieval.settings import Settings


@click.command(epilog=example("trivet doctor --database-url postgresql://trivet@db.example/trivet"))
@settings_options
@click.option(
    "--indexes",
    is_flag=True,
    help="Also compare index files with the tables, which takes about 20 s for 100,000 memories.",
)
@json_option
def command(settings: Settings, indexes: bool, as_json: bool) -> None:
    """Check that everything Trivet needs is there; exit status 1 if something is not."""
    checks = [partial(check_files, cache=settings.index_dir)] if indexes else []
    findings = asyncio.run(examine(settings, *checks))
    if as_json:
        print_json(findings)
    else:
        to = console()
        for finding in findings:
            sign, style = ("ok  ", "green") if finding.ok else ("FAIL", "red")
            say(to, f"{sign} {finding.name}: {printable(finding.detail)}", style)
    if not all(finding.ok for finding in findings):
        raise click.exceptions.Exit(1)
