"""An evaluation as an HTML page: tables, charts and provenance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from retrieval.evaluation.comparisons import MEASURES, SIGNIFICANT, Versus, pair_names
from retrieval.evaluation.scores import MACRO, MACRO_SETS, OVERALL
from retrieval.evaluation.summary import Evaluation, Figures, Summary
from retrieval.reporting.charts import Series, dot_rows, interval_rows, line_chart, outcome_bars
from retrieval.reporting.evaluation import (
    HEADINGS,
    headline,
    running_table,
    set_tables,
    tables,
    verdict_lines,
    verdict_tables,
)
from retrieval.reporting.page import Fact, PageSection, Part, render_page
from retrieval.reporting.table import Table

PANELS = 3
"""Maximum number of panels side by side."""

_METHOD = (
    "Means over queries with 95 % bootstrap intervals. Differences are paired; their p is that of a randomisation test "
    "after Holm's correction. A filled point is significant at 5 %."
)


def page(evaluation: Evaluation) -> str:
    """The report as HTML."""
    found, sets = evaluation.provenance, evaluation.sets
    names = [summary.dataset for summary in sets]
    systems: dict[str, list[str]] = {}
    for system, label in found.profiles.items():
        systems.setdefault(label, []).append(system)
    facts: dict[str, Fact] = {
        "date": found.date,
        "queries": f"n = {sum(summary.figures.queries for summary in sets)}",
        "seed": str(found.seed),
        "profile": found.profile,
        "profiles": [f"{label}: {', '.join(own)}" for label, own in systems.items()],
        "versions": ", ".join(f"{name} {version}" for name, version in found.versions.items()),
        "models": found.models,
    }
    sections = [_set(summary) for summary in sets]
    if evaluation.macro is not None:
        remark = f"The mean of each set's mean: every set counts alike. {', '.join(names)}."
        parts = [Part(text=remark, soft=True), *_figures(evaluation.macro, "all sets")]
        of_sets = (*set_tables(evaluation.macro, sets), *verdict_tables(sets))
        parts.append(Part(tables=of_sets, judged=evaluation.macro.judged))
        sections.insert(0, PageSection(heading=f"All {len(names)} sets", parts=parts))
    title = "Evaluation of " + (names[0] if len(names) == 1 else f"{len(names)} sets")
    return render_page(title, [Part(text=_METHOD, soft=True)], facts, sections)


def _set(summary: Summary) -> PageSection:
    parts = [
        *(Part(text=line, soft=True) for line in headline(summary).split("\n")),
        *_figures(summary.figures, summary.dataset),
        Part(tables=[running_table(summary.running)], judged=summary.figures.judged, fold="times and failed legs"),
        *_not_stored(summary),
    ]
    anchor = "set-" + "".join(char if char.isalnum() else "-" for char in summary.dataset)
    return PageSection(heading=summary.dataset, parts=parts, anchor=anchor)


def _not_stored(summary: Summary) -> Iterator[Part]:
    """Rows of the corpus that were not stored, and why."""
    if summary.ingestion.rejected:
        rows = [[str(row.line), row.id, row.error] for row in summary.ingestion.rejected]
        yield Part(tables=[Table(title="not stored", headings=["line", "id", "why"], rows=rows)])


def _figures(figures: Figures, name: str) -> Iterator[Part]:
    """Verdicts, tables and charts of one set or of all."""
    judged, found = figures.judged, tables(figures)
    whole, *groups = found["cells"]
    parts = {test.baseline for test in figures.ablations}
    everything = [cell.system for cell in figures.cells if cell.group in (OVERALL, MACRO_SETS)]
    systems = sorted((system for system in everything if system not in parts), key=lambda system: system != judged)
    yield Part(
        verdicts=[(line, each.worse) for line, each in zip(verdict_lines(figures), figures.verdicts, strict=True)]
    )
    yield Part(tables=[whole], judged=judged)
    if len({cell.group for cell in figures.cells} - {OVERALL, MACRO, MACRO_SETS}) > 1:
        caption = f"By type of query; the lines are the intervals of {judged}"
        yield Part(svg=_types_chart(figures, systems, f"{name}: nDCG@10 by type of query"), caption=caption)
    if groups:
        yield Part(tables=groups, judged=judged, fold="namespaces and types")
    if figures.versus:
        yield from _won(figures.versus, figures, name, f"Queries that {judged} wins, ties and loses against each other")
        yield Part(tables=found["versus"], judged=judged, fold="paired tests")
    if figures.stages:
        chart = _differences_chart(figures.stages, f"{name}: what each stage adds")
        yield Part(svg=chart, caption="What each stage of the ranking brings")
        yield from _won(figures.stages, figures, name, "Queries that a stage wins, ties and loses against another")
        yield Part(tables=found["stages"], judged=judged)
    if figures.outcomes:
        yield Part(tables=found["outcomes"], judged=judged, fold="queries won, tied and lost")
    if figures.ablations:
        chart = _differences_chart(figures.ablations, f"{name}: what each part adds")
        yield Part(svg=chart, caption="What each part adds: adaptive less adaptive without it")
        yield Part(tables=found["ablations"], judged=judged)
    if figures.budgets:
        packed = {cell.system for cell in figures.budgets}
        chart = _budgets_chart(
            figures, [each for each in systems if each in packed], f"{name}: evidence recall against tokens"
        )
        caption = f"The share of the evidence that context packs hold; the band is the interval of {judged}"
        yield Part(svg=chart, caption=caption, tables=found["budgets"], judged=judged)


def _differences_chart(tests: Sequence[Versus], label: str) -> str:
    """The gain of each pair's first system in every measure; filled if significant."""
    names = pair_names(tests)
    panels = {
        f"{HEADINGS[measure]} that it brings": {
            names[test.pair]: (test.comparison.difference, test.corrected_p < SIGNIFICANT)
            for test in tests
            if test.measure == measure
        }
        for measure in MEASURES
    }
    return interval_rows(panels, label)


