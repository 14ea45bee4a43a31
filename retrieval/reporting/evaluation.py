"""The figures of an evaluation as tables of text, which the printed and the HTML report share, and the printed one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

from rich.console import Console
from rich.table import Table as RichTable

from retrieval.evaluation.comparisons import (
    BEST_LEG,
    EQUAL,
    MEASURES,
    OutcomeCounts,
    Versus,
    YardstickVerdict,
    pair_names,
)
from retrieval.evaluation.scores import MACRO_SETS, OVERALL
from retrieval.evaluation.summary import Figures, Running, Summary
from retrieval.plurals import counted
from retrieval.reporting.table import Table, aligned, show_counts, show_interval, show_share
from retrieval.types.evaluation import Verdict

_JUDGED: Final[Mapping[Verdict, str]] = {
    "better": "better than",
    "worse": "worse than",
    "not different": "not significantly different from",
}

HEADINGS = {"ndcg@10": "nDCG@10", "recall@5": "recall@5", "recall@10": "recall@10", "mrr@10": "MRR@10"}


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
    for table in chain(*tables(figures).values()):
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
    _print_text(console, aligned(table))


def _print_text(console: Console, text: str) -> None:
    """Print as it is: no markup, colours or line breaks of rich's own."""
    console.print(text, highlight=False, markup=False, emoji=False, soft_wrap=True)


def headline(summary: Summary) -> str:
    """What was run, in two lines."""
    stored = show_counts(summary.ingestion.counts)
    skipped = f", {summary.skipped} without evidence skipped" if summary.skipped else ""
    queries = counted(summary.figures.queries, "query", "queries")
    namespaces = counted(summary.namespaces, "namespace", "namespaces")
    sampled = " (a sample)" if summary.sampled else ""
    return (
        f"{summary.dataset}: {queries}{sampled} in {namespaces}{skipped}; "
        f"top {summary.top_k}, seed {summary.provenance.seed}, 95 % bootstrap intervals\n"
        f"corpus ({summary.language}, {summary.embedder}): {stored} in {summary.ingestion.seconds:.1f} s"
    )


def verdict_lines(figures: Figures) -> list[str]:
    """A line per verdict, such as `nDCG@10: adaptive is better than bm25, the best single leg (...)`."""
    lines = []
    for verdict in figures.verdicts:
        test = verdict.versus
        known = "the best single leg" if verdict.yardstick == BEST_LEG else EQUAL
        judged = _JUDGED[test.verdict]
        lines.append(
            f"{HEADINGS[test.measure]}: {test.system} is {judged} {test.baseline}, {known} "
            f"({show_interval(test.comparison.difference, signed=True)}, p (Holm) {test.corrected_p:.4f})"
        )
    return lines


def tables(figures: Figures) -> dict[str, list[Table]]:
    """The tables that are not empty, by the field of `Figures` that they show."""
    return {
        "cells": _quality(figures),
        "versus": _tests("paired tests", figures.versus),
        "stages": _tests("stages: what each adds", figures.stages),
        "outcomes": _outcomes(figures),
        "ablations": _tests("ablations: what each part adds to adaptive", figures.ablations),
        "budgets": _budgets(figures),
    }


def verdict_tables(sets: Sequence[Summary]) -> list[Table]:
    """The verdicts of several sets, a row per set; none for fewer than two sets."""
    judged = [summary for summary in sets if summary.figures.verdicts]
    if len(judged) < 2:
        return []
    headings = [f"{HEADINGS[each.versus.measure]} - {each.yardstick}" for each in judged[0].figures.verdicts]
    rows = [
        [summary.dataset, str(summary.figures.queries), *map(_verdict, summary.figures.verdicts)] for summary in judged
    ]
    title = f"{judged[0].figures.verdicts[0].versus.system} against the best single leg and equal weights"
    return [Table(title=title, headings=["set", "n", *headings], rows=rows)]


def set_tables(macro: Figures, sets: Sequence[Summary]) -> list[Table]:
    """A table per tested measure: a row per set and one for the mean, a column per system."""
    parts = {test.baseline for test in macro.ablations}
    systems = [cell.system for cell in macro.cells if cell.system not in parts]
    found = []
    for measure in MEASURES:
        rows = [
            [name, str(figures.queries)]
            + [show_share(figures.cell(group, system).measures[measure].mean) for system in systems]
            for name, group, figures in [
                *((summary.dataset, OVERALL, summary.figures) for summary in sets),
                (MACRO_SETS, MACRO_SETS, macro),
            ]
        ]
        found.append(Table(title=f"{HEADINGS[measure]} by set", headings=["set", "n", *systems], rows=rows))
    return found


