"""The gate on a stored version: its answers to the queries of folders, as they are served, against the live one's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from retrieval.engine import Trivet
from retrieval.errors import LegFailed
from retrieval.evaluation.folder import EvaluationFolder
from retrieval.evaluation.runner import JudgedAnswer, run_system
from retrieval.evaluation.scores import score
from retrieval.evaluation.served import evaluation_settings, lend
from retrieval.evaluation.study import Watch
from retrieval.evaluation.systems import System
from retrieval.profiles.gate import GateReport, Trial, fixed_name, judge
from retrieval.settings import Settings
from retrieval.tuning.collection import LEG_TIMEOUT_S, store_rows
from retrieval.tuning.fitting import Baselines
from retrieval.tuning.labels import labelled_queries
from retrieval.tuning.replay import CUTOFF
from retrieval.types.search import Mode


async def check(
    settings: Settings,
    folders: Sequence[EvaluationFolder],
    baselines: Baselines,
    *,
    limit: int | None,
    seed: int,
    concurrency: int,
    fresh: bool,
    watch: Watch,
) -> GateReport:
    """Let the gate judge the base as it is: nothing is fitted, so every query is held out.

    Rows are stored as `trivet eval` stores them, and stay; `fresh` stores them anew.

    Raises:
        Conflict: a namespace was filled from other rows.
        LegFailed: a leg did not answer.
    """
    base, live = baselines.base, baselines.live if baselines.live != baselines.base else None
    # Under names of their own, as two versions of one name are asked.
    candidate = structs.replace(base, name="gate.candidate")
    yardstick = structs.replace(baselines.baseline, name="gate.yardstick")
    systems = {
        "candidate": System(name=base.label, profile=candidate.label),
        "fixed": System(name="fixed", profile=yardstick.label, mode=Mode.HYBRID, rescore=False),
    }
    if live is not None:
        systems["live"] = System(name=live.label, profile=yardstick.label)
    where = evaluation_settings(settings)
    patient = replace(where, leg_timeout_s=max(LEG_TIMEOUT_S, where.leg_timeout_s))
    answers = defaultdict[str, list[JudgedAnswer]](list)
    labelled = {folder.name: labelled_queries(folder, limit=limit, seed=seed) for folder in folders}
    async with Trivet.open(patient, profiles={each.name: each for each in (candidate, yardstick)}) as engine:
        await lend(engine, baselines.models if where.uses_embedded else ())
        for folder in folders:
            await store_rows(engine, folder, watch, fresh=fresh)
            queries = [each.query for each in labelled[folder.name]]
            for role, system in systems.items():
                with watch(f"{folder.name}: {system.name}", len(queries)) as progress:
                    answers[role] += await run_system(
                        engine,
                        queries,
                        system,
                        folder.stored_name,
                        top_k=CUTOFF,
                        concurrency=concurrency,
                        progress=progress,
                    )
    for answer in (each for of_system in answers.values() for each in of_system if each.degraded):
        raise LegFailed(f"query {answer.query.id}: {', '.join(answer.degraded)} did not answer; run the same again")
    scores = {role: score(of_system, CUTOFF)[:, 0] for role, of_system in answers.items()}
    asked = [each for name in labelled for each in labelled[name]]
    trial = Trial(
        sets=[each.set for each in asked],
        intents=[each.intent or str(answer.intent) for each, answer in zip(asked, answers["candidate"], strict=True)],
        candidate=scores["candidate"],
        baseline=scores["fixed"],
        live=scores.get("live"),
    )
    return judge(
        trial,
        candidate=base,
        baseline=fixed_name(baselines.baseline.label),
        live=None if live is None else live.label,
        folds=0,
        seed=seed,
    )
