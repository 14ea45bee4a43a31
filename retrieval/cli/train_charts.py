"""The charts of `trivet train`: are probabilities what they say, and what is taken for what."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from classifier.intents import INTENTS
from classifier.training.calibration import Bin
from classifier.training.custom import Trained
from retrieval.evaluation.svg import FAINT, INK, PAPER, SERIES, drawing, render

_STYLE = """<style>
:root { --ink: #1b1f24; --line: #d0d7de; --paper: #ffffff; --series-1: #0969da; background: #ffffff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --line: #3d444d; --paper: #0d1117; --series-1: #4493f8; background: #0d1117; }
}
</style>"""


def write_charts(out: Path, trained: Trained, html: Path | None) -> None:
    """Write `calibration.svg` and `confusion.svg` into the folder, and a page with both where one is wanted."""
    charts = calibration_chart(trained.reliability), confusion_chart(trained.with_embedding.confusion)
    for name, chart in zip(("calibration.svg", "confusion.svg"), charts, strict=True):
        (out / name).write_text(_alone(chart), encoding="utf-8")
    if html is not None:
        html.parent.mkdir(parents=True, exist_ok=True)
        html.write_text(_page(trained, charts), encoding="utf-8")


def calibration_chart(bins: Sequence[Bin]) -> str:
    """Accuracy against confidence; the marks grow with the number of predictions."""
    total = sum(each.count for each in bins)
    with drawing(5.0, 4.4) as (figure, (axes,)):
        axes.plot([0, 1], [0, 1], color=INK, linewidth=1.0)
        for each in bins:
            size = 5.0 + 15.0 * (each.count / total) ** 0.5
            axes.plot(each.confidence, each.accuracy, "o", color=SERIES[0], markeredgecolor=PAPER, markersize=size)
        axes.set_xlim(0.2, 1.02)
        axes.set_ylim(-0.02, 1.05)
        axes.set_xlabel("confidence")
        axes.set_title("share that was right")
        return render(figure, "Reliability of the probabilities")


def confusion_chart(confusion: Sequence[Sequence[int]]) -> str:
    """Truth by prediction: the stronger a square, the larger its share of the row."""
    names = [intent.replace("_", " ") for intent in INTENTS]
    places = range(len(names))
    with drawing(6.0, 4.4) as (figure, (axes,)):
        for row in places:
            total = max(1, sum(confusion[row]))
            for column in places:
                share = confusion[row][column] / total
                axes.barh(row, 0.96, left=column - 0.48, height=0.94, color=SERIES[0], alpha=0.65 * share)
                axes.text(column, row, str(confusion[row][column]), ha="center", va="center", color=INK)
        axes.set_xticks(places, names)
        axes.set_yticks(places, names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.grid(visible=False)
        axes.spines["bottom"].set_edgecolor(FAINT)
        axes.set_xlabel("prediction")
        axes.set_title("truth")
        return render(figure, "What was taken for what")


def _alone(svg: str) -> str:
    """The chart as a file that needs no page around it."""
    start = svg.index(">") + 1
    return f"{svg[:start]}{_STYLE}{svg[start:]}\n"


def _page(trained: Trained, charts: Sequence[str]) -> str:
    """The figures and the charts as one HTML file that needs nothing else."""
    figures = trained.with_embedding
    rows = [
        ("given queries", str(trained.queries)),
        ("Trivet's queries", str(trained.base)),
        ("macro-F1", f"{figures.macro_f1:.3f}"),
        ("accuracy", f"{figures.accuracy:.3f}"),
        ("expected calibration error", f"{figures.ece:.3f}"),
        *((f"F1 {name}", f"{figures.f1[name]:.3f}") for name in INTENTS),
        ("seed", str(trained.seed)),
        ("sha256 of intent.onnx", trained.sha256),
    ]
    table = "\n".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    style = (
        "body { font: 16px/1.5 sans-serif; color: var(--ink); max-width: 60rem; margin: 2rem auto; padding: 0 1rem }"
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Intent classifier</title>{_STYLE}
<style>{style} th {{ text-align: left; padding-right: 2rem }} td {{ overflow-wrap: anywhere }}</style></head>
<body><h1>Intent classifier</h1>
<p>{trained.folds}-fold cross-validation on the given queries, with their embeddings.</p>
<table>{table}</table>
{"".join(charts)}
</body></html>
"""
