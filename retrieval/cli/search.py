"""`trivet search`."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console
from rich.text import Text

from retrieval.cli.engine import with_engine
from retrieval.cli.inputs import convert, search_options
from retrieval.cli.options import common_options, example, namespace_option
from retrieval.cli.output import console, in_a_line, numbers, print_json, printable, say, unanswered
from retrieval.engine import Trivet
from retrieval.settings import Settings
from retrieval.types.search import SearchRequest, SearchResponse, SearchResult


@click.command(epilog=example('trivet search -n alice "When did Caroline go to the support group?" -k 5 --explain'))
@click.argument("query")
@search_options
@click.option("--explain", is_flag=True, help="Also show the graph's paths, merged duplicates and why this order.")
@namespace_option
@common_options
def command(query: str, namespace: str, settings: Settings, as_json: bool, **fields: Any) -> None:
    """Rank the memories of a namespace for QUERY."""
    request = convert({"query": query, **fields}, SearchRequest)

    async def search(engine: Trivet) -> SearchResponse:
        await engine.load(namespace)  # with a single query, a partial answer would save no time
        return await engine.search(namespace, request)

    response = with_engine(settings, search)
    if as_json:
        print_json(response)
    else:
        _print(query, response, console())


def _print(query: str, response: SearchResponse, to: Console) -> None:
    """Print the results with every leg's rank, then how the ranking came about."""
    for rank, result in enumerate(response.results, start=1):
        _print_result(rank, result, to)
    if not response.results:
        say(to, "nothing found")
    say(to, f"intent {response.intent.label} ({numbers(response.intent.probabilities)})", "dim")
    say(to, f"weights {numbers(response.weights)} of {response.profile}", "dim")
    if response.explanation:
        if response.explanation.query != query:
            say(to, in_a_line(f"searched for: {response.explanation.query}"), "dim")
        reasons = (response.explanation.weights, response.explanation.rescoring, response.explanation.time)
        say(to, printable("; ".join(reason for reason in reasons if reason)), "dim")
    say(to, f"ms: {numbers(response.timings_ms, 1)}", "dim")
    for degradation in response.degraded:
        say(to, unanswered(degradation), "yellow")


def _print_result(rank: int, result: SearchResult, to: Console) -> None:
    legs = ", ".join(f"{leg} #{evidence.rank} ({evidence.score:.3f})" for leg, evidence in result.legs.items())
    about = [result.speaker, result.title, f"{result.created_at:%Y-%m-%d}", legs]
    head = Text(f"{rank}. ", "bold").append(in_a_line(result.id), "cyan")
    say(to, head.append(in_a_line("  " + "  ".join(part for part in about if part)), "dim"))
    say(to, "   " + in_a_line(result.snippet))
    for leg, evidence in result.legs.items():
        if evidence.path:
            say(to, in_a_line(f"   {leg}: {' > '.join(evidence.path)}"), "dim")
    if isinstance(result.duplicates, list) and result.duplicates:
        say(to, in_a_line(f"   also: {', '.join(result.duplicates)}"), "dim")
