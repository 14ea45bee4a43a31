"""The charts of a tuning's report: mixtures per intent, wins and losses, the learning curve, reliability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from retrieval.evaluation.svg import INK, PAPER, SERIES, drawing, render, stacked_bars
from retrieval.tuning.summary import Bin, Group, Landscape, Point

_WIDTH = 9.0
_ROW = 0.34
"""Inches per row of a chart."""

_DIGIT = 0.015
"""The share of a bar that a digit takes."""

_HEIGHT = 3**0.5 / 2
_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, _HEIGHT]])
"""Where a mixture of one leg alone stands: vector, bm25, graph."""

_COLOURS = "viridis"
"""Readable on light and on dark paper, and without telling red from green."""


def landscapes_chart(landscapes: Sequence[Landscape], title: str) -> str:
    """A triangle per intent: every mixture that was tried, coloured by what it is worth, and the chosen one."""
    names = ("vector", "bm25", "graph")
    with drawing(_WIDTH, 2.3, panels=len(landscapes)) as (figure, panels):
        for axes, each in zip(panels, landscapes, strict=True):
            at = np.array(each.mixtures) @ _CORNERS
            chosen = np.array(each.chosen) @ _CORNERS
            dots = axes.scatter(at[:, 0], at[:, 1], c=each.ndcg, cmap=_COLOURS, s=14, linewidths=0)
            axes.plot(*chosen, "o", markersize=9, markerfacecolor="none", markeredgecolor=INK, markeredgewidth=2)
            for name, corner, lift in zip(names, _CORNERS, (-0.07, -0.07, 0.04), strict=True):
                axes.text(corner[0], corner[1] + lift, name, ha="center", va="center", fontsize=8)
            axes.set_title(each.name.replace("_", " "), fontsize=9)
            axes.set_xlim(-0.15, 1.15)
            axes.set_ylim(-0.15, _HEIGHT + 0.12)
            axes.set_aspect("equal")
            axes.set_axis_off()
            low, high = min(each.ndcg), max(each.ndcg)
            bar = figure.colorbar(dots, ax=axes, orientation="horizontal", shrink=0.8, ticks=[low, high], pad=0.0)
            bar.ax.set_xticklabels([f"{low:.3f}", f"{high:.3f}"], fontsize=8)
        return render(figure, escape(title))


def groups_chart(groups: Sequence[Group], title: str) -> str:
    """A bar per type and intent: the queries that are won, tied and lost against the baseline."""
    counts = np.array([[each.comparison.wins, each.comparison.ties, each.comparison.losses] for each in groups])
    labels = [[str(count) for count in row] for row in counts]
    with drawing(_WIDTH, 1.1 + _ROW * len(groups)) as (figure, (axes,)):
        stacked_bars(axes, counts / counts.sum(axis=1, keepdims=True), labels, room=_DIGIT)
        axes.set_yticks(range(len(groups)), [f"{each.by} {each.name} ({each.comparison.n})" for each in groups])
        axes.set_ylim(len(groups) - 0.5, -0.5)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, handlelength=1.0)
        return render(figure, escape(title))


def curve_chart(points: Sequence[Point], others: Mapping[str, float], title: str) -> str:
    """Held-out nDCG@10 by the number of queries that were learned from, beside that of other systems."""
    with drawing(_WIDTH, 3.2) as (figure, (axes,)):
        queries = [point.queries for point in points]
        lows, highs = [point.ndcg.low for point in points], [point.ndcg.high for point in points]
        axes.fill_between(queries, lows, highs, color=SERIES[0], alpha=0.15, linewidth=0)
        means = [point.ndcg.mean for point in points]
        axes.plot(queries, means, "o-", color=SERIES[0], label="tuned, held out", linewidth=2)
        for (name, mean), colour in zip(others.items(), SERIES[1:], strict=False):
            axes.axhline(mean, color=colour, label=name, linewidth=1.6)
        axes.set_xlabel("queries that were learned from")
        axes.set_title("nDCG@10")
        axes.set_xlim(left=0.0)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return render(figure, escape(title))


def reliability_chart(bins: Sequence[Bin], title: str) -> str:
    """How often the likeliest intent is the labelled one, by how sure the classifier is; a bin per dot."""
    with drawing(_WIDTH / 2, 3.6) as (figure, (axes,)):
        axes.plot([0.0, 1.0], [0.0, 1.0], color=INK, linewidth=1.0)
        most = max(each.n for each in bins)
        axes.scatter(
            [each.confidence for each in bins],
            [each.accuracy for each in bins],
            s=[30 + 170 * each.n / most for each in bins],
            color=SERIES[0],
            edgecolors=PAPER,
            zorder=3,
        )
        for each in bins:
            axes.annotate(str(each.n), (each.confidence, each.accuracy), xytext=(8, -10), textcoords="offset points")
        axes.set_xlim(0.2, 1.02)
        axes.set_ylim(0.0, 1.05)
        axes.set_xlabel("confidence")
        axes.set_title("share that is right")
        return render(figure, escape(title))
