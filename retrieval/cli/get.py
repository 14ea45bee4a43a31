"""`trivet get`."""

from __future__ import annotations

import click
import msgspec

from retrieval.cli.engine import with_engine
from retrieval.cli.options import common_options, example, namespace_option
from retrieval.cli.output import console, in_a_line, print_json, printable, say
from retrieval.settings import Settings


@click.command(epilog=example("trivet get -n alice m1"))
@click.argument("memory_id", metavar="ID")
@namespace_option
@common_options
def command(memory_id: str, namespace: str, settings: Settings, as_json: bool) -> None:
    """Show one memory, whether or not searches see it."""
    memory = with_engine(settings, lambda engine: engine.get(namespace, memory_id))
    if as_json:
        print_json(memory)
        return
    to = console()
    say(to, printable(memory.text))
    for name, value in msgspec.to_builtins(memory).items():
        if name != "text" and value not in (None, [], {}):
            shown = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            say(to, in_a_line(f"{name}: {shown}"), "dim")
