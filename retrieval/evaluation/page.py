"""An evaluation as one HTML file that needs nothing else: tables, charts, and what they come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from retrieval.evaluation.bars import groups_charts, outcomes_chart
from retrieval.evaluation.cells import MACRO, MACRO_SETS, OVERALL
from retrieval.evaluation.charts import budgets_chart, differences_chart, types_chart
from retrieval.evaluation.comparisons import Versus
from retrieval.evaluation.html import document, figure
from retrieval.evaluation.summary import Evaluation, Figures, Provenance, Summary
from retrieval.evaluation.tables import (
    Table,
    ablation_tables,
    budget_tables,
    headline,
    outcome_tables,
    quality_tables,
    running_table,
    set_tables,
    stage_tables,
    verdict_lines,
    verdict_tables,
    versus_tables,
)


def write_page(path: Path, evaluation: Evaluation) -> None:
    """Write the report."""
    path.write_text(page(evaluation), encoding="utf-8")


def page(evaluation: Evaluation) -> str:
    """The report as HTML."""
    names = [summary.dataset for summary in evaluation.sets]
    title = "Evaluation of " + (names[0] if len(names) == 1 else f"{len(names)} sets")
    body = [
        *_header(title, evaluation),
        *(_macro(evaluation.macro, evaluation.sets) if evaluation.macro is not None else ()),
        *(line for summary in evaluation.sets for line in _set(summary)),
    ]
    return document(title, body)


def _header(title: str, evaluation: Evaluation) -> Iterator[str]:
    found = evaluation.provenance
    counts = [summary.figures.queries for summary in evaluation.sets]
    rows = {
        "date": escape(found.date),
        "queries": f"n = {sum(counts)}",
        "seed": str(found.seed),
        "profile": escape(found.profile),
        "profiles": "<br>".join(map(escape, _profiles(found))),
        "versions": escape(", ".join(f"{name} {version}" for name, version in found.versions.items())),
        "models": "<br>".join(f"{escape(name)} <code>{sha256}</code>" for name, sha256 in found.models.items()),
    }
    yield f"<header><h1>{escape(title)}</h1>"
    yield (
        '<p class="soft">Means over queries with 95 % bootstrap intervals. Differences are paired; their p is that of '
        "a randomisation test after Holm's correction. A filled point is significant at 5 %.</p>"
    )
    yield "<dl>" + "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows.items()) + "</dl>"
    if len(evaluation.sets) > 1:
        links = [f'<a href="#{_anchor(summary)}">{escape(summary.dataset)}</a>' for summary in evaluation.sets]
        yield f"<nav>{' '.join(links)}</nav>"
    yield "</header>"


def _macro(macro: Figures, sets: Sequence[Summary]) -> Iterator[str]:
    names = [summary.dataset for summary in sets]
    yield f"<section><h2>All {len(names)} sets</h2>"
    yield f'<p class="soft">The mean of each set\'s mean: every set counts alike. {escape(", ".join(names))}.</p>'
    yield from _figures(macro, "all sets")
    yield "".join(_table(table, macro.judged) for table in (*set_tables(macro, sets), *verdict_tables(sets)))
    yield "</section>"


def _set(summary: Summary) -> Iterator[str]:
    yield f'<section id="{_anchor(summary)}"><h2>{escape(summary.dataset)}</h2>'
    yield from (f'<p class="soft">{escape(line)}</p>' for line in headline(summary).split("\n"))
    yield from _figures(summary.figures, summary.dataset)
    times = _table(running_table(summary.running), summary.figures.judged)
    yield f"<details><summary>times</summary>{times}</details></section>"


def _figures(figures: Figures, name: str) -> Iterator[str]:
    """Verdicts, tables and charts of one set or of all."""
    if figures.verdicts:
        pairs = zip(figures.verdicts, verdict_lines(figures), strict=True)
        items = [f"<li{' class=worse' if verdict.worse else ''}>{escape(line)}</li>" for verdict, line in pairs]
        yield f'<ul class="verdicts">{"".join(items)}</ul>'
    whole, *groups = quality_tables(figures)
    parts = {test.baseline for test in figures.ablations}
    everything = [cell.system for cell in figures.cells if cell.group in (OVERALL, MACRO_SETS)]
    systems = [system for system in everything if system not in parts]
    judged = escape(figures.judged)
    yield _tables([whole], figures)
    if len({cell.group for cell in figures.cells} - {OVERALL, MACRO, MACRO_SETS}) > 1:
        yield figure(
            types_chart(figures.cells, systems, figures.judged, f"{name}: nDCG@10 by type of query"),
            f"By type of query; the lines are the intervals of {judged}",
        )
    if groups:
        yield _details("namespaces and types", groups, figures)
    if figures.versus:
        yield from _won(figures.versus, figures, name, f"Queries that {judged} wins, ties and loses against each other")
        yield _details("paired tests", versus_tables(figures), figures)
    if figures.stages:
        yield figure(
            differences_chart(figures.stages, f"{name}: what each stage brings"),
            "What each stage of the ranking brings",
        )
        yield from _won(figures.stages, figures, name, "Queries that a stage wins, ties and loses against another")
        yield _tables(stage_tables(figures), figures)
    if figures.outcomes:
        yield _details("queries won, tied and lost", outcome_tables(figures), figures)
    if figures.ablations:
        chart = differences_chart(figures.ablations, f"{name}: what each part brings")
        yield figure(chart, "What each part brings: adaptive less adaptive without it")
        yield _tables(ablation_tables(figures), figures)
    if figures.budgets:
        chart = budgets_chart(figures.budgets, systems, figures.judged, f"{name}: evidence recall against tokens")
        yield figure(chart, f"The share of the evidence that context packs hold; the band is the interval of {judged}")
        yield _tables(budget_tables(figures), figures)


def _won(tests: Sequence[Versus], figures: Figures, name: str, caption: str) -> Iterator[str]:
    """Bars of some tests: over all queries, and by group where there are several."""
    title = f"{name}: queries won, tied and lost"
    yield figure(outcomes_chart(tests, f"{title}, {tests[0].pair}"), caption)
    pairs = {test.pair for test in tests}
    own = [outcome for outcome in figures.outcomes if outcome.pair in pairs]
    if len({outcome.group for outcome in own}) > 2:
        kind = "set" if any(outcome.group == MACRO_SETS for outcome in own) else "type of query"
        for chart in groups_charts(tests, own, f"{title} by {kind}"):
            yield figure(chart, f"The same in nDCG@10 by {kind}")


def _profiles(found: Provenance) -> list[str]:
    """Each profile with the systems that rank by it, such as `mine@2: profile=mine`."""
    systems: dict[str, list[str]] = {}
    for system, label in found.profiles.items():
        systems.setdefault(label, []).append(system)
    return [f"{label}: {', '.join(names)}" for label, names in systems.items()]


def _details(name: str, tables: Sequence[Table], figures: Figures) -> str:
    return f"<details><summary>{name}</summary>{_tables(tables, figures)}</details>"


def _tables(tables: Sequence[Table], figures: Figures) -> str:
    return "".join(_table(table, figures.judged) for table in tables)


def _table(table: Table, judged: str) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in table.headings)
    rows = "".join(
        f"<tr{' class=judged' if row[0] == judged else ''}>"
        + "".join(f"<td>{escape(text)}</td>" for text in row)
        + "</tr>"
        for row in table.rows
    )
    return f'<h3>{escape(table.title)}</h3><div class="scroll"><table><tr>{head}</tr>{rows}</table></div>'


def _anchor(summary: Summary) -> str:
    """The set's place on the page."""
    return "set-" + "".join(char if char.isalnum() else "-" for char in summary.dataset)