def _quality(figures: Figures) -> list[Table]:
    """A table per group of queries: the means of each system."""
    groups: dict[str, list[Sequence[str]]] = {}
    sizes: dict[str, int] = {}
    for cell in figures.cells:
        sizes[cell.group] = cell.queries
        groups.setdefault(cell.group, []).append([cell.system, *map(show_interval, cell.measures.values())])
    headings = ["system", *(HEADINGS.get(name, name) for name in figures.cells[0].measures)]
    return [Table(title=f"{group} (n={sizes[group]})", headings=headings, rows=rows) for group, rows in groups.items()]


def _outcomes(figures: Figures) -> list[Table]:
    """Wins, ties and losses in the tests, a row per group of queries."""
    won = f"won/tied/lost in {HEADINGS[MEASURES[0]]}"
    return [
        _outcome_table(title, figures.outcomes, pair_names(tests))
        for title, tests in (
            (f"{figures.judged}: queries {won} against", figures.versus),
            (f"stages: queries {won}", figures.stages),
        )
        if tests
    ]


def running_table(running: Sequence[Running]) -> Table:
    """How long searches took and which parts failed: legs, or the rescorer."""
    return Table(
        title="running",
        headings=["system", "median ms", "95 % ms", "failed"],
        rows=[
            [
                row.system,
                f"{row.median_ms:.1f}",
                f"{row.p95_ms:.1f}",
                ", ".join(f"{leg} {count}" for leg, count in row.degraded.items()) or "none",
            ]
            for row in running
        ],
    )


def _budgets(figures: Figures) -> list[Table]:
    """Evidence in context packs, a row per system."""
    if not figures.budgets:
        return []
    budgets = sorted({cell.budget for cell in figures.budgets})
    rows: dict[str, list[str]] = {}
    for cell in figures.budgets:
        rows.setdefault(cell.system, [cell.system]).append(f"{show_interval(cell.recall)} in {cell.tokens:.0f}")
    return [
        Table(
            title=f"evidence recall of context packs, in tokens used (n={figures.queries})",
            headings=["system", *(f"up to {budget}" for budget in budgets)],
            rows=list(rows.values()),
        )
    ]


def _outcome_table(title: str, found: Sequence[OutcomeCounts], names: Mapping[str, str]) -> Table:
    """Counts by group; percentages for the mean over sets."""
    rows: dict[str, list[str]] = {}
    for outcome in found:
        if outcome.pair in names and outcome.measure == MEASURES[0]:
            row = rows.setdefault(outcome.group, [outcome.group, str(outcome.queries)])
            if outcome.group == MACRO_SETS:
                row.append(f"{outcome.won:.0%}/{outcome.tied:.0%}/{outcome.lost:.0%}")
            else:
                row.append(f"{outcome.wins}/{outcome.ties}/{outcome.losses}")
    return Table(title=title, headings=["queries", "n", *names.values()], rows=list(rows.values()))


def _verdict(verdict: YardstickVerdict) -> str:
    """The difference, the leg if that is the yardstick, and `worse` if so judged."""
    test = verdict.versus
    leg = test.baseline if verdict.yardstick == BEST_LEG else ""
    return " ".join(
        filter(None, [show_interval(test.comparison.difference, signed=True), leg, "worse" if verdict.worse else ""])
    )


def _tests(title: str, tests: Sequence[Versus]) -> list[Table]:
    if not tests:
        return []
    rows = [
        [
            test.pair,
            HEADINGS[test.measure],
            show_interval(test.comparison.difference, signed=True),
            f"{test.comparison.wins}/{test.comparison.ties}/{test.comparison.losses}",
            f"{test.corrected_p:.4f}",
        ]
        for test in tests
    ]
    title = f"{title} (n={tests[0].comparison.queries})"
    return [Table(title=title, headings=["comparison", "measure", "difference", "win/tie/loss", "p (Holm)"], rows=rows)]
