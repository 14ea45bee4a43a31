"""`trivet classify`."""

from __future__ import annotations

import click

from retrieval.cli.engine import with_engine
from retrieval.cli.inputs import convert
from retrieval.cli.options import common_options, example
from retrieval.cli.output import numbers, print_json
from retrieval.settings import Settings
from retrieval.types.search import ClassifyRequest


@click.command(epilog=example('trivet classify "How are Caroline and Melanie related?"'))
@click.argument("query")
@click.option("-n", "--namespace", help="Use this namespace's profile and embedder.")
@click.option("--profile", help="Take the weights from this fusion profile: name, or name@version.")
@common_options
def command(query: str, namespace: str | None, profile: str | None, settings: Settings, as_json: bool) -> None:
    """Show the intent of QUERY and the weights that follow from it alone."""
    request = convert({"query": query, "namespace": namespace, "profile": profile}, ClassifyRequest)
    response = with_engine(settings, lambda engine: engine.classify(request))
    if as_json:
        print_json(response)
        return
    click.echo(response.intent.label)
    click.echo(f"  probabilities: {numbers(response.intent.probabilities)}")
    click.echo(f"  weights: {numbers(response.weights)} of {response.profile}")
    click.echo(f"  ms: {numbers(response.timings_ms, 2)}")
