"""The charts of `trivet train`: calibration of the probabilities, and confusion of the intents."""

from __future__ import annotations

from pathlib import Path

from classifier.intents import INTENTS
from classifier.training.custom import TrainedClassifier
from retrieval.reporting.charts import confusion_chart, reliability_chart
from retrieval.reporting.page import Fact, PageSection, Part, render_page
from retrieval.reporting.svg import standalone


def write_charts(out: Path, trained: TrainedClassifier, html: Path | None) -> None:
    """Write `calibration.svg` and `confusion.svg` into the folder, and a page with both if `html` is given."""
    figures, intents = trained.with_embedding, [intent.replace("_", " ") for intent in INTENTS]
    bins = [(each.count, each.confidence, each.accuracy) for each in trained.reliability]
    calibration = reliability_chart(bins, "Reliability of the probabilities")
    confusion = confusion_chart(figures.confusion, intents, "What was taken for what")
    for name, chart in (("calibration.svg", calibration), ("confusion.svg", confusion)):
        (out / name).write_text(standalone(chart), encoding="utf-8")
    if html is None:
        return
    facts: dict[str, Fact] = {
        "given queries": str(trained.queries),
        "Trivet's queries": str(trained.base),
        "macro-F1": _beside(figures.macro_f1, trained.shipped.macro_f1),
        "accuracy": _beside(figures.accuracy, trained.shipped.accuracy),
        "expected calibration error": _beside(figures.ece, trained.shipped.ece),
        **{f"F1 {name}": _beside(figures.f1[name], trained.shipped.f1[name]) for name in INTENTS},
        "seed": str(trained.seed),
        "sha256 of intent.onnx": {"": trained.sha256},
    }
    remark = f"{trained.folds}-fold cross-validation on the given queries, with their embeddings."
    charts = [
        Part(svg=calibration, caption="How often the likeliest intent is right, by how sure the model is", narrow=True),
        Part(svg=confusion, caption="Truth by prediction"),
    ]
    sections = [PageSection(heading="Held-out queries", parts=charts)]
    html.write_text(render_page("Intent classifier", [Part(text=remark)], facts, sections), encoding="utf-8")


def _beside(value: float, shipped: float) -> str:
    return f"{value:.3f} (Trivet's own classifier: {shipped:.3f})"
