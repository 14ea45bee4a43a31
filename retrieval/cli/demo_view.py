"""Prints a context pack with everything that led to it."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from retrieval.cli.output import beginning, in_a_line, numbers, printable, say, unanswered
from retrieval.evaluation.folder import Query
from retrieval.evaluation.packs import evidence_held
from retrieval.types.search import ContextResponse, Leg

WIDTH = 100
"""Most columns on a wide terminal."""


def print_pack(query: Query, response: ContextResponse, place: str, to: Console) -> None:
    """Print a question's intent, weights, every leg's rank of each item, timings and the pack."""
    width = min(to.width, WIDTH)
    say(to, "")
    if to.is_terminal:
        to.print(Rule(Text(place, "dim"), style="cyan"), width=width)
    else:
        say(to, f"--- {place} ---")
    say(to, Text("Q ", "dim").append(query.text, "bold"))
    if response.intent:
        intent = Text("intent   ", "dim").append(response.intent.label, "bold magenta")
        say(to, intent.append(f"  ({numbers(response.intent.probabilities)})"))
    say(to, Text("weights  ", "dim").append(f"{numbers(response.weights)}  (profile {response.profile})"))
    found = evidence_held(response.items, response.dropped, query.relevant)
    rows = item_rows(query, response)
    _print_items(rows, to, width)
    say(to, Text("ms       ", "dim").append(numbers(response.timings_ms, 1)))
    for degradation in response.degraded:
        say(to, unanswered(degradation), "yellow")
    pack = printable(response.context.rstrip())
    title = f"context pack, {response.tokens_used} of {response.max_tokens} tokens"
    if to.is_terminal:
        to.print(Panel(Text(pack), title=title, title_align="left", border_style="dim", box=box.ROUNDED), width=width)
    else:
        say(to, f"{title}:\n{pack}")
    style = "green" if len(found) == len(query.relevant) else "yellow" if found else "red"
    missing = [id_ for id_ in query.relevant if id_ not in found]
    rest = f" (missing: {', '.join(missing)})" if missing else ""
    say(to, f"evidence: {len(found)} of {len(query.relevant)} in the pack{rest}", style)


def item_rows(query: Query, response: ContextResponse) -> list[list[str]]:
    """Per item of the pack: citation, fused rank, rank in each leg, whether it is evidence, text.

    A turn included because of another was not found itself: it has no ranks, and its text is only in the pack.
    """
    results = {result.id: result for result in response.results or ()}  # which are there, as the request said `explain`
    citations = {item.id: item.citation for item in response.items}
    rows = []
    for item in response.items:
        star = "*" if item.id in query.relevant else ""
        if (result := results.get(item.id)) is None:
            rows.append([item.citation, *"-" * (1 + len(Leg)), star, f"(comes with {citations[str(item.needed_by)]})"])
            continue
        legs = [str(result.legs[leg].rank) if leg in result.legs else "-" for leg in Leg]
        text = beginning(in_a_line(result.text))  # all of it is in the pack below
        rows.append([item.citation, str(result.fused.rank), *legs, star, text])
    return rows


def _print_items(rows: Sequence[Sequence[str]], to: Console, width: int) -> None:
    """The table of the items; a star marks the evidence."""
    headings = ("item", "fused", *Leg, "*", "memory")
    if not to.is_terminal:
        for row in (headings, *rows):
            say(to, "  ".join(f"{cell:>6}" for cell in row[:-2]) + f"  {row[-2]:1}  {row[-1]}")
        return
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), header_style="dim", pad_edge=False)
    for heading in headings[:-1]:
        table.add_column(heading, justify="right", no_wrap=True, style="green" if heading == "*" else None)
    table.add_column(headings[-1], ratio=1)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    to.print(table, width=width)
