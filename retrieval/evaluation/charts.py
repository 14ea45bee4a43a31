"""The charts of the HTML report: what parts and stages bring, kinds of queries, evidence against tokens."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from retrieval.evaluation.cells import MACRO, MACRO_SETS, OVERALL, Cell
from retrieval.evaluation.comparisons import MEASURES, SIGNIFICANT, Versus, pair_names
from retrieval.evaluation.packs import BudgetCell
from retrieval.evaluation.svg import INK, PAPER, SERIES, drawing, render
from retrieval.evaluation.tables import HEADINGS

_WIDTH = 9.0
_ROW = 0.34
"""Inches per row of a chart."""

_MARKS = "osD^vPX*"


def differences_chart(tests: Sequence[Versus], title: str) -> str:
    """A row per pair: the difference with its interval, filled where it is significant."""
    names = pair_names(tests)
    with drawing(_WIDTH, 0.9 + _ROW * len(names), panels=len(MEASURES)) as (figure, panels):
        for axes, measure in zip(panels, MEASURES, strict=True):
            axes.axvline(0.0, color=INK, linewidth=1.0)
            for test in tests:
                if test.measure == measure:
                    found = test.comparison.difference
                    row = list(names).index(test.pair)
                    sure = test.corrected_p < SIGNIFICANT
                    axes.plot([found.low, found.high], [row, row], color=SERIES[0], linewidth=2.0)
                    axes.plot(found.mean, row, "o", color=SERIES[0], markerfacecolor=SERIES[0] if sure else PAPER)
            axes.set_title(f"{HEADINGS[measure]} that it brings")
            axes.grid(axis="y", visible=False)
            axes.margins(x=0.08)
            axes.locator_params(axis="x", nbins=6)
        panels[0].set_yticks(range(len(names)), list(names.values()))
        panels[0].set_ylim(len(names) - 0.5, -0.5)
        return render(figure, escape(title))


def types_chart(cells: Sequence[Cell], systems: Sequence[str], judged: str, title: str) -> str:
    """A row per type of query: nDCG@10 of each system, with the interval of the judged one."""
    groups = list(dict.fromkeys(cell.group for cell in cells if cell.group not in (OVERALL, MACRO, MACRO_SETS)))
    sizes = {cell.group: cell.queries for cell in cells}
    with drawing(_WIDTH, 1.1 + _ROW * len(groups)) as (figure, (axes,)):
        for system in reversed(systems):
            own = {cell.group: cell.measures["ndcg@10"] for cell in cells if cell.system == system}
            colour, mark = _look(system, systems, judged)
            rows, means = range(len(groups)), [own[group].mean for group in groups]
            order = 3 if system == judged else 2
            if system == judged:
                lows, highs = [own[group].low for group in groups], [own[group].high for group in groups]
                axes.hlines(rows, lows, highs, color=colour, linewidth=2, zorder=order)
            size = 8 if system == judged else 6
            axes.plot(means, rows, mark, color=colour, label=system, markersize=size, zorder=order)
        axes.set_yticks(range(len(groups)), [f"{group} ({sizes[group]})" for group in groups])
        axes.set_ylim(len(groups) - 0.5, -0.5)
        axes.set_title("nDCG@10")
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles[::-1], labels[::-1], loc="outside lower center", ncols=len(systems), handletextpad=0.2)
        return render(figure, escape(title))


def budgets_chart(cells: Sequence[BudgetCell], systems: Sequence[str], judged: str, title: str) -> str:
    """A line per system: evidence recall against the mean tokens of its packs, with the judged one's interval."""
    with drawing(_WIDTH, 3.8) as (figure, (axes,)):
        for system in reversed(systems):
            own = [cell for cell in cells if cell.system == system]
            colour, mark = _look(system, systems, judged)
            tokens, means = [cell.tokens for cell in own], [cell.recall.mean for cell in own]
            strong = system == judged
            if strong:
                lows, highs = [cell.recall.low for cell in own], [cell.recall.high for cell in own]
                axes.fill_between(tokens, lows, highs, color=colour, alpha=0.15, linewidth=0)
            axes.plot(
                tokens,
                means,
                f"{mark}-",
                color=colour,
                label=system,
                linewidth=2.4 if strong else 1.4,
                zorder=3 if strong else 2,
            )
        axes.set_xlabel("mean tokens of the pack")
        axes.set_title("evidence recall")
        axes.set_xlim(left=0.0)
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles[::-1], labels[::-1], loc="outside lower center", ncols=len(systems), handletextpad=0.4)
        return render(figure, escape(title))


def _look(system: str, systems: Sequence[str], judged: str) -> tuple[str, str]:
    """Colour and mark of a system: the first of each for the judged one, the same in all charts."""
    ordered = sorted(systems, key=lambda name: name != judged)
    at = ordered.index(system) % len(SERIES)
    return SERIES[at], _MARKS[at]
