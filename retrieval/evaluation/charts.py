"""The charts of the HTML report: what parts bring, kinds of queries, wins and losses, evidence against tokens."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from retrieval.evaluation.cells import MACRO, MACRO_SETS, OVERALL, Cell
from retrieval.evaluation.comparisons import MEASURES, SIGNIFICANT, Versus
from retrieval.evaluation.packs import BudgetCell
from retrieval.evaluation.svg import INK, LOSS, PAPER, SERIES, TIE, WIN, drawing, render
from retrieval.evaluation.systems import ADAPTIVE
from retrieval.evaluation.tables import HEADINGS

_WIDTH = 9.0
_ROW = 0.34
"""Inches per row of a chart."""

_DIGIT = 0.03
"""The share of a bar that a digit takes."""

_MARKS = "osD^vPX*"


def differences_chart(tests: Sequence[Versus], title: str) -> str:
    """A row per baseline: the difference with its interval, filled where it is significant."""
    baselines = list(dict.fromkeys(test.baseline for test in tests))
    with drawing(_WIDTH, 0.9 + _ROW * len(baselines), panels=len(MEASURES)) as (figure, panels):
        for axes, measure in zip(panels, MEASURES, strict=True):
            axes.axvline(0.0, color=INK, linewidth=1.0)
            for test in tests:
                if test.measure == measure:
                    found = test.comparison.difference
                    row = baselines.index(test.baseline)
                    sure = test.corrected_p < SIGNIFICANT
                    axes.plot([found.low, found.high], [row, row], color=SERIES[0], linewidth=2.0)
                    axes.plot(found.mean, row, "o", color=SERIES[0], markerfacecolor=SERIES[0] if sure else PAPER)
            axes.set_title(f"{HEADINGS[measure]} that it brings")
            axes.grid(axis="y", visible=False)
            axes.margins(x=0.08)
            axes.locator_params(axis="x", nbins=6)
        panels[0].set_yticks(range(len(baselines)), baselines)
        panels[0].set_ylim(len(baselines) - 0.5, -0.5)
        return render(figure, escape(title))


def types_chart(cells: Sequence[Cell], systems: Sequence[str], title: str) -> str:
    """A row per type of query: nDCG@10 of each system, with the interval of `adaptive`."""
    groups = list(dict.fromkeys(cell.group for cell in cells if cell.group not in (OVERALL, MACRO, MACRO_SETS)))
    sizes = {cell.group: cell.queries for cell in cells}
    with drawing(_WIDTH, 1.1 + _ROW * len(groups)) as (figure, (axes,)):
        for system in reversed(systems):
            own = {cell.group: cell.measures["ndcg@10"] for cell in cells if cell.system == system}
            colour, mark = _look(system, systems)
            rows, means = range(len(groups)), [own[group].mean for group in groups]
            order = 3 if system == ADAPTIVE else 2
            if system == ADAPTIVE:
                lows, highs = [own[group].low for group in groups], [own[group].high for group in groups]
                axes.hlines(rows, lows, highs, color=colour, linewidth=2, zorder=order)
            size = 8 if system == ADAPTIVE else 6
            axes.plot(means, rows, mark, color=colour, label=system, markersize=size, zorder=order)
        axes.set_yticks(range(len(groups)), [f"{group} ({sizes[group]})" for group in groups])
        axes.set_ylim(len(groups) - 0.5, -0.5)
        axes.set_title("nDCG@10")
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles[::-1], labels[::-1], loc="outside lower center", ncols=len(systems), handletextpad=0.2)
        return render(figure, escape(title))


def outcomes_chart(tests: Sequence[Versus], title: str) -> str:
    """A bar per baseline: the share of queries that are won, tied and lost."""
    baselines = list(dict.fromkeys(test.baseline for test in tests))
    with drawing(_WIDTH, 1.1 + _ROW * len(baselines), panels=len(MEASURES)) as (figure, panels):
        for axes, measure in zip(panels, MEASURES, strict=True):
            chosen = [test.comparison for test in tests if test.measure == measure]
            counts = np.array([[found.wins, found.ties, found.losses] for found in chosen])
            shares = counts / counts.sum(axis=1, keepdims=True)
            start = np.zeros(len(chosen))
            for column, (colour, name) in enumerate([(WIN, "won"), (TIE, "tied"), (LOSS, "lost")]):
                bars = axes.barh(
                    range(len(chosen)),
                    shares[:, column],
                    left=start,
                    color=colour,
                    height=0.7,
                    label=name,
                    edgecolor=PAPER,
                    linewidth=1.5,
                )
                labels = [
                    str(n) if share >= _DIGIT * len(str(n)) else ""
                    for n, share in zip(counts[:, column], shares[:, column], strict=True)
                ]
                axes.bar_label(bars, labels, label_type="center", color=INK, fontsize=9)
                start += shares[:, column]
            axes.set_title(HEADINGS[measure])
            axes.grid(visible=False)
            axes.spines["bottom"].set_visible(False)
            axes.set_xticks([])
            axes.set_xlim(0.0, 1.0)
        panels[0].set_yticks(range(len(baselines)), baselines)
        panels[0].set_ylim(len(baselines) - 0.5, -0.5)
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=3, handlelength=1.0)
        return render(figure, escape(title))


def budgets_chart(cells: Sequence[BudgetCell], systems: Sequence[str], title: str) -> str:
    """A line per system: evidence recall against the mean tokens of its packs, with `adaptive`'s interval."""
    with drawing(_WIDTH, 3.8) as (figure, (axes,)):
        for system in reversed(systems):
            own = [cell for cell in cells if cell.system == system]
            colour, mark = _look(system, systems)
            tokens, means = [cell.tokens for cell in own], [cell.recall.mean for cell in own]
            strong = system == ADAPTIVE
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


def _look(system: str, systems: Sequence[str]) -> tuple[str, str]:
    """Colour and mark of a system: the first of each for `adaptive`, the same in all charts."""
    ordered = sorted(systems, key=lambda name: name != ADAPTIVE)
    at = ordered.index(system) % len(SERIES)
    return SERIES[at], _MARKS[at]
