"""`trivet reembed`."""

from __future__ import annotations

import click

from retrieval.cli.engine import with_engine
from retrieval.cli.options import common_options, example, namespace_option
from retrieval.cli.output import print_json, progress
from retrieval.engine import Trivet
from retrieval.plurals import counted
from retrieval.settings import Settings
from retrieval.types.namespace import EmbedderName, NamespaceInfo


@click.command(epilog=example("trivet reembed -n mei --embedder multilingual-e5-small"))
@click.option("--embedder", metavar="NAME", help="The embedder to use from now on.  [default: the namespace's]")
@namespace_option
@common_options
def command(embedder: EmbedderName | None, namespace: str, settings: Settings, as_json: bool) -> None:
    """Give all memories of a namespace new vectors.

    The namespace can be searched and written to meanwhile; at the end the new vectors replace the old ones all at
    once. If it is interrupted, run it again: it continues where it stopped.
    """

    async def reembed(engine: Trivet) -> NamespaceInfo:
        with progress("reembed", (await engine.get_namespace(namespace)).memories) as advance:
            shown = 0

            def report(done: int, _total: int) -> None:
                nonlocal shown
                advance(done - shown)
                shown = done

            await engine.reembedding.run(namespace, embedder, report=report)
        return await engine.get_namespace(namespace)

    info = with_engine(settings, reembed)
    if as_json:
        print_json({"namespace": info.name, "embedder": info.settings.embedder, "memories": info.memories})
    else:
        have = counted(info.memories, f"memory of {info.name!r} has", f"memories of {info.name!r} have")
        click.echo(f"{have} new vectors by {info.settings.embedder}")
