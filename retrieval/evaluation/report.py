"""An evaluation in print: rich tables on a terminal, aligned text elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table as RichTable

from retrieval.evaluation.summary import Figures, Summary
from retrieval.evaluation.tables import (
    Table,
    headline,
    running_table,
    set_tables,
    tables,
    verdict_lines,
    verdict_tables,
)


def print_report(summary: Summary, console: Console) -> None:
    """Print the report of one folder."""
    _print_text(console, headline(summary))
    _print_figures(console, summary.figures)
    _print_table(console, running_table(summary.running), summary.figures.judged)
    for row in summary.ingestion.rejected:
        _print_text(console, f"not stored: corpus.jsonl:{row.line} {row.id}: {row.error}")


def print_macro(macro: Figures, sets: Sequence[Summary], console: Console) -> None:
    """Print the figures over several folders."""
    names = [summary.dataset for summary in sets]
    _print_text(console, f"\n{len(names)} sets, each counts alike: {', '.join(names)}")
    _print_figures(console, macro)
    for table in (*set_tables(macro, sets), *verdict_tables(sets)):
        _print_table(console, table, macro.judged)


def _print_figures(console: Console, figures: Figures) -> None:
    for table in tables(figures):
        _print_table(console, table, figures.judged)
    if figures.verdicts:
        _print_text(console, "\n".join(["", "verdicts", *verdict_lines(figures)]))


def _print_table(console: Console, table: Table, judged: str) -> None:
    """A rich table on a terminal, with the judged system's row in colour; else aligned columns."""
    if console.is_terminal:
        rich = RichTable(title=table.title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
        for heading in table.headings:
            rich.add_column(heading, header_style="dim", no_wrap=True)
        for row in table.rows:
            rich.add_row(*row, style="cyan" if row[0] == judged else None)
        console.print()
        console.print(rich)
        return
    lines = [table.headings, *table.rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(table.headings))]
    aligned = [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines
    ]
    _print_text(console, "\n".join(["", table.title, *aligned]))


def _print_text(console: Console, text: str) -> None:
    """Print as it is: no markup, colours or line breaks of rich's own."""
    console.print(text, highlight=False, markup=False, emoji=False, soft_wrap=True)
