"""Means, tests and verdicts of an evaluation, as printed and written."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from retrieval.evaluation.comparisons import against_each, verdicts
from retrieval.evaluation.files import write_files
from retrieval.evaluation.folder import Query
from retrieval.evaluation.packs import pack_measures
from retrieval.evaluation.runner import Ingestion, JudgedAnswer
from retrieval.evaluation.scores import MACRO, ScoreTable, macro_cells, score_table, set_cells, stacked
from retrieval.evaluation.study import EvaluationPlan, Result, figures, macro
from retrieval.evaluation.summary import Evaluation, Provenance, Summary, running
from retrieval.evaluation.systems import Family, System, profiled, staged
from retrieval.evaluation.trec import read_qrels, read_run
from retrieval.reporting.evaluation import print_macro, print_report
from retrieval.reporting.evaluation_page import page
from retrieval.types.search import Mode


def answers(*rankings: Sequence[str], types: Sequence[str] = ("fact", "fact", "why")) -> list[JudgedAnswer]:
    """JudgedAnswers to three queries with the evidence `a`, of two namespaces."""
    found = []
    for number, (ranking, type_) in enumerate(zip(rankings, types, strict=True)):
        asked = Query(f"q{number}", "n" if number else "m", "?", type_, ["a", "a"])  # judged twice, relevant once
        scored = tuple((id_, 1.0 / rank) for rank, id_ in enumerate(ranking, start=1))
        found.append(JudgedAnswer(query=asked, ranking=scored, intent=None, degraded=("graph",) * number, total_ms=4.0))
    return found


GIVEN = {"bm25": answers("a", "xa", "x"), "adaptive": answers("a", "a", "xa"), "without-graph": answers("a", "x", "x")}
PLAN = EvaluationPlan(
    systems=[
        System(name="bm25", mode=Mode.BM25),
        System(name="adaptive", mode=Mode.ADAPTIVE),
        System(name="without-graph", family=Family.PART, profile="default-without-graph"),
    ],
    limit=None,
    seed=0,
    top_k=10,
    concurrency=1,
    fresh=False,
    language="auto",
    budgets=(512, 1024),
)
PROVENANCE = Provenance(
    date="2026-01-02T03:04:05+00:00",
    seed=7,
    profile="default@1",
    profiles={"bm25": "default@1", "adaptive": "default@1", "without-graph": "default-without-graph@1"},
    versions={"trivet": "1"},
    models={"a.onnx": "c0ffee"},
)


def result(
    dataset: str = "toy", given: Mapping[str, Sequence[JudgedAnswer]] = GIVEN, plan: EvaluationPlan = PLAN
) -> Result:
    """The result on a folder with these answers."""
    scores = score_table(dataset, given, 10)
    packs = ScoreTable(
        sets=scores.sets,
        queries=scores.queries,
        measures=pack_measures(PLAN.budgets),
        values={system: np.array([[0.5, 0.5, 500.0, 900.0]] * 3) for system in given},
    )
    summary = Summary(
        dataset=dataset,
        language="auto",
        embedder="all-MiniLM-L6-v2",
        skipped=1,
        sampled=False,
        namespaces=2,
        top_k=10,
        ingestion=Ingestion(counts={"created": 5}, rejected=[], seconds=0.5),
        running=running(given),
        figures=figures(scores, packs, set_cells(scores, seed=0), plan),
        provenance=PROVENANCE,
    )
    return Result(summary=summary, answers=given, scores=scores, packs=packs)


def test_cells_hold_the_means_of_their_groups() -> None:
    """Overall over queries, macro over the two namespaces, and per type."""
    found = result().summary.figures
    assert found.cell("all", "bm25").measures["mrr@10"].mean == pytest.approx((1 + 0.5 + 0) / 3)
    assert found.cell(MACRO, "bm25").measures["mrr@10"].mean == pytest.approx((1 + (0.5 + 0) / 2) / 2)
    assert found.cell("fact", "bm25").measures["recall@10"].mean == 1.0
    assert found.cell("why", "adaptive").measures["mrr@10"].mean == 0.5
    assert found.cell("why", "bm25").queries == 1


def test_a_single_namespace_has_no_macro_mean() -> None:
    """It would repeat the overall figures."""
    one = {"bm25": [answer for answer in GIVEN["bm25"] if answer.query.namespace == "n"]}
    assert {cell.group for cell in set_cells(score_table("toy", one, 10), seed=0)} == {"all", "fact", "why"}


def test_types_may_be_called_like_the_groups_of_all_queries() -> None:
    """They are separate groups, in every table and chart."""
    types = ("all", MACRO, "macro over sets")
    given = {
        name: answers(*([id_ for id_, _ in each.ranking] for each in own), types=types) for name, own in GIVEN.items()
    }
    found = result(given=given)
    cells = {cell.group: cell.queries for cell in found.summary.figures.cells}
    assert cells == {"all": 3, MACRO: 3, "all (type)": 1, f"{MACRO} (type)": 1, "macro over sets (type)": 1}
    assert {(each.group, each.queries) for each in found.summary.figures.outcomes} == {
        ("all", 3), ("all (type)", 1), (f"{MACRO} (type)", 1), ("macro over sets (type)", 1)
    }  # fmt: skip
    print_report(found.summary, Console(file=io.StringIO()))
    assert "all (type) (1)" in page(Evaluation(provenance=PROVENANCE, sets=[found.summary], macro=None))


def test_sets_count_alike_in_the_macro_mean() -> None:
    """MRR 1, .5 and 0 in one set, 1 in another of one query: the mean of .5 and 1, not of the four."""
    big = score_table("big", {"bm25": GIVEN["bm25"]}, 10)
    small = score_table("small", {"bm25": GIVEN["bm25"][:1]}, 10)
    (cell,) = macro_cells(stacked([big, small]), seed=0)
    assert cell.measures["mrr@10"].mean == pytest.approx((0.5 + 1.0) / 2)
    assert cell.queries == 4


def table(**scores: Sequence[float]) -> ScoreTable:
    """Systems with the same scores in nDCG@10 and recall@10."""
    size = len(next(iter(scores.values())))
    return ScoreTable(
        sets=("s",) * size,
        queries=tuple(Query(f"q{number}", "n", "?", "fact", ["a"]) for number in range(size)),
        measures=("ndcg@10", "recall@10"),
        values={system: np.column_stack([values, values]) for system, values in scores.items()},
    )


def test_corrections_are_over_the_tests_made_together() -> None:
    """One baseline makes two tests: the p of ten wins is doubled."""
    found = against_each(table(adaptive=[1.0] * 10, bm25=[0.0] * 10), "adaptive", ["bm25", "adaptive"], seed=0)
    assert [(test.baseline, test.measure) for test in found] == [("bm25", "ndcg@10"), ("bm25", "recall@10")]
    assert found[0].corrected_p == pytest.approx(2 * found[0].comparison.p_value)


def test_the_verdict_is_on_the_best_leg_and_equal_weights() -> None:
    """Losing every query is worse; ties and wins are not, nor are two losses, which may be chance."""
    scores = {"vector": [0.9] * 12, "bm25": [0.2] * 12, "weights=1,1,1": [0.4, 0.4] + [0.3] * 10}
    found = verdicts(table(adaptive=[0.3] * 12, **scores), "adaptive", "weights=1,1,1", seed=0)
    assert [(verdict.versus.baseline, verdict.yardstick, verdict.worse) for verdict in found] == [
        ("vector", "best single leg", True),
        ("weights=1,1,1", "equal weights", False),
    ] * 2


def test_a_system_that_did_not_run_gives_no_verdict() -> None:
    """Only what was measured is judged."""
    assert verdicts(table(adaptive=[1.0]), "adaptive", "weights=1,1,1", seed=0) == []


def test_ablations_are_a_family_of_their_own() -> None:
    """They are not among the systems that adaptive is compared with."""
    found = result().summary.figures
    assert {test.baseline for test in found.versus} == {"bm25"}
    assert {(test.system, test.baseline) for test in found.ablations} == {("adaptive", "without-graph")}
    lost = found.ablations[0].comparison
    assert (lost.queries, lost.wins, lost.ties, lost.losses) == (3, 2, 1, 0)


STAGES = replace(PLAN, systems=staged("default@1"))
STAGED = {
    "rrf-fixed": answers("x", "xa", "x"),
    "rrf-adaptive": answers("x", "a", "xa"),
    "rrf-fixed+rescorer": answers("a", "x", "a"),
    "all": answers("a", "a", "xa"),
}


def test_stages_are_held_against_each_other() -> None:
    """All stages against each other one, adaptive against fixed weights, corrected together; no other tests."""
    found = result(given=STAGED, plan=STAGES).summary.figures
    pairs = ["all - rrf-fixed", "all - rrf-adaptive", "all - rrf-fixed+rescorer", "rrf-adaptive - rrf-fixed"]
    assert [test.pair for test in found.stages if test.measure == "ndcg@10"] == pairs
    assert found.judged == "all"
    assert not any([found.versus, found.ablations, found.verdicts])
    assert min(test.comparison.p_value for test in found.stages) > 1 / len(found.stages)
    assert all(test.corrected_p == 1.0 for test in found.stages)


def test_the_last_profile_is_judged() -> None:
    """Against the other profile, the modes and the stages; adaptive keeps its verdicts."""
    systems = [*PLAN.systems[:2], *staged("p@1"), profiled("p", "p@2"), profiled("p@1", "p@1"), PLAN.systems[2]]
    plan = replace(PLAN, systems=systems)
    found = result(given={system.name: GIVEN["bm25"] for system in systems}, plan=plan).summary.figures
    assert found.judged == "profile=p@1"
    assert {test.baseline for test in found.versus} == {"bm25", "adaptive", *STAGED, "profile=p"}
    assert {test.baseline for test in found.ablations} == {"without-graph"}
    assert [verdict.versus.pair for verdict in found.verdicts] == ["adaptive - bm25"] * 2


def test_outcomes_by_type_by_hand() -> None:
    """Of the two facts a stage wins one and ties one; it ties the other query."""
    found = result(given=STAGED, plan=STAGES).summary.figures.outcomes
    rows = {(row.pair, row.measure, row.group): row for row in found}
    fact = rows["all - rrf-adaptive", "ndcg@10", "fact"]
    assert (fact.queries, fact.wins, fact.ties, fact.losses) == (2, 1, 1, 0)
    assert (fact.won, fact.tied, fact.lost) == (0.5, 0.5, 0.0)
    why = rows["all - rrf-fixed+rescorer", "ndcg@10", "why"]
    assert (why.queries, why.wins, why.ties, why.losses) == (1, 0, 0, 1)
    # a hit on the second place loses nothing in recall
    assert rows["all - rrf-fixed+rescorer", "recall@10", "why"].ties == 1
    whole = rows["all - rrf-adaptive", "ndcg@10", "all"]
    assert (whole.wins, whole.ties, whole.losses) == (1, 2, 0)


def test_outcomes_over_sets_count_sets_alike() -> None:
    """Half of two facts is won in one set, all of one in the other: three quarters on average, two in number."""
    pair = [System(name="old", profile="p@1"), System(name="new", profile="p@2")]
    given = {"old": answers("x", "a", "x")[:2], "new": answers("a", "a", "x")[:2]}
    big = score_table("big", given, 10)
    small = score_table("small", {name: one[:1] for name, one in given.items()}, 10)
    both = stacked([big, small])
    found = figures(both, None, macro_cells(both, seed=0), replace(PLAN, systems=pair)).outcomes
    rows = [(row.group, row.queries, row.wins, row.won, row.tied) for row in found if row.measure == "ndcg@10"]
    assert rows == [("big", 2, 1, 0.5, 0.5), ("small", 1, 1, 1.0, 0.0), ("macro over sets", 3, 2, 0.75, 0.25)]


def test_the_reports_of_stages() -> None:
    """Tables in print; charts of differences and outcomes on the page, by type for a set and by set over all."""
    both = [result(name, STAGED, STAGES) for name in ("toy", "other")]
    found = Evaluation(provenance=PROVENANCE, sets=[one.summary for one in both], macro=macro(both, STAGES))
    out = io.StringIO()
    assert found.macro is not None
    for one in found.sets:
        print_report(one, Console(file=out, width=200))
    print_macro(found.macro, found.sets, Console(file=out, width=200))
    for part in (
        "stages: what each adds (n=3)",
        "rrf-adaptive - rrf-fixed",
        "stages: queries won/tied/lost",
    ):
        assert part in out.getvalue()
    text = page(found)
    for part in (
        "What each stage of the ranking brings",
        "by type of query",
        "The same in nDCG@10 by set",
        "class=judged",
    ):
        assert part in text
    # per set: types, budgets, differences, outcomes, and the four pairs by type in two rows of panels
    assert text.count("<svg ") == 2 * 6 + 5


def test_legs_that_failed_are_counted() -> None:
    """A run with dead legs must not look like a good one."""
    assert running(GIVEN)[0].degraded == {"graph": 3}


def printed(terminal: bool = False) -> str:
    """The printed report of one set and of two."""
    out = io.StringIO()
    # whatever NO_COLOR and TERM are
    console = Console(file=out, width=200, force_terminal=terminal, color_system="standard", no_color=False)
    print_report(result().summary, console)
    both = [result(), result("other")]
    print_macro(macro(both, PLAN), [one.summary for one in both], console)
    return out.getvalue()


def test_the_plain_report_names_every_figure() -> None:
    """No terminal: aligned text without colours or boxes."""
    text = printed()
    for part in (
        "toy: 3 queries in 2 namespaces, 1 without evidence skipped; top 10, seed 7",
        "all (n=3)",
        "why (n=1)",
        "nDCG@10",
        "adaptive - bm25",
        "adaptive - without-graph",
        "nDCG@10: adaptive is not significantly different from bm25, the best single leg (+.",
        "], p (Holm) ",
        ".500 [.500 .500] in 900",
        "graph 3",
        "2 sets, each counts alike: toy, other",
        "macro over sets (n=6)",
        "adaptive: queries won/tied/lost in nDCG@10 against\nqueries  n  bm25\nfact     2  1/1/0\nwhy      1  1/0/0\n",
        "macro over sets  6  67%/33%/0%",
        "nDCG@10 by set\nset              n  bm25  adaptive\ntoy              3  .544  .877",
        "adaptive against the best single leg and equal weights\nset    n  nDCG@10 - best single leg",
    ):
        assert part in text
    assert "\x1b" not in text


def test_the_report_on_a_terminal_has_the_same_tables() -> None:
    """With colours."""
    text = printed(terminal=True)
    assert "\x1b[36madaptive" in text
    assert "macro over sets (n=6)" in text


def test_files_can_be_read_back(tmp_path: Path) -> None:
    """TREC files agree with the answers, the CSVs have a line per score, the JSON is complete."""
    written = {path.name: path for path in write_files(tmp_path / "new" / "out", result())}
    assert list(written) == [
        "qrels.trec",
        "run.bm25.trec",
        "run.adaptive.trec",
        "run.without-graph.trec",
        "per_query.csv",
        "packs.csv",
        "summary.json",
    ]
    assert read_qrels(written["qrels.trec"]) == {"q0": {"a": 1}, "q1": {"a": 1}, "q2": {"a": 1}}
    assert [id_ for id_, _ in read_run(written["run.bm25.trec"])["q1"]] == ["x", "a"]
    lines = written["per_query.csv"].read_text().splitlines()
    assert len(lines) == 1 + 3 * 3
    assert lines[0].startswith("system,qid,namespace,type,intent,relevant,ndcg@10,recall@5,recall@10,mrr@10")
    assert lines[2] == "bm25,q1,n,fact,,1,0.630930,1.000000,1.000000,0.500000,4.000,graph"
    lines = written["packs.csv"].read_text().splitlines()
    assert lines[:3] == ["system,qid,budget,evidence_recall,tokens_used", "bm25,q0,512,0.500000,500", lines[2]]
    assert len(lines) == 1 + 3 * 3 * 2
    data = json.loads(written["summary.json"].read_text())
    assert data["figures"]["cells"][0]["measures"]["ndcg@10"].keys() == {"mean", "low", "high"}
    assert data["provenance"]["models"] == {"a.onnx": "c0ffee"}


class Links(HTMLParser):
    """Collects what a page would load, and checks that its elements close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br"):
            self.open.append(tag)
        self.loads += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_stands_alone_and_holds_everything() -> None:
    """Nothing is loaded from elsewhere; charts take their colours from the page; names are escaped."""
    named = result("<$toy$>")
    evaluation = Evaluation(
        provenance=PROVENANCE, sets=[named.summary, result("b").summary], macro=macro([named, result("b")], PLAN)
    )
    text = page(evaluation)
    parser = Links()
    parser.feed(text)
    assert parser.open == []
    assert all(link.startswith("#") for link in parser.loads)
    assert "url(http" not in text
    assert "@import" not in text
    assert "<$toy$>" not in text
    assert "&lt;$toy$&gt;" in text
    assert text.count("<svg ") == 2 * 5 + 4  # types of queries are a set's own
    for part in (
        "2026-01-02",
        "n = 6",
        "default-without-graph@1: without-graph",
        "c0ffee",
        "prefers-color-scheme: dark",
        "without-graph",
    ):
        assert part in text
    drawn = "".join(re.findall(r"<svg .*?</svg>", text, re.DOTALL))
    assert "var(--series-1)" in drawn
    assert not re.search(r"#0[1-5]0[1-5]0", drawn)


def test_the_page_of_one_set_without_extras() -> None:
    """No macro section, no charts of what was not measured."""
    one = result().summary
    bare = replace(one, figures=replace(one.figures, ablations=[], budgets=[], verdicts=[], versus=[], outcomes=[]))
    text = page(Evaluation(provenance=PROVENANCE, sets=[bare], macro=None))
    assert "Evaluation of toy" in text
    assert "count alike" not in text
    assert text.count("<svg ") == 1
