"""`trivet history`."""

from __future__ import annotations

import click

from retrieval.cli.engine import with_engine
from retrieval.cli.options import common_options, example, namespace_option
from retrieval.cli.output import console, in_a_line, print_json, say, say_memory
from retrieval.settings import Settings
from retrieval.types.memory import superseded_ids


@click.command(epilog=example("trivet history -n alice m1"))
@click.argument("memory_id", metavar="ID")
@namespace_option
@common_options
def command(memory_id: str, namespace: str, settings: Settings, as_json: bool) -> None:
    """Show a memory with everything it superseded and everything that superseded it, oldest first."""
    history = with_engine(settings, lambda engine: engine.lifecycle.history(namespace, memory_id))
    if as_json:
        print_json(history)
        return
    to = console()
    for memory in history.memories:
        say_memory(to, memory)
        if memory.supersedes is not None:
            say(to, in_a_line(f"  supersedes {', '.join(superseded_ids(memory.supersedes))}"), "dim")