def _types_chart(figures: Figures, systems: Sequence[str], label: str) -> str:
    """nDCG@10 of each system by type of query, with the interval of the judged one."""
    outside = (OVERALL, MACRO, MACRO_SETS)
    sizes = {cell.group: cell.queries for cell in figures.cells if cell.group not in outside}
    series = []
    for system in systems:
        own = [figures.cell(group, system).measures["ndcg@10"] for group in sizes]
        series.append(Series.from_estimates(system, own, bounds=system == figures.judged))
    return dot_rows([f"{group} ({size})" for group, size in sizes.items()], series, "nDCG@10", label)


def _budgets_chart(figures: Figures, systems: Sequence[str], label: str) -> str:
    """Evidence recall against the mean tokens of the packs, with the interval of the judged system."""
    series = []
    for system in systems:
        own = [cell for cell in figures.budgets if cell.system == system]
        recalls, tokens = [cell.recall for cell in own], [cell.tokens for cell in own]
        series.append(Series.from_estimates(system, recalls, tokens, bounds=system == figures.judged))
    return line_chart(series, "evidence recall", "mean tokens of the pack", label)


def _won(tests: Sequence[Versus], figures: Figures, name: str, caption: str) -> Iterator[Part]:
    """Bars of some tests: over all queries in each measure, and in nDCG@10 by group if there are several."""
    title, names = f"{name}: queries won, tied and lost", pair_names(tests)
    by_measure: dict[str, list[tuple[int, int, int]]] = {HEADINGS[measure]: [] for measure in MEASURES}
    for test in tests:
        found = test.comparison
        by_measure[HEADINGS[test.measure]].append((found.wins, found.ties, found.losses))
    yield Part(svg=outcome_bars(by_measure, list(names.values()), f"{title}, {tests[0].pair}"), caption=caption)
    own = [outcome for outcome in figures.outcomes if outcome.pair in names and outcome.measure == MEASURES[0]]
    groups = {outcome.group: f"{outcome.group} ({outcome.queries})" for outcome in own}
    if len(groups) <= 2:
        return
    kind = "set" if MACRO_SETS in groups else "type of query"
    pairs = list(names)
    width = -(-len(pairs) // -(-len(pairs) // PANELS))  # about the same number of panels per chart
    for start in range(0, len(pairs), width):
        some = pairs[start : start + width]
        shares = {names[pair]: [(each.won, each.tied, each.lost) for each in own if each.pair == pair] for pair in some}
        label = f"{title} by {kind}: {', '.join(some)}"
        yield Part(
            svg=outcome_bars(shares, list(groups.values()), label, percent=True),
            caption=f"The same in nDCG@10 by {kind}",
        )
