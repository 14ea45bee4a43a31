"""`trivet context`."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

import click

from retrieval.answer.response import NOTHING_RELEVANT, UNKNOWN_NAMESPACE
from retrieval.cli.engine import with_engine
from retrieval.cli.inputs import convert, search_options
from retrieval.cli.options import common_options, example, namespace_option
from retrieval.cli.output import numbers, print_json, printable, unanswered
from retrieval.engine import Trivet
from retrieval.errors import NotFound
from retrieval.plurals import counted
from retrieval.settings import Settings
from retrieval.types.search import ContextRequest, ContextResponse


@click.command(epilog=example('trivet context -n alice "What should I cook for Caroline?" --max-tokens 500 > pack.md'))
@click.argument("query")
@click.option("--max-tokens", type=click.IntRange(1, 200_000), help="Token budget.  [default: 2048]")
@click.option("--format", type=click.Choice(["markdown", "xml", "json"]), help="[default: markdown]")
@click.option("--order", type=click.Choice(["relevance", "time"]), help="[default: relevance]")
@search_options
@click.option("--explain", is_flag=True, help="With --json: include the ranked results.")
@namespace_option
@common_options
def command(query: str, namespace: str, settings: Settings, as_json: bool, **fields: Any) -> None:
    """Assemble the context pack that answers QUERY.

    The pack goes to standard output, a line about it to standard error. A namespace that does not exist gives an
    empty pack.
    """
    request = convert({"query": query, **fields}, ContextRequest)

    async def pack(engine: Trivet) -> ContextResponse:
        with suppress(NotFound):  # the response says so
            await engine.load(namespace)  # as `trivet search` does
        return await engine.context(namespace, request)

    response = with_engine(settings, pack)
    if as_json:
        print_json(response)
        return
    click.echo(printable(response.context) if sys.stdout.isatty() else response.context)
    if response.reason == UNKNOWN_NAMESPACE:
        click.echo(f"an empty pack: there is no namespace {namespace!r}", err=True)
        return
    intent = f"{response.intent.label}, " if response.intent else ""
    packed = counted(len(response.items), "memory", "memories")
    click.echo(
        f"{response.tokens_used} of {response.max_tokens} tokens, {packed}, {intent}"
        f"weights {numbers(response.weights)}, {response.timings_ms['total']:.1f} ms",
        err=True,
    )
    if response.reason == NOTHING_RELEVANT:
        click.echo("an empty pack: nothing that was found is relevant", err=True)
    for degradation in response.degraded:
        click.echo(unanswered(degradation), err=True)
