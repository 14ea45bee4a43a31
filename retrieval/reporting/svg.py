"""Charts as SVG that takes its colours from the page around it."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

INK, FAINT, PAPER = "#010101", "#020202", "#030303"
"""Text and axes; grid lines; the background: placeholders, for which `render` inserts the page's CSS variables."""

SERIES = tuple(f"#0401{number:02x}" for number in range(1, 9))
"""Colours of the data, the first for the judged system."""

WIN, TIE, LOSS = "#050101", "#050102", "#050103"

_VARIABLES = {
    INK: "--ink",
    FAINT: "--line",
    PAPER: "--paper",
    WIN: "--win",
    TIE: "--tie",
    LOSS: "--loss",
    **{colour: f"--series-{number}" for number, colour in enumerate(SERIES, start=1)},
}
_STYLE: dict[Any, Any] = {  # the type of the keys differs between releases of matplotlib
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "text.parse_math": False,  # names of sets, types and systems may contain "$"
    "axes.edgecolor": FAINT,
    "axes.facecolor": "none",
    "axes.labelcolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.8,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "figure.facecolor": "none",
}


@contextmanager
def drawing(width: float, height: float, *, panels: int = 1) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure, with its size in inches, and panels side by side that share their vertical axis."""
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots(1, panels, sharey=True, squeeze=False)
        yield figure, list(axes[0])


def render(figure: Figure, label: str) -> str:
    """The figure as an `svg` element with an accessible name, given unescaped. Call it within `drawing`."""
    label, buffer = escape(label), io.StringIO()
    # ids must differ between the charts of a page, and be the same for the same chart
    with matplotlib.rc_context({"svg.hashsalt": label}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r' id="(?:figure|axes|patch|text|line2d|matplotlib\.axis|xtick|ytick|legend)_\d+"', "", svg)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    return svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)


def standalone(svg: str) -> str:
    """The `svg` element as a separate file, with the colours of the pages' style sheet."""
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8").partition("\n* {")[0]
    end = svg.index(">") + 1
    return f"{svg[:end]}<style>{style}</style>{svg[end:]}\n"
