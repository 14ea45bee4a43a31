"""The gate on a stored version: its served answers to the queries of folders, against the live version's."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from msgspec import structs

from retrieval.errors import LegFailed
from retrieval.evaluation.folder import EvaluationFolder
from retrieval.evaluation.runner import JudgedAnswer, run_system
from retrieval.evaluation.scores import score
from retrieval.evaluation.served import evaluation_settings, lend
from retrieval.evaluation.systems import System
from retrieval.profiles.gate import GateReport, Trial, fixed_name, judge
from retrieval.tuning.collection import CollectionPlan, store_rows
from retrieval.tuning.fitting import Baselines
from retrieval.tuning.labels import labelled_queries
from retrieval.tuning.replay import CUTOFF
from retrieval.types.search import Mode


async def check(
    plan: CollectionPlan,
    folders: Sequence[EvaluationFolder],
    baselines: Baselines,
    *,
    limit: int | None,
    seed: int,
    fresh: bool,
) -> GateReport:
    """Let the gate judge the base: nothing is fitted, so every query is held out.

    Rows are stored as `trivet eval` stores them, and stay; `fresh` stores them again.

    Raises:
        Conflict: a namespace was filled from other rows.
        LegFailed: a leg did not answer.
    """
    base, baseline = baselines.base, baselines.baseline
    live = baselines.live if baselines.live != base else None
    # Under different names, as two versions of one name are queried.
    asked = structs.replace(base, name="gate.candidate"), structs.replace(baseline, name="gate.yardstick")
    candidate, yardstick = (each.label for each in asked)
    systems = [
        System(name=base.label, profile=candidate),
        System(name=fixed_name(baseline.label), profile=yardstick, mode=Mode.HYBRID, rescore=False),
    ]
    if live is not None:
        systems.append(System(name=live.label, profile=yardstick))
    labelled = [labelled_queries(folder, limit=limit, seed=seed) for folder in folders]
    answers: list[list[JudgedAnswer]] = [[] for _ in systems]
    async with plan.engine(evaluation_settings(plan.settings), asked) as engine:
        await lend(engine, plan.models)
        for folder, own in zip(folders, labelled, strict=True):
            await store_rows(engine, folder, plan.watch, fresh=fresh)
            for system, of_system in zip(systems, answers, strict=True):
                with plan.watch(f"{folder.name}: {system.name}", len(own)) as progress:
                    of_system += await run_system(
                        engine,
                        [each.query for each in own],
                        system,
                        folder.stored_name,
                        top_k=CUTOFF,
                        concurrency=plan.concurrency,
                        progress=progress,
                    )
    if late := next((each for each in chain(*answers) if each.degraded), None):
        raise LegFailed(f"query {late.query.id}: {', '.join(late.degraded)} did not answer; run the same again")
    own_scores, fixed_scores, *live_scores = (score(of_system, CUTOFF)[:, 0] for of_system in answers)
    queries = list(chain(*labelled))
    trial = Trial(
        sets=[each.set for each in queries],
        intents=[each.intent or str(answer.intent) for each, answer in zip(queries, answers[0], strict=True)],
        candidate=own_scores,
        baseline=fixed_scores,
        live=live_scores[0] if live_scores else None,
    )
    return judge(
        trial,
        candidate=base,
        baseline=fixed_name(baseline.label),
        live=None if live is None else live.label,
        folds=0,
        seed=seed,
    )
