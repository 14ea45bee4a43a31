"""An evaluation in print: rich tables on a terminal, aligned text elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from retrieval.evaluation.intervals import Interval
from retrieval.evaluation.summary import Summary

HEADINGS = {"ndcg@10": "nDCG@10", "recall@5": "recall@5", "recall@10": "recall@10", "mrr@10": "MRR@10"}


Rows = list[list[str]]


def print_report(summary: Summary, console: Console) -> None:
    """Print the whole report."""
    _print_text(console, headline(summary))
    for group, rows in quality_rows(summary):
        _print_table(console, group, ["system", *_measure_headings(summary)], rows)
    if summary.versus:
        _print_table(
            console,
            "paired tests",
            ["comparison", "measure", "difference", "win/tie/loss", "p (Holm)"],
            _tests(summary),
        )
    _print_table(console, "running", ["system", "median ms", "95 % ms", "legs that failed"], _running(summary))
    for row in summary.ingestion.rejected:
        _print_text(console, f"not stored: corpus.jsonl:{row.line} {row.id}: {row.error}")


def headline(summary: Summary) -> str:
    """What was run, in two lines."""
    counts = summary.ingestion.counts
    stored = ", ".join(f"{counts[status]} {status}" for status in sorted(counts))
    skipped = f", {summary.skipped} without evidence skipped" if summary.skipped else ""
    sampled = " (a sample)" if summary.sampled else ""
    return (
        f"{summary.dataset}: {summary.queries} queries{sampled} in {summary.namespaces} namespaces{skipped}; "
        f"top {summary.top_k}, seed {summary.seed}, 95 % bootstrap intervals\n"
        f"corpus ({summary.language}): {stored} in {summary.ingestion.seconds:.1f} s"
    )


def quality_rows(summary: Summary) -> list[tuple[str, Rows]]:
    """Per group its title and the rows of its table."""
    groups: dict[str, Rows] = {}
    sizes: dict[str, int] = {}
    for cell in summary.cells:
        sizes[cell.group] = cell.queries
        groups.setdefault(cell.group, []).append([cell.system, *(_interval(i) for i in cell.measures.values())])
    return [(f"{group} (n={sizes[group]})", rows) for group, rows in groups.items()]


def _tests(summary: Summary) -> Rows:
    rows = []
    for test in summary.versus:
        found = test.comparison
        rows.append(
            [
                f"{test.system} - {test.baseline}",
                HEADINGS[test.measure],
                _interval(found.difference, signed=True),
                f"{found.wins}/{found.ties}/{found.losses}",
                f"{test.corrected_p:.4f}",
            ]
        )
    return rows


def _running(summary: Summary) -> Rows:
    return [
        [
            row.system,
            f"{row.median_ms:.1f}",
            f"{row.p95_ms:.1f}",
            ", ".join(f"{leg} {count}" for leg, count in row.degraded.items()) or "none",
        ]
        for row in summary.running
    ]


def _measure_headings(summary: Summary) -> list[str]:
    return [HEADINGS.get(name, name) for name in summary.cells[0].measures]


def _interval(interval: Interval, *, signed: bool = False) -> str:
    """A mean and its bounds, such as `.482 [.455 .509]`."""
    sign = "+" if signed else ""
    numbers = (interval.mean, interval.low, interval.high)
    mean, low, high = (format(value, f"{sign}.3f").replace("0.", ".", 1) for value in numbers)
    return f"{mean} [{low} {high}]"


def _print_table(console: Console, title: str, headings: Sequence[str], rows: Rows) -> None:
    """A rich table on a terminal, else aligned columns."""
    if console.is_terminal:
        table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
        for heading in headings:
            table.add_column(heading, header_style="dim", no_wrap=True)
        for row in rows:
            table.add_row(*row, style="cyan" if row[0] == "adaptive" else None)
        console.print()
        console.print(table)
        return
    lines = [list(headings), *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    aligned = [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines
    ]
    _print_text(console, "\n".join(["", title, *aligned]))


def _print_text(console: Console, text: str) -> None:
    """Print as it is: no markup, colours or line breaks of rich's own."""
    console.print(text, highlight=False, markup=False, emoji=False, soft_wrap=True)
