"""Asks labelled queries once and saves what every leg found, so that profiles can be replayed without asking again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import structs

from classifier.intents import INTENTS, Intent
from retrieval.errors import LegFailed
from retrieval.evaluation.folder import Query
from retrieval.evaluation.runner import for_each
from retrieval.pipeline import Answer
from retrieval.profiles import Profile, Recipe
from retrieval.tuning.runs import Rescoring, RunFile, SavedQuery, depths_of, legs_key
from retrieval.types import Filters, Leg, Mode, SearchRequest

if TYPE_CHECKING:
    from retrieval.engine import Trivet

Progress = Callable[[int], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Labelled:
    """A query with what is known to answer it.

    Attributes:
        query: its id is unique in the set.
        set: the evaluation set.
        searched: the database's namespace.
        intent: as labelled; None for as classified.
        gains: what each relevant id is worth, above 0; at least one.
        weight: how much the query counts against the others of its set, above 0.
        filters, as_of, query_timestamp: of the search.
    """

    query: Query
    set: str
    searched: str
    intent: Intent | None
    gains: Mapping[str, float]
    weight: float = 1.0
    filters: Filters = field(default_factory=Filters)
    as_of: datetime | None = None
    query_timestamp: datetime | None = None


def wide(profile: Profile, depth: int) -> Profile:
    """A profile under which the legs find what they find under `profile` at a fan-out, with no noise cut.

    No leg has weight 0, since such a leg would not be asked.
    """
    recipe = Recipe(weights=dict.fromkeys(Leg, 1.0), rrf_k=profile.fixed.rrf_k, fan_out=depth)
    return structs.replace(
        profile,
        name=f"tune.{legs_key(profile)[:16]}.{depth}",
        version=1,
        fixed=recipe,
        per_intent=dict.fromkeys(INTENTS, recipe),
        shrink=0.0,
        trust=1.0,
        vector_noise=2.0,
        bm25_noise=0.0,
        source_cap=None,
        diversity=0.0,
    )


def wide_profiles(profile: Profile) -> list[Profile]:
    """One for every fan-out that is asked."""
    return [wide(profile, depth) for depth in depths_of(profile)]


async def collect(
    engine: Trivet,
    labelled: Sequence[Labelled],
    profile: Profile,
    file: RunFile,
    *,
    concurrency: int,
    progress: Progress = lambda _: None,
) -> list[SavedQuery]:
    """What was found for the queries, in their order; those that the file has are not asked again.

    Args:
        engine: knows `wide_profiles(profile)`.
        labelled: the queries; their labels are taken from here, whatever the file says.
        profile: whose legs are asked.
        file: takes every query once it is answered.
        concurrency: queries at a time.
        progress: told of each query that is asked.

    Raises:
        LegFailed: a leg did not answer; what was collected until then stays in the file.
    """
    known = file.read()
    by_id = {each.query.id: each for each in labelled}
    missing = [each.query for each in labelled if each.query.id not in known]
    asked = wide_profiles(profile)
    with file.appending() as writer:

        async def ask(query: Query) -> None:
            saved = await _ask(engine, by_id[query.id], asked)
            known[query.id] = saved
            writer.add(saved)

        await for_each(missing, ask, concurrency=concurrency, progress=progress)
    return [
        structs.replace(
            known[each.query.id],
            type=each.query.type,
            intent=each.intent,
            gains=dict(each.gains),
            weight=each.weight,
        )
        for each in labelled
    ]


async def _ask(engine: Trivet, labelled: Labelled, asked: Sequence[Profile]) -> SavedQuery:
    query = labelled.query
    answers = {profile.fan_out: await _answer(engine, labelled, profile) for profile in asked}
    deepest = answers[max(answers)]
    fact, relation, preference, open_ended = (deepest.prediction.probabilities[intent] for intent in INTENTS)
    return SavedQuery(
        id=query.id,
        set=labelled.set,
        namespace=query.namespace,
        type=query.type,
        intent=labelled.intent,
        asked=hashlib.sha256(query.text.encode()).hexdigest()[:16],
        gains=dict(labelled.gains),
        weight=labelled.weight,
        probabilities=(fact, relation, preference, open_ended),
        familiarity=deepest.prediction.familiarity,
        learned={depth: _learned(answer) for depth, answer in answers.items()},
        rankings={leg: _hits(deepest, leg) for leg in (Leg.VECTOR, Leg.BM25)},
        graph={depth: _hits(answer, Leg.GRAPH) for depth, answer in answers.items()},
        rescored={
            depth: Rescoring(
                confidence=answer.rescored.confidence,
                familiarity=answer.rescored.familiarity,
                scores=answer.rescored.scores,
            )
            for depth, answer in answers.items()
            if answer.rescored is not None
        },
        duplicates=[[found.memory.id, *found.duplicates] for found in deepest.found if found.duplicates],
    )


async def _answer(engine: Trivet, labelled: Labelled, asked: Profile) -> Answer:
    """The answer of all legs, and of the rescorer where the profile has one.

    Raises:
        LegFailed: there is one that did not answer.
    """
    request = SearchRequest(
        query=labelled.query.text,
        mode=Mode.ADAPTIVE,
        profile=asked.label,
        top_k=asked.fan_out // 2,  # legs are asked for twice that anyway; duplicates are known among these
        rescore=asked.models.rescorer is not None,
        filters=labelled.filters,
        as_of=labelled.as_of,
        query_timestamp=labelled.query_timestamp,
    )
    answer = await engine.answer(labelled.searched, request)
    if answer.degraded:
        reasons = "; ".join(f"{each.leg}: {each.reason}" for each in answer.degraded)
        raise LegFailed(f"query {labelled.query.id}: {reasons}; what was found so far is kept, run the same again")
    return answer


def _hits(answer: Answer, leg: Leg) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in answer.rankings[leg].hits]


def _learned(answer: Answer) -> tuple[float, float, float]:
    if answer.trusted is None:
        raise RuntimeError("all legs answered and nothing was made of what they found")
    vector, bm25, graph = (answer.trusted[leg] for leg in Leg)
    return vector, bm25, graph
