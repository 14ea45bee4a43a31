"""The figures of an evaluation as tables of text, which the printed and the HTML report share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.evaluation.comparisons import BEST_LEG, EQUAL, Verdict, Versus
from retrieval.evaluation.intervals import Interval
from retrieval.evaluation.summary import Figures, Running, Summary

HEADINGS = {"ndcg@10": "nDCG@10", "recall@5": "recall@5", "recall@10": "recall@10", "mrr@10": "MRR@10"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A title, the columns' headings, and rows of as many texts."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


def headline(summary: Summary) -> str:
    """What was run, in two lines."""
    counts = summary.ingestion.counts
    stored = ", ".join(f"{counts[status]} {status}" for status in sorted(counts))
    skipped = f", {summary.skipped} without evidence skipped" if summary.skipped else ""
    sampled = " (a sample)" if summary.sampled else ""
    return (
        f"{summary.dataset}: {summary.figures.queries} queries{sampled} in {summary.namespaces} namespaces{skipped}; "
        f"top {summary.top_k}, seed {summary.provenance.seed}, 95 % bootstrap intervals\n"
        f"corpus ({summary.language}): {stored} in {summary.ingestion.seconds:.1f} s"
    )


def verdict_lines(figures: Figures) -> list[str]:
    """A line per verdict, such as `nDCG@10: adaptive is not significantly worse than bm25, the best single leg`."""
    lines = []
    for verdict in figures.verdicts:
        test = verdict.versus
        known = "the best single leg" if verdict.yardstick == BEST_LEG else EQUAL
        judged = "worse" if verdict.worse else "not significantly worse"
        lines.append(
            f"{HEADINGS[test.measure]}: {test.system} is {judged} than {test.baseline}, {known} "
            f"({interval(test.comparison.difference, signed=True)}, p {test.corrected_p:.4f})"
        )
    return lines


def tables(figures: Figures) -> list[Table]:
    """All that there is something to show in."""
    return [
        *quality_tables(figures),
        *versus_tables(figures),
        *ablation_tables(figures),
        *budget_tables(figures),
    ]


def verdict_tables(sets: Sequence[Summary]) -> list[Table]:
    """The verdicts of several sets, a row per set; none where there are none to set side by side."""
    judged = [summary for summary in sets if summary.figures.verdicts]
    if len(judged) < 2:
        return []
    headings = [f"{HEADINGS[each.versus.measure]} - {each.yardstick}" for each in judged[0].figures.verdicts]
    rows = [
        [summary.dataset, str(summary.figures.queries), *map(_verdict, summary.figures.verdicts)] for summary in judged
    ]
    title = f"{judged[0].figures.verdicts[0].versus.system} against the best single leg and equal weights"
    return [Table(title=title, headings=["set", "n", *headings], rows=rows)]


def quality_tables(figures: Figures) -> list[Table]:
    """A table per group of queries: the means of each system."""
    groups: dict[str, list[Sequence[str]]] = {}
    sizes: dict[str, int] = {}
    for cell in figures.cells:
        sizes[cell.group] = cell.queries
        groups.setdefault(cell.group, []).append([cell.system, *map(interval, cell.measures.values())])
    headings = ["system", *(HEADINGS.get(name, name) for name in figures.cells[0].measures)]
    return [Table(title=f"{group} (n={sizes[group]})", headings=headings, rows=rows) for group, rows in groups.items()]


def versus_tables(figures: Figures) -> list[Table]:
    """The judged system against each other one."""
    return _tests("paired tests", figures.versus)


def ablation_tables(figures: Figures) -> list[Table]:
    """`adaptive` against itself without a part."""
    return _tests("ablations: what each part brings to adaptive", figures.ablations)


def running_table(running: Sequence[Running]) -> Table:
    """How long searches took and which legs failed."""
    return Table(
        title="running",
        headings=["system", "median ms", "95 % ms", "legs that failed"],
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


def budget_tables(figures: Figures) -> list[Table]:
    """Evidence in context packs, a row per system."""
    if not figures.budgets:
        return []
    budgets = sorted({cell.budget for cell in figures.budgets})
    rows: dict[str, list[str]] = {}
    for cell in figures.budgets:
        rows.setdefault(cell.system, [cell.system]).append(f"{interval(cell.recall)} in {cell.tokens:.0f}")
    return [
        Table(
            title=f"evidence recall of context packs, in tokens used (n={figures.queries})",
            headings=["system", *(f"up to {budget}" for budget in budgets)],
            rows=list(rows.values()),
        )
    ]


def interval(found: Interval, *, signed: bool = False) -> str:
    """A mean and its bounds, such as `.482 [.455 .509]`."""
    sign = "+" if signed else ""
    numbers = (found.mean, found.low, found.high)
    mean, low, high = (format(value, f"{sign}.3f").replace("0.", ".", 1) for value in numbers)
    return f"{mean} [{low} {high}]"


def _verdict(verdict: Verdict) -> str:
    """The difference, the leg where it is one, and `worse` if it is."""
    test = verdict.versus
    leg = test.baseline if verdict.yardstick == BEST_LEG else ""
    return " ".join(
        filter(None, [interval(test.comparison.difference, signed=True), leg, "worse" if verdict.worse else ""])
    )


def _tests(title: str, tests: Sequence[Versus]) -> list[Table]:
    if not tests:
        return []
    rows = [
        [
            f"{test.system} - {test.baseline}",
            HEADINGS[test.measure],
            interval(test.comparison.difference, signed=True),
            f"{test.comparison.wins}/{test.comparison.ties}/{test.comparison.losses}",
            f"{test.corrected_p:.4f}",
        ]
        for test in tests
    ]
    title = f"{title} (n={tests[0].comparison.queries})"
    return [Table(title=title, headings=["comparison", "measure", "difference", "win/tie/loss", "p (Holm)"], rows=rows)]
