"""The report of a tuning: sentences, tables, the page."""

from __future__ import annotations

import random
from contextlib import nullcontext

import numpy as np
import pytest
from msgspec.structs import replace

from classifier.intents import INTENTS, Intent
from retrieval.profiles.gate import Trial, judge
from retrieval.reporting.table import aligned
from retrieval.reporting.tuning import gate_lines, group_tables, headline, outcome, recipe_table, score_table
from retrieval.reporting.tuning_page import page
from retrieval.tuning.fitting import Baselines, TuningPlan, tune
from retrieval.tuning.runs import SavedQuery, legs_key
from retrieval.tuning.summary import Tuning, reliability_of
from retrieval.types.search import Leg
from tests.tuned import BASE, found_by, sure


def queries(count: int = 60) -> list[SavedQuery]:
    """Of two kinds and intents; BM25 has the gold, the labels are right for three in four."""
    rng = random.Random(0)
    found = []
    for number in range(count):
        read = Intent.PREFERENCE if number % 3 else Intent.FACT_LOOKUP
        labelled = read if number % 4 else Intent.RELATIONSHIP
        query = found_by(Leg.BM25, number, rng, probabilities=sure(read), intent=labelled)
        found.append(replace(query, type="<why>" if number % 2 else "when"))
    return found


@pytest.fixture(scope="module")
def better() -> Tuning:
    baselines = Baselines(base=BASE, baseline=BASE, live=BASE, next_version=3, models=())
    plan = TuningPlan(
        name="mine", folds=2, seed=0, source="toy", skipped=0, watch=lambda *_: nullcontext(lambda _: None)
    )
    return tune({legs_key(BASE): queries()}, baselines, plan, started=0.0)


def test_what_was_found_is_told(better: Tuning) -> None:
    assert better.improved
    assert better.profile.label == "mine@3"
    assert headline(better).startswith("60 queries (toy 60), 2 folds, seed 0, ")
    assert headline(replace(better, sets={"toy": 1})).startswith("1 query (toy 1), ")
    skipping = replace(better, skipped=3)
    assert headline(skipping).startswith("60 queries (toy 60), 3 without relevant memories skipped, 2 folds, ")
    assert outcome(better).startswith("found, not stored: trust ")
    assert outcome(replace(better, label="mine@3")).startswith("stored as mine@3: ")
    assert gate_lines(better.gate) == ["gate: passed; mine@3 is not worse than default@3 fixed"]
    assert [score.system for score in better.scores] == [
        "equal weights",
        "default@3 fixed",
        "default@3",
        "tuned (held out)",
    ]
    assert better.gate.live == "default@3"
    assert better.gate.against_live is not None
    assert "tuned (held out)" in aligned(score_table(better))
    assert [row[0] for row in recipe_table(better.profile, "t").rows] == ["fixed", *(each.value for each in INTENTS)]


def test_groups_are_types_then_labelled_intents(better: Tuning) -> None:
    by_type, by_intent = group_tables(better)
    assert by_type.title == "tuned (held out) against default@3 fixed, by type"
    assert {row[0]: row[1] for row in by_type.rows} == {"when": "30", "<why>": "30"}
    assert {row[0]: row[1] for row in by_intent.rows} == {"relationship": "15", "fact_lookup": "15", "preference": "30"}
    assert {group.name: group.comparison.n for group in better.groups if group.by == "type"} == {
        "when": 30,
        "<why>": 30,
    }


def test_the_page_has_every_chart_and_escapes_names(better: Tuning) -> None:
    text = page(better)
    assert text.count("<svg ") == 4
    assert "<why>" not in text
    assert "&lt;why&gt;" in text
    assert "prefers-color-scheme: dark" in text
    assert "Not shown" not in text
    assert "Not shown: fewer than 20" in page(replace(better, reliability=None))


def test_a_refusal_gives_its_reasons() -> None:
    trial = Trial(sets=["s"] * 60, intents=["preference"] * 60, candidate=np.zeros(60), baseline=np.ones(60))
    worse = replace(BASE, name="worse", version=1)
    report = judge(trial, candidate=worse, baseline="default@3 fixed", live=None, folds=0, seed=0)
    assert (report.passed, report.candidate, report.folds) == (False, "worse@1", 0)
    first, *reasons = gate_lines(report)
    assert first == "gate: refused worse@1"
    assert any("over all 60 queries" in reason for reason in reasons)


def test_nothing_better_is_told(better: Tuning) -> None:
    assert outcome(replace(better, improved=False)) == "nothing better than default@3 was found; no version was stored"


def test_the_page_has_no_verdict_on_a_version_that_was_not_found(better: Tuning) -> None:
    assert "gate: passed" in page(better)
    nothing = page(replace(better, improved=False, label=None))
    assert "gate:" not in nothing
    assert "recipes of default@3" in nothing
    assert "recipes of mine@3" in page(replace(better, label="mine@3"))


def test_reliability_bins_by_confidence() -> None:
    """Three in four of the certain ones are right; with few labels there is no diagram."""
    bins = reliability_of(queries())
    assert bins is not None
    (only,) = bins
    assert (only.n, only.confidence, only.accuracy) == (60, 1.0, 0.75)
    assert reliability_of(queries(19)) is None
    assert reliability_of([replace(query, intent=None) for query in queries()]) is None
