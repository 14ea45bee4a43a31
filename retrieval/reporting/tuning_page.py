"""A tuning as an HTML page."""

from __future__ import annotations

from collections.abc import Iterator

from retrieval.reporting.charts import Series, line_chart, mixtures_chart, outcome_bars, reliability_chart
from retrieval.reporting.page import Fact, PageSection, Part, render_page
from retrieval.reporting.tuning import (
    gate_lines,
    gate_table,
    group_tables,
    headline,
    outcome,
    recipe_table,
    score_table,
)
from retrieval.tuning.summary import HELD_OUT, LEAST_LABELLED, Tuning

_METHOD = (
    "Every query is scored by a profile that was fitted without its fold. Means with 95 % bootstrap intervals; "
    "differences are paired, their p is that of a randomisation test, uncorrected."
)
_LANDSCAPES = (
    "The score of every mixture of the legs, at the chosen k, fan-out and trust; the ring is the profile's mixture. "
    "With trust 1 only the learned weights count, and all mixtures score the same."
)


def page(tuning: Tuning) -> str:
    """The report as HTML."""
    facts: dict[str, Fact] = {
        "date": tuning.date,
        "learned from": tuning.source,
        "started from": tuning.base,
        "parameters": {"": tuning.profile.fingerprint},
        "versions": ", ".join(f"{name} {version}" for name, version in tuning.versions.items()),
        "models": tuning.models,
    }
    lead = [Part(text=outcome(tuning)), Part(text=headline(tuning), soft=True), Part(text=_METHOD, soft=True)]
    return render_page(f"Tuning of {tuning.profile.name}", lead, facts, list(_sections(tuning)))


def _sections(tuning: Tuning) -> Iterator[PageSection]:
    yield PageSection(heading="The scores", parts=[Part(tables=[score_table(tuning)])])

    if tuning.improved:  # otherwise the gate's report is about a version that does not exist
        first, *reasons = gate_lines(tuning.gate)
        gate = [Part(verdicts=[(first, not tuning.gate.passed)]), *(Part(text=reason.strip()) for reason in reasons)]
        yield PageSection(heading="The gate", parts=[*gate, Part(tables=[gate_table(tuning.gate)])])

    landscapes = {each.name.replace("_", " "): (each.mixtures, each.ndcg, each.chosen) for each in tuning.landscapes}
    mixtures = mixtures_chart(landscapes, "nDCG@10 of mixtures by intent")
    shown = (tuning.label or "the profile found") if tuning.improved else tuning.base
    recipes = Part(tables=[recipe_table(tuning.profile, f"recipes of {shown}")])
    yield PageSection(heading="The profile", parts=[recipes, Part(svg=mixtures, caption=_LANDSCAPES)])

    names = [f"{each.by} {each.name} ({each.comparison.n})" for each in tuning.groups]
    counts = [[each.comparison.wins, each.comparison.ties, each.comparison.losses] for each in tuning.groups]
    bars = outcome_bars({"": counts}, names, "queries won, tied and lost by type and intent")
    caption = f"Queries that {HELD_OUT} wins, ties and loses against {tuning.gate.baseline}"
    groups = Part(svg=bars, caption=caption, tables=group_tables(tuning), fold="figures")
    yield PageSection(heading="Where it wins and loses", parts=[groups])

    found, learned_from = [point.ndcg for point in tuning.curve], [point.queries for point in tuning.curve]
    tuned = Series.from_estimates("tuned, held out", found, learned_from)
    others = {score.system: score.ndcg.mean for score in tuning.scores if score.system != HELD_OUT}
    curve = line_chart([tuned], "nDCG@10", "queries that were learned from", "learning curve", levels=others)
    caption = "Held-out quality by how many queries were learned from"
    yield PageSection(heading="Would more queries help?", parts=[Part(svg=curve, caption=caption)])

    if tuning.reliability is None:
        sure = Part(text=f"Not shown: fewer than {LEAST_LABELLED} of the queries have a labelled intent.")
    else:
        bins = [(each.n, each.confidence, each.accuracy) for each in tuning.reliability]
        caption = "A dot per tenth of confidence, with its number of queries"
        sure = Part(svg=reliability_chart(bins, "reliability of the intents"), caption=caption, narrow=True)
    yield PageSection(heading="Are the intents' probabilities what they say?", parts=[sure])
