"""The command line. Commands are imported when called, so that `trivet --help` is fast."""

from __future__ import annotations

import click

from retrieval.cli.group import TrivetGroup


def _show_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted:
        from retrieval.installation import installed_version

        click.echo(f"trivet {installed_version()}")
        ctx.exit()


main = TrivetGroup(
    name="trivet",
    help="Retrieval for assistants and chat memory: vector, BM25 and entity graph, weighted by the query's intent.",
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_version,
            help="Show the version and exit.",
        )
    ],
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    epilog="Settings come from TRIVET_* variables; TRIVET_LOG_LEVEL=debug shows the traceback of a failure.",
)
