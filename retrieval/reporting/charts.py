"""The charts of all reports, from plain numbers to `svg` elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from retrieval.reporting.svg import INK, LOSS, PAPER, SERIES, TIE, WIN, drawing, render
from retrieval.types.evaluation import Estimate

_WIDTH = 9.0
_ROW = 0.34
"""Inches per row of a chart."""

_DIGIT = 0.015
"""The width of a digit as a share of the whole bar, by number of panels side by side."""

_MARKS = "osD^vPX*"
_LEGEND_COLUMNS = 4

_HEIGHT = 3**0.5 / 2
_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, _HEIGHT]])
"""The corners of the triangle, for one leg alone: vector, bm25, graph."""

_COLOURS = "viridis"
"""Readable on light and dark backgrounds and by colour-blind people."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """The values of one system; the first of several is highlighted. `low` and `high` are optional bounds."""

    name: str
    values: Sequence[float]
    at: Sequence[float] = ()
    low: Sequence[float] = ()
    high: Sequence[float] = ()

    @classmethod
    def from_estimates(
        cls, name: str, found: Sequence[Estimate], at: Sequence[float] = (), *, bounds: bool = True
    ) -> Series:
        """The means, and their bounds if wanted."""
        bounded = found if bounds else ()
        low, high = [each.low for each in bounded], [each.high for each in bounded]
        return cls(name=name, values=[each.mean for each in found], at=at, low=low, high=high)


def interval_rows(panels: Mapping[str, Mapping[str, tuple[Estimate, bool]]], label: str) -> str:
    """A panel per measure, a row per name: its interval, and its mean as a mark that is filled if significant."""
    names = list(next(iter(panels.values())))
    with drawing(_WIDTH, 0.9 + _ROW * len(names), panels=len(panels)) as (figure, axes_of):
        for axes, (title, rows) in zip(axes_of, panels.items(), strict=True):
            axes.axvline(0.0, color=INK, linewidth=1.0)
            for row, (found, sure) in enumerate(rows.values()):
                axes.plot([found.low, found.high], [row, row], color=SERIES[0], linewidth=2.0)
                axes.plot(found.mean, row, "o", color=SERIES[0], markerfacecolor=SERIES[0] if sure else PAPER)
            axes.set_title(title)
            axes.grid(axis="y", visible=False)
            axes.margins(x=0.08)
            axes.locator_params(axis="x", nbins=6)
        _name_rows(axes_of[0], names)
        return render(figure, label)


def dot_rows(names: Sequence[str], series: Sequence[Series], title: str, label: str) -> str:
    """A row per name with a dot per system, and its interval if there is one."""
    rows = range(len(names))
    with drawing(_WIDTH, 0.8 + _legend_height(len(series)) + _ROW * len(names)) as (figure, (axes,)):
        for number, each in reversed(list(enumerate(series))):
            (colour, mark), order = _look(number), 2 + (number == 0)
            if each.low:
                axes.hlines(rows, each.low, each.high, color=colour, linewidth=2, zorder=order)
            size = 6 if number else 8
            axes.plot(each.values, rows, mark, color=colour, label=each.name, markersize=size, zorder=order)
        _name_rows(axes, names, grid=True)
        axes.set_title(title)
        _legend(figure, axes, reverse=True)
        return render(figure, label)


def line_chart(
    series: Sequence[Series],
    title: str,
    below: str,
    label: str,
    *,
    ticks: Mapping[int, str] | None = None,
    levels: Mapping[str, float] | None = None,
) -> str:
    """A line per system with its bounds shaded; `ticks` make the lower axis logarithmic, `levels` are constants."""
    with drawing(_WIDTH, 3.3 + _legend_height(len(series) + len(levels or {}))) as (figure, (axes,)):
        for number, each in reversed(list(enumerate(series))):
            colour, mark = _look(number)
            if each.low:
                axes.fill_between(each.at, each.low, each.high, color=colour, alpha=0.15, linewidth=0)
            width, order = (1.4, 2) if number else (2.4, 3)
            axes.plot(each.at, each.values, f"{mark}-", color=colour, label=each.name, linewidth=width, zorder=order)
        for (name, level), colour in zip((levels or {}).items(), SERIES[len(series) :], strict=False):
            axes.axhline(level, color=colour, label=name, linewidth=1.6)
        if ticks is None:
            axes.set_xlim(left=0.0)
        else:
            axes.set_xscale("log")
            axes.set_xticks(list(ticks), list(ticks.values()))
            axes.minorticks_off()
            axes.set_ylim(bottom=0.0)
        axes.set_xlabel(below)
        axes.set_title(title)
        _legend(figure, axes, reverse=not levels)
        return render(figure, label)


def outcome_bars(
    panels: Mapping[str, Sequence[Sequence[float]]], names: Sequence[str], label: str, *, percent: bool = False
) -> str:
    """A bar per name of wins, ties and losses, in numbers or per cent; panels side by side."""
    with drawing(_WIDTH, 1.1 + _ROW * len(names), panels=len(panels)) as (figure, axes_of):
        for axes, (title, counts) in zip(axes_of, panels.items(), strict=True):
            table = np.array(counts, np.float64)
            shares = table / table.sum(axis=1, keepdims=True)
            start = np.zeros(len(shares))
            for column, (colour, name) in enumerate([(WIN, "won"), (TIE, "tied"), (LOSS, "lost")]):
                width = shares[:, column]
                drawn: dict[str, Any] = {"color": colour, "label": name, "edgecolor": PAPER, "linewidth": 1.5}
                bars = axes.barh(range(len(names)), width, left=start, height=0.7, **drawn)
                texts = [f"{each:.0%}" if percent else f"{each:.0f}" for each in table[:, column]]
                room = [_DIGIT * len(panels) * len(text) for text in texts]
                shown = [
                    text if 0 < share >= least else "" for text, share, least in zip(texts, width, room, strict=True)
                ]
                axes.bar_label(bars, shown, label_type="center", color=INK, fontsize=9)
                start += width
            axes.grid(visible=False)
            axes.spines["bottom"].set_visible(False)
            axes.set_xticks([])
            axes.set_xlim(0.0, 1.0)
            axes.set_title(title)
        _name_rows(axes_of[0], names)
        _legend(figure, axes_of[0])
        return render(figure, label)


def bar_chart(values: Mapping[str, float], title: str, label: str, *, upper: Sequence[float] = ()) -> str:
    """A bar per name with a line up to `upper`; without `upper`, a logarithmic axis and the first bar highlighted."""
    rows = range(len(values))
    with drawing(_WIDTH, 0.8 + _ROW * len(values)) as (figure, (axes,)):
        colours = [SERIES[0] if upper or not row else SERIES[7] for row in rows]
        bars = axes.barh(rows, list(values.values()), color=colours, height=0.6)
        if upper:
            axes.hlines(rows, list(values.values()), upper, color=INK)
        else:
            axes.bar_label(bars, [f"{value:.1f}" for value in values.values()], padding=4, color=INK)
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter("{x:g}")
            axes.margins(x=0.1)
        _name_rows(axes, list(values))
        axes.set_title(title)
        return render(figure, label)


def mixtures_chart(
    landscapes: Mapping[str, tuple[Sequence[Sequence[float]], Sequence[float], Sequence[float]]], label: str
) -> str:
    """A triangle per name: mixtures (n, 3) of the legs, coloured by quality, and the chosen one."""
    with drawing(_WIDTH, 2.3, panels=len(landscapes)) as (figure, panels):
        for axes, (title, (mixtures, worth, chosen)) in zip(panels, landscapes.items(), strict=True):
            at = np.array(mixtures) @ _CORNERS
            dots = axes.scatter(at[:, 0], at[:, 1], c=worth, cmap=_COLOURS, s=14, linewidths=0)
            ring: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": INK, "markeredgewidth": 2}
            axes.plot(*(np.array(chosen) @ _CORNERS), "o", markersize=9, **ring)
            for leg, (x, y), lift in zip(("vector", "bm25", "graph"), _CORNERS, (-0.07, -0.07, 0.04), strict=True):
                axes.text(x, y + lift, leg, ha="center", va="center", fontsize=8)
            axes.set_title(title, fontsize=9)
            axes.set_xlim(-0.15, 1.15)
            axes.set_ylim(-0.15, _HEIGHT + 0.12)
            axes.set_aspect("equal")
            axes.set_axis_off()
            low, high = min(worth), max(worth)
            bar = figure.colorbar(dots, ax=axes, orientation="horizontal", shrink=0.8, ticks=[low, high], pad=0.0)
            bar.ax.set_xticklabels([f"{low:.3f}", f"{high:.3f}"], fontsize=8)
        return render(figure, label)


def reliability_chart(bins: Sequence[tuple[int, float, float]], label: str) -> str:
    """Accuracy against confidence: a dot per bin of (count, confidence, accuracy), larger for more predictions."""
    with drawing(_WIDTH / 2, 3.6) as (figure, (axes,)):
        axes.plot([0.0, 1.0], [0.0, 1.0], color=INK, linewidth=1.0)
        counts, confidences, accuracies = zip(*bins, strict=True)
        sizes = [30 + 170 * count / max(counts) for count in counts]
        axes.scatter(confidences, accuracies, s=sizes, color=SERIES[0], edgecolors=PAPER, zorder=3)
        for count, confidence, accuracy in bins:
            axes.annotate(str(count), (confidence, accuracy), xytext=(8, -10), textcoords="offset points")
        axes.set_xlim(0.2, 1.02)
        axes.set_ylim(-0.02, 1.05)
        axes.set_xlabel("confidence")
        axes.set_title("share that is right")
        return render(figure, label)


def confusion_chart(confusion: Sequence[Sequence[int]], names: Sequence[str], label: str) -> str:
    """Truth by prediction: the stronger the colour, the larger the share of the row."""
    with drawing(6.0, 4.4) as (figure, (axes,)):
        for row, counts in enumerate(confusion):
            for column, count in enumerate(counts):
                strength = 0.65 * count / max(1, sum(counts))
                axes.barh(row, 0.96, left=column - 0.48, height=0.94, color=SERIES[0], alpha=strength)
                axes.text(column, row, str(count), ha="center", va="center", color=INK)
        axes.set_xticks(range(len(names)), names)
        _name_rows(axes, names)
        axes.grid(visible=False)
        axes.set_xlabel("prediction")
        axes.set_title("truth")
        return render(figure, label)


def _name_rows(axes: Axes, names: Sequence[str], *, grid: bool = False) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    if not grid:
        axes.grid(axis="y", visible=False)


def _look(number: int) -> tuple[str, str]:
    """Colour and mark of a system. From the ninth on, colours repeat with other marks: no two look alike."""
    return SERIES[number % len(SERIES)], _MARKS[(number + number // len(SERIES)) % len(_MARKS)]


def _legend_height(names: int) -> float:
    """Inches that a legend takes."""
    return 0.3 * -(-names // _LEGEND_COLUMNS)


def _legend(figure: Any, axes: Axes, *, reverse: bool = False) -> None:
    """Below the chart, in the order of the systems; `reverse` if they were drawn in the opposite order."""
    handles, labels = axes.get_legend_handles_labels()
    step = -1 if reverse else 1
    columns = min(_LEGEND_COLUMNS, len(labels))
    figure.legend(
        handles[::step], labels[::step], loc="outside lower center", ncols=columns, handlelength=1.0, handletextpad=0.4
    )
