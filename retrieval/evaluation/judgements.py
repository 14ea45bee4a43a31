"""Evaluate a namespace by its callers' judgements: `POST /v1/namespaces/{ns}/evaluations`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from retrieval.answer.response import search_results
from retrieval.errors import InvalidInput, LegFailed, TrivetError
from retrieval.evaluation.comparisons import Versus, against_each
from retrieval.evaluation.folder import Query
from retrieval.evaluation.runner import JudgedAnswer, credited, for_each
from retrieval.evaluation.scores import OVERALL, score_table, set_cells
from retrieval.evaluation.systems import ALL_STAGES, EQUAL_WEIGHTS, System, profiled, staged
from retrieval.plurals import counted
from retrieval.profiles.profile import DEFAULT
from retrieval.ranking.weighting import parse_weights
from retrieval.types.evaluation import (
    EvaluationRequest,
    FailedQuery,
    JudgedEvaluation,
    QueryScores,
    SystemComparison,
    SystemScores,
)
from retrieval.types.journal import Feedback
from retrieval.types.search import Leg, Mode

if TYPE_CHECKING:
    from retrieval.engine import Trivet

LEAST_QUERIES = 10
"""Fewer are inconclusive: even if one system won all of five, that could be chance."""

MOST_QUERIES = 200
"""Those judged last are used; each system runs each of them once."""

TOP_K = 10

_SEED = 0

_CONCURRENCY = 2
"""Queries run at a time; few, to leave room for other searches."""


async def evaluate_judgements(engine: Trivet, namespace: str, request: EvaluationRequest) -> JudgedEvaluation:
    """Run each judged query with each system, and compare the whole pipeline with the others.

    Raises:
        NotFound: no such namespace.
        InvalidInput: too few queries were judged, or no such profile.
    """
    judged = await engine.journal.judged_queries(namespace)
    if len(judged) < LEAST_QUERIES:
        raise InvalidInput(
            f"an evaluation needs {LEAST_QUERIES} queries with memories that are judged relevant; namespace "
            f"{namespace!r} has {len(judged)}"
        )
    profile = request.profile or (await engine.get_namespace(namespace)).settings.profile or DEFAULT.name
    for wanted in filter(None, (profile, request.other)):
        await engine.profiles.find(wanted)
    systems = _systems(profile, request.other)
    asked = judged[-MOST_QUERIES:]
    answers, failed = await _ask_all(engine, namespace, asked, systems)
    if len(answers) < LEAST_QUERIES:
        complete = counted(len(answers), "query was", "queries were")
        raise InvalidInput(f"only {complete} answered by all systems; {failed[0].error}")
    by_system = {system.name: [answered[system.name] for answered in answers] for system in systems}
    return await asyncio.to_thread(_summary, namespace, by_system, failed, len(judged) - len(asked))


def _systems(profile: str, other: str | None) -> list[System]:
    """Each leg alone, equal weights, the stages of the profile, and the other profile."""
    return [
        *(System(name=leg.value, mode=Mode(leg.value), profile=profile) for leg in Leg),
        System(
            name=EQUAL_WEIGHTS, mode=Mode.HYBRID, weights=parse_weights(EQUAL_WEIGHTS), profile=profile, rescore=False
        ),
        *staged(profile),
        *([profiled(other, other)] if other else []),
    ]


async def _ask_all(
    engine: Trivet, namespace: str, judged: Sequence[Feedback], systems: Sequence[System]
) -> tuple[list[Mapping[str, JudgedAnswer]], list[FailedQuery]]:
    """The answers of all systems by query, and the queries that some system failed to answer."""

    async def ask(query: Query) -> Mapping[str, JudgedAnswer] | FailedQuery:
        try:
            return {system.name: await _ask(engine, namespace, query, system) for system in systems}
        except TrivetError as exc:
            return FailedQuery(query=query.text, error=str(exc))

    queries = [Query.from_feedback(each, namespace, each.relevant) for each in judged]
    found = await for_each(queries, ask, concurrency=_CONCURRENCY)
    return (
        [each for each in found if not isinstance(each, FailedQuery)],
        [each for each in found if isinstance(each, FailedQuery)],
    )


async def _ask(engine: Trivet, namespace: str, query: Query, system: System) -> JudgedAnswer:
    """One answer, without query log or shadow."""
    request = system.request(query, TOP_K)
    answer = await engine.answer(namespace, request)
    if answer.degraded:
        raise LegFailed("; ".join(f"{each.leg}: {each.reason}" for each in answer.degraded))
    return JudgedAnswer(
        query=query,
        ranking=credited(await search_results(answer), query, top_k=TOP_K),
        intent=None,
        degraded=(),
        total_ms=answer.query.stopwatch.timings_ms()["total"],
    )


def _summary(
    namespace: str, answers: Mapping[str, Sequence[JudgedAnswer]], failed: list[FailedQuery], left_out: int
) -> JudgedEvaluation:
    table = score_table(namespace, answers, TOP_K)
    ndcg = {system: table.column(system, "ndcg@10")[:, 0].tolist() for system in table.values}
    return JudgedEvaluation(
        judged=ALL_STAGES,
        systems=[
            SystemScores(system=cell.system, measures=dict(cell.measures))
            for cell in set_cells(table, seed=_SEED)
            if cell.group == OVERALL
        ],
        comparisons=[_comparison(each) for each in against_each(table, ALL_STAGES, list(answers), seed=_SEED)],
        queries=[
            QueryScores(query=query.text, relevant=query.relevant, ndcg={name: ndcg[name][row] for name in ndcg})
            for row, query in enumerate(table.queries)
        ],
        failed=failed,
        left_out=left_out,
    )


def _comparison(versus: Versus) -> SystemComparison:
    test = versus.comparison
    return SystemComparison(
        baseline=versus.baseline,
        measure=versus.measure,
        difference=test.difference,
        p_value=versus.corrected_p,
        wins=test.wins,
        ties=test.ties,
        losses=test.losses,
        verdict=versus.verdict,
    )
