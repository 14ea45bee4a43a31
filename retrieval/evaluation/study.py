"""An evaluation from end to end: store the folders, run every system, summarise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from retrieval.evaluation.comparisons import against_each, against_pairs, outcomes, verdicts
from retrieval.evaluation.folder import EvaluationFolder, Query
from retrieval.evaluation.packs import budget_cells, pack_each, pack_measures
from retrieval.evaluation.runner import Ingestion, JudgedAnswer, Progress, check_complete, ingest, run_system
from retrieval.evaluation.scores import Cell, ScoreTable, macro_cells, score_table, set_cells, stacked
from retrieval.evaluation.summary import Figures, Provenance, Summary, running
from retrieval.evaluation.systems import ADAPTIVE, ALL_STAGES, EQUAL_WEIGHTS, STAGE_PAIRS, Family, System, weighted_name
from retrieval.evaluation.trec import Scored
from retrieval.types.namespace import DEFAULT_EMBEDDER, EmbedderName, NamespaceSettings

if TYPE_CHECKING:
    from retrieval.engine import Trivet

Watch = Callable[[str, int], AbstractContextManager[Progress]]
"""Opens a progress display for a piece of work, given its title and size."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationPlan:
    """How folders are stored and evaluated. `limit` queries are drawn by `seed`; None runs all.

    `runs` are external rankings, by system and then by query.
    """

    systems: Sequence[System]
    limit: int | None
    seed: int
    top_k: int
    concurrency: int
    fresh: bool
    language: str
    embedder: EmbedderName = DEFAULT_EMBEDDER
    budgets: tuple[int, ...] = ()
    runs: Mapping[str, Mapping[str, Sequence[Scored]]] = field(default_factory=dict)

    @property
    def judged(self) -> str:
        """The system compared with the others: the last profile, else `adaptive`, all stages, or the last."""
        profiles = self.names(Family.PROFILE)
        everything = [system.name for system in self.systems]
        preferred = [*profiles[-1:], ADAPTIVE, ALL_STAGES, everything[-1]]
        return next(name for name in preferred if name in everything)

    def names(self, *families: Family) -> list[str]:
        """The names of the systems of some families."""
        return [system.name for system in self.systems if system.family in families]


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """The results on one folder; `packs` is None without budgets."""

    summary: Summary
    answers: Mapping[str, Sequence[JudgedAnswer]]
    scores: ScoreTable
    packs: ScoreTable | None


async def evaluate(
    engine: Trivet, folder: EvaluationFolder, plan: EvaluationPlan, provenance: Provenance, watch: Watch
) -> Result:
    """Store a folder, run its queries with every system, and summarise."""
    queries = folder.sample(plan.limit, plan.seed)
    stored = await _store(engine, folder, plan, watch)
    answers: dict[str, Sequence[JudgedAnswer]] = {}
    for system in plan.systems:
        with watch(f"{folder.name}: {system.name}", len(queries)) as progress:
            answers[system.name] = await run_system(
                engine,
                queries,
                system,
                _form(folder, system).stored_name,
                top_k=plan.top_k,
                concurrency=plan.concurrency,
                progress=progress,
            )
    packs = await _pack(engine, folder, queries, plan, watch) if plan.budgets else None
    ran = running(answers)
    for name, rankings in plan.runs.items():
        answers[name] = [_given(query, rankings.get(query.id, ())[: plan.top_k]) for query in queries]
    scores = score_table(folder.name, answers, plan.top_k)
    summary = Summary(
        dataset=folder.name,
        language=plan.language,
        embedder=plan.embedder,
        skipped=folder.skipped,
        sampled=len(queries) < len(folder.judged),
        namespaces=len({query.namespace for query in queries}),
        top_k=plan.top_k,
        ingestion=stored,
        running=ran,
        figures=figures(scores, packs, set_cells(scores, seed=plan.seed), plan),
        provenance=provenance,
    )
    return Result(summary=summary, answers=answers, scores=scores, packs=packs)


def macro(results: Sequence[Result], plan: EvaluationPlan) -> Figures:
    """The figures over several folders: the mean of the folders' figures, whatever their sizes."""
    scores = stacked([result.scores for result in results])
    tables = [result.packs for result in results if result.packs is not None]
    packs = stacked(tables) if tables else None
    return figures(scores, packs, macro_cells(scores, seed=plan.seed), plan)


def figures(scores: ScoreTable, packs: ScoreTable | None, cells: Sequence[Cell], plan: EvaluationPlan) -> Figures:
    """The cells with the tests of the plan's systems. Each family of tests is corrected separately."""
    judged, stages = plan.judged, plan.names(Family.STAGE)
    others = [*plan.names(Family.MODE, Family.PROFILE), *(stages if judged not in stages else ()), *plan.runs]
    versus = against_each(scores, judged, others, seed=plan.seed)
    between_stages = against_pairs(scores, STAGE_PAIRS if stages else (), seed=plan.seed)
    adaptive = ADAPTIVE in scores.values
    return Figures(
        queries=len(scores.queries),
        judged=judged,
        cells=cells,
        versus=versus,
        stages=between_stages,
        outcomes=outcomes(scores, [*versus, *between_stages]),
        ablations=against_each(scores, ADAPTIVE, plan.names(Family.PART), seed=plan.seed),
        verdicts=verdicts(scores, ADAPTIVE, weighted_name(EQUAL_WEIGHTS), seed=plan.seed) if adaptive else (),
        budgets=budget_cells(packs, plan.budgets, seed=plan.seed) if packs is not None else (),
    )


async def _store(engine: Trivet, folder: EvaluationFolder, plan: EvaluationPlan, watch: Watch) -> Ingestion:
    """Store the corpus in every form that the systems need; returns the ingestion of the folder's own."""
    stored: dict[str, Ingestion] = {}
    settings = NamespaceSettings(language=plan.language, embedder=plan.embedder)
    for system in sorted(plan.systems, key=lambda system: not system.sessions):
        form = _form(folder, system)
        if form.name in stored:
            continue
        with watch(f"{folder.name}: storing", len(form.corpus)) as progress:
            stored[form.name] = await ingest(
                engine, form, form.stored_name, settings=settings, fresh=plan.fresh, progress=progress
            )
        await check_complete(engine, form, stored[form.name])
    return next(iter(stored.values()))


async def _pack(
    engine: Trivet, folder: EvaluationFolder, queries: Sequence[Query], plan: EvaluationPlan, watch: Watch
) -> ScoreTable:
    """Every system's packs under the plan's budgets."""
    values = {}
    for system in plan.systems:
        with watch(f"{folder.name}: packs of {system.name}", len(queries)) as progress:
            values[system.name] = await pack_each(
                engine,
                queries,
                system,
                _form(folder, system).stored_name,
                plan.budgets,
                concurrency=plan.concurrency,
                progress=progress,
            )
    sets, measures = (folder.name,) * len(queries), pack_measures(plan.budgets)
    return ScoreTable(sets=sets, queries=tuple(queries), measures=measures, values=values)


def _given(query: Query, ranking: Sequence[Scored]) -> JudgedAnswer:
    """The answer of an external run, of which only the ranking is known."""
    return JudgedAnswer(query=query, ranking=tuple(ranking), intent=None, degraded=(), total_ms=math.nan)


def _form(folder: EvaluationFolder, system: System) -> EvaluationFolder:
    """The folder in the form that the system needs."""
    return folder if system.sessions else folder.sessionless
