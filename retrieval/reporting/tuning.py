"""A tuning's figures as tables and sentences, which the printed and the HTML report share."""

from __future__ import annotations

from retrieval.plurals import counted
from retrieval.profiles.gate import GateReport, PairedComparison
from retrieval.profiles.profile import Profile
from retrieval.reporting.table import Table, show_interval
from retrieval.tuning.summary import FIXED, HELD_OUT, Tuning
from retrieval.types.search import Leg


def headline(tuning: Tuning) -> str:
    """Queries, used and skipped, folds, seed and duration."""
    sets = ", ".join(f"{name} {count}" for name, count in tuning.sets.items())
    queries = counted(sum(tuning.sets.values()), "query", "queries")
    held_out = counted(tuning.gate.folds, "fold", "folds") if tuning.gate.folds else "no folds"
    skipped = f", {tuning.skipped} without relevant memories skipped" if tuning.skipped else ""
    return f"{queries} ({sets}){skipped}, {held_out}, seed {tuning.seed}, {tuning.seconds:.0f} s"


def outcome(tuning: Tuning) -> str:
    """The result, in a sentence."""
    if not tuning.improved:
        return f"nothing better than {tuning.base} was found; no version was stored"
    stored = f"stored as {tuning.label}" if tuning.label is not None else "found, not stored"
    prior = None if tuning.settings is None else tuning.settings.prior
    intents = "all intents have the same recipe"
    if prior is not None:
        intents = f"an intent's own queries were weighed against {prior:g} of all intents"
    return f"{stored}: trust {tuning.profile.learned_share:g}, shrink {tuning.profile.shrink:g}; {intents}"


def recipe_table(profile: Profile, title: str) -> Table:
    """Weights, k and fan-out, fixed and per intent."""
    rows = []
    for name, recipe in [(FIXED, profile.fixed), *((i.value, each) for i, each in profile.per_intent.items())]:
        weights = [f"{recipe.weights[leg]:.2f}" for leg in Leg]
        rows.append([name, *weights, f"{recipe.rrf_k:g}", str(recipe.fan_out)])
    return Table(title=title, headings=["intent", *(leg.value for leg in Leg), "rrf_k", "fan_out"], rows=rows)


def score_table(tuning: Tuning) -> Table:
    """Every system's mean."""
    return Table(
        title=f"nDCG@10 (n={tuning.gate.n})",
        headings=["system", "nDCG@10"],
        rows=[[score.system, show_interval(score.ndcg)] for score in tuning.scores],
    )


def group_tables(tuning: Tuning) -> list[Table]:
    """The tuned profile against the baseline by type and by intent."""
    found = []
    for by in dict.fromkeys(group.by for group in tuning.groups):
        rows = [[group.name, *comparison_cells(group.comparison)] for group in tuning.groups if group.by == by]
        found.append(
            Table(title=f"{HELD_OUT} against {tuning.gate.baseline}, by {by}", headings=[by, *_COMPARISON], rows=rows)
        )
    return found


def gate_table(report: GateReport) -> Table:
    """What the gate compared."""
    rows = [[f"all, against {report.baseline}", *comparison_cells(report.overall)]]
    if report.against_live is not None:
        rows.append([f"all, against {report.live}", *comparison_cells(report.against_live)])
    rows += [[intent, *comparison_cells(each)] for intent, each in report.intents.items()]
    return Table(title=f"gate: {report.candidate}", headings=["queries", *_COMPARISON], rows=rows)


def gate_lines(report: GateReport) -> list[str]:
    """The verdict and the objections to the candidate."""
    if report.passed:
        return [f"gate: passed; {report.candidate} is not worse than {report.baseline}"]
    return [f"gate: refused {report.candidate}", *(f"  {reason}" for reason in report.reasons)]


_COMPARISON = ("n", "candidate", "baseline", "difference", "p", "won", "tied", "lost")


def comparison_cells(found: PairedComparison) -> list[str]:
    """The cells of a comparison, in the order of the headings."""
    return [
        str(found.n),
        f"{found.candidate:.4f}",
        f"{found.baseline:.4f}",
        f"{found.difference:+.4f} [{found.low:+.4f}, {found.high:+.4f}]",
        f"{found.p:.4f}",
        *(str(count) for count in (found.wins, found.ties, found.losses)),
    ]
