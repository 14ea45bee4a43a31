"""Bars of the HTML report: queries that are won, tied and lost, in all and by group."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from retrieval.evaluation.comparisons import MEASURES, Versus, pair_names
from retrieval.evaluation.outcomes import Outcome
from retrieval.evaluation.svg import drawing, render, stacked_bars
from retrieval.evaluation.tables import HEADINGS

PANELS = 3
"""Most pairs that find room side by side."""

_WIDTH = 9.0
_ROW = 0.34
"""Inches per row of a chart."""

_DIGIT = 0.03
"""The share of a bar that a digit takes where two charts stand side by side."""


def outcomes_chart(tests: Sequence[Versus], title: str) -> str:
    """A bar per pair: the share of queries that are won, tied and lost, in each measure."""
    names = pair_names(tests)
    with drawing(_WIDTH, 1.1 + _ROW * len(names), panels=len(MEASURES)) as (figure, panels):
        for axes, measure in zip(panels, MEASURES, strict=True):
            chosen = [test.comparison for test in tests if test.measure == measure]
            counts = np.array([[found.wins, found.ties, found.losses] for found in chosen])
            labels = [[str(count) for count in row] for row in counts]
            stacked_bars(axes, counts / counts.sum(axis=1, keepdims=True), labels, room=_DIGIT)
            axes.set_title(HEADINGS[measure])
        panels[0].set_yticks(range(len(names)), list(names.values()))
        panels[0].set_ylim(len(names) - 0.5, -0.5)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, handlelength=1.0)
        return render(figure, escape(title))


def groups_charts(tests: Sequence[Versus], outcomes: Sequence[Outcome], title: str) -> list[str]:
    """Charts of a few panels, one per pair, with a bar per group of queries: those won, tied and lost in nDCG@10."""
    names = pair_names(tests)
    found = [outcome for outcome in outcomes if outcome.measure == MEASURES[0]]
    groups = {outcome.group: f"{outcome.group} ({outcome.queries})" for outcome in found}
    charts = []
    for some in np.array_split(np.array(list(names), dtype=object), -(-len(names) // PANELS)):
        with drawing(_WIDTH, 1.1 + _ROW * len(groups), panels=len(some)) as (figure, panels):
            for axes, pair in zip(panels, some, strict=True):
                own = [outcome for outcome in found if outcome.pair == pair]
                shares = np.array([[outcome.won, outcome.tied, outcome.lost] for outcome in own])
                labels = [[f"{share:.0%}" for share in row] for row in shares]
                stacked_bars(axes, shares, labels, room=_DIGIT * len(some) / 2)
                axes.set_title(names[pair])
            panels[0].set_yticks(range(len(groups)), list(groups.values()))
            panels[0].set_ylim(len(groups) - 0.5, -0.5)
            figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, handlelength=1.0)
            charts.append(render(figure, escape(f"{title}: {', '.join(some)}")))
    return charts
