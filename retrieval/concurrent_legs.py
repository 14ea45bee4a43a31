"""Running the legs of a query concurrently, each within a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
from msgspec.structs import replace

from retrieval.errors import AllLegsFailed, VectorsReplaced
from retrieval.index.query_vectors import QueryVectors
from retrieval.legs.base import LegQuery, LegRanking, Retriever, within_deadline
from retrieval.preparation import PreparedQuery
from retrieval.ranking.timeliness import joined
from retrieval.store.pool import Pool
from retrieval.types.search import Degradation, Leg

T = TypeVar("T")

_RunningLeg = asyncio.Task[LegRanking | Degradation]


class LegResults(NamedTuple):
    """What the legs found.

    Attributes:
        rankings: of the legs that answered.
        vectors: the memory vectors read so far.
        degraded: legs that failed, and why.
    """

    rankings: Mapping[Leg, LegRanking]
    vectors: QueryVectors
    degraded: list[Degradation]

    def no_answer(self) -> AllLegsFailed:
        """The error to raise if no leg with a weight above 0 answered."""
        reasons = "; ".join(f"{each.leg}: {each.reason}" for each in self.degraded)
        return AllLegsFailed(f"no leg that counts answered: {reasons}")


class ConcurrentLegs:
    """Runs legs; a failed or late leg degrades the answer but does not fail the search."""

    def __init__(self, pool: Pool, retrievers: Mapping[Leg, Retriever], *, timeout_s: float) -> None:
        """Give each leg a deadline of `timeout_s` seconds."""
        self._pool = pool
        self._retrievers = retrievers
        self._timeout_s = timeout_s

    async def run(self, query: PreparedQuery, meanwhile: Callable[[], Awaitable[T]]) -> tuple[LegResults, T]:
        """Run the query's legs concurrently with `meanwhile`; returns the results of both.

        Raises AllLegsFailed if no leg answered, VectorsReplaced if the namespace got new vectors.
        """
        running: dict[Leg, _RunningLeg] = {}
        leg_query = LegQuery(
            request=query.request,
            snapshot=query.snapshot,
            view=query.view,
            query_terms=query.query_terms,
            embedding=query.embedding,
            fan_out=query.fan_out,
            vectors=QueryVectors(self._pool, query.snapshot.index),
            profile=query.profile,
            other_rankings=partial(self._other_rankings, running),
            optional_wait_s=self._timeout_s / 4,
            stopwatch=query.stopwatch,
        )
        try:
            async with asyncio.TaskGroup() as group:
                running |= {leg: group.create_task(self._run(query, leg_query, leg)) for leg in query.legs}
                await asyncio.sleep(0)  # let the legs send their statements first
                done_meanwhile = await meanwhile()
        except ExceptionGroup as group_failure:
            if group_failure.subgroup(VectorsReplaced):
                raise VectorsReplaced from group_failure
            raise
        outcomes = {leg: task.result() for leg, task in running.items()}
        rankings = {leg: outcome for leg, outcome in outcomes.items() if isinstance(outcome, LegRanking)}
        failures = [outcome for outcome in outcomes.values() if isinstance(outcome, Degradation)]
        results = LegResults(rankings, leg_query.vectors, [*query.degraded, *failures])
        if not rankings:
            raise results.no_answer()
        return results, done_meanwhile

    async def _run(self, query: PreparedQuery, leg_query: LegQuery, leg: Leg) -> LegRanking | Degradation:
        """Run one leg within its deadline."""
        with query.stopwatch.span(leg.value):
            return await within_deadline(leg.value, self._search_leg(query, leg_query, leg), self._timeout_s)

    async def _search_leg(self, query: PreparedQuery, leg_query: LegQuery, leg: Leg) -> LegRanking:
        """A leg's hits, including those among the memories that the query names by time or identifier."""
        everything = await self._retrievers[leg].search(leg_query)
        if query.named_time is not None and query.named_time.certain:
            named = query.named_time.eligible
        elif leg is Leg.BM25 and (missing := query.identified.difference(everything.docs.tolist())):
            named = np.zeros_like(query.view.eligible)
            named[[*missing]] = query.view.eligible[[*missing]]
        else:
            return everything
        of_named = replace(leg_query, view=query.view._replace(eligible=named))
        return joined(everything, await self._retrievers[leg].search(of_named), leg_query.fan_out)

    async def _other_rankings(self, running: Mapping[Leg, _RunningLeg]) -> Mapping[Leg, LegRanking]:
        """The rankings of all legs but the graph's; waits at most half a leg's deadline for them."""
        tasks = {leg: task for leg, task in running.items() if leg is not Leg.GRAPH}
        if not all(task.done() for task in tasks.values()):
            await asyncio.wait(tasks.values(), timeout=self._timeout_s / 2)
        done = {leg: task.result() for leg, task in tasks.items() if task.done() and not task.cancelled()}
        return {leg: outcome for leg, outcome in done.items() if isinstance(outcome, LegRanking)}
