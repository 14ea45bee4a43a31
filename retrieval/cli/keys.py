"""`trivet keys`."""

from __future__ import annotations

import secrets

import click

from retrieval.cli.options import example, json_option
from retrieval.cli.output import print_json
from retrieval.settings import variable_of

KEY_BYTES = 32


@click.command(epilog=example("trivet keys > trivet.key", "export TRIVET_API_KEY=$(trivet keys)"))
@json_option
def command(as_json: bool) -> None:
    """Print a new random API key.

    A server has one key, which its environment holds and which opens every namespace; nothing is stored here. Standard
    output gets the key alone, so that it can be assigned; how to use it is told on standard error.
    """
    key, variable = secrets.token_urlsafe(KEY_BYTES), variable_of("api_key")
    if as_json:
        print_json({"variable": variable, "key": key})
        return
    click.echo(key)
    click.echo(f"Start the server with {variable} set to it; callers send `Authorization: Bearer KEY`.", err=True)
