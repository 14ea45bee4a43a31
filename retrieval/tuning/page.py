"""A tuning as one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from retrieval.evaluation.html import document, figure
from retrieval.evaluation.tables import Table
from retrieval.tuning.charts import curve_chart, groups_chart, landscapes_chart, reliability_chart
from retrieval.tuning.summary import HELD_OUT, LEAST_LABELLED, Tuning
from retrieval.tuning.tables import (
    gate_lines,
    gate_table,
    group_tables,
    headline,
    outcome,
    recipe_table,
    score_table,
)


def write_page(path: Path, tuning: Tuning) -> None:
    """Write the report."""
    path.write_text(page(tuning), encoding="utf-8")


def page(tuning: Tuning) -> str:
    """The report as HTML."""
    title = f"Tuning of {tuning.profile.name}"
    body = [
        *_header(title, tuning),
        *_figures(tuning),
    ]
    return document(title, body)


def _header(title: str, tuning: Tuning) -> Iterator[str]:
    rows = {
        "date": escape(tuning.date),
        "learned from": escape(tuning.source),
        "started from": escape(tuning.base),
        "parameters": f"<code>{tuning.profile.fingerprint}</code>",
        "versions": escape(", ".join(f"{name} {version}" for name, version in tuning.versions.items())),
        "models": "<br>".join(f"{escape(name)} <code>{sha256}</code>" for name, sha256 in tuning.models.items()),
    }
    yield f"<header><h1>{escape(title)}</h1>"
    yield f"<p>{escape(outcome(tuning))}</p>"
    yield f'<p class="soft">{escape(headline(tuning))}</p>'
    yield (
        '<p class="soft">Every query is scored by a profile that was fitted without its fold. Means with 95 % '
        "bootstrap intervals; differences are paired, their p is that of a randomisation test, uncorrected.</p>"
    )
    yield "<dl>" + "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows.items()) + "</dl></header>"


def _figures(tuning: Tuning) -> Iterator[str]:
    first, *reasons = gate_lines(tuning.gate)
    worse = "" if tuning.gate.passed else " class=worse"
    yield f'<section><h2>The gate</h2><ul class="verdicts"><li{worse}>{escape(first)}</li></ul>'
    yield "".join(f"<p>{escape(reason.strip())}</p>" for reason in reasons)
    yield _table(gate_table(tuning.gate)) + _table(score_table(tuning)) + "</section>"
    yield "<section><h2>The profile</h2>" + _table(recipe_table(tuning.profile, "recipes"))
    caption = (
        "What every mixture of the legs is worth, at the k and fan-out that were chosen and with the trust that was; "
        "the ring is the profile's. Where the learned weights are trusted wholly, all mixtures are worth the same."
    )
    yield figure(landscapes_chart(tuning.landscapes, "nDCG@10 of mixtures by intent"), caption) + "</section>"
    yield "<section><h2>Where it wins and loses</h2>"
    yield figure(
        groups_chart(tuning.groups, "queries won, tied and lost by type and intent"),
        f"Queries that the tuned profile wins, ties and loses against {escape(tuning.gate.baseline)}",
    )
    yield f"<details><summary>figures</summary>{''.join(map(_table, group_tables(tuning)))}</details></section>"
    others = {score.system: score.ndcg.mean for score in tuning.scores if score.system != HELD_OUT}
    yield "<section><h2>Would more queries help?</h2>"
    yield figure(
        curve_chart(tuning.curve, others, "learning curve"),
        "Held-out quality by how many queries were learned from",
    )
    yield "</section><section><h2>Are the intents' probabilities what they say?</h2>"
    if tuning.reliability is None:
        yield f"<p>Not shown: fewer than {LEAST_LABELLED} of the queries have a labelled intent.</p></section>"
    else:
        chart = reliability_chart(tuning.reliability, "reliability of the intents")
        caption = "A dot per tenth of confidence, with its number of queries"
        yield figure(chart, caption, narrow=True) + "</section>"


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in table.headings)
    rows = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in table.rows)
    return f'<h3>{escape(table.title)}</h3><div class="scroll"><table><tr>{head}</tr>{rows}</table></div>'
