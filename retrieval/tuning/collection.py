"""Runs labelled queries once and saves every leg's results, so that profiles can be replayed without searching."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
from msgspec import structs

from classifier.intents import INTENTS
from retrieval.answer.answer import Answer
from retrieval.engine import Trivet
from retrieval.errors import LegFailed
from retrieval.evaluation.folder import EvaluationFolder, Query
from retrieval.evaluation.provenance import model_checksums
from retrieval.evaluation.runner import Progress, check_complete, for_each, ingest
from retrieval.evaluation.served import LentModel, evaluation_settings, lend
from retrieval.evaluation.study import Watch
from retrieval.profiles.profile import Profile
from retrieval.settings import Settings
from retrieval.tuning.labels import JudgedQuery, content_of, labelled_queries, labelled_searches
from retrieval.tuning.runs import Rescoring, RunFile, SavedQuery, checksum, depths_of, legs_key
from retrieval.types.search import Leg, Mode, SearchRequest

LEG_TIMEOUT_S = 30.0
"""Long, as a run without a leg is of no use and no user is waiting."""

log = logging.getLogger(__name__)

Runs = Mapping[str, Sequence[SavedQuery]]
"""Saved queries by `legs_key` of the profiles they were run with, all in the same order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectionPlan:
    """How the legs of some profiles are run, each set of legs once.

    `models` are the profiles' models to lend to other databases; `work` is the folder of the run files.
    """

    settings: Settings
    profiles: Sequence[Profile]
    models: Sequence[LentModel]
    work: Path
    concurrency: int
    watch: Watch

    @property
    def legs(self) -> dict[str, Profile]:
        """One profile for each set of legs."""
        return {legs_key(profile): profile for profile in self.profiles}

    @property
    def models_key(self) -> bytes:
        """A key of the models' contents."""
        return msgspec.json.encode(model_checksums(self.profiles), order="sorted")

    def file(self, name: str, parts: Sequence[str | bytes]) -> RunFile:
        """The run file of that name, which is only valid for the same `parts`."""
        key = checksum(parts)
        stem = "".join(char if char.isalnum() else "-" for char in name)
        return RunFile(self.work / f"{stem}-{key[:16]}.jsonl", key)

    def engine(self, settings: Settings, profiles: Iterable[Profile]) -> AbstractAsyncContextManager[Trivet]:
        """An engine that waits for every leg and knows these profiles."""
        patient = replace(settings, leg_timeout_s=max(LEG_TIMEOUT_S, settings.leg_timeout_s))
        return Trivet.open(patient, profiles={each.name: each for each in profiles})

    @property
    def uncut(self) -> list[Profile]:
        """The profiles with which the legs are run, without a noise cut."""
        return [each for profile in self.legs.values() for each in uncut_profiles(profile)]


async def collect_folders(
    plan: CollectionPlan, folders: Sequence[EvaluationFolder], *, limit: int | None, seed: int, fresh: bool
) -> Runs:
    """The runs of evaluation folders. Queries already in the run files are not run again.

    Rows are stored as `trivet eval` stores them, and stay; `fresh` stores them again and discards the run files.

    Raises:
        Conflict: a namespace was filled from other rows.
        LegFailed: a leg did not answer.
    """
    labelled = {folder.name: labelled_queries(folder, limit=limit, seed=seed) for folder in folders}
    files = {
        (key, folder.name): plan.file(folder.name, [content_of(folder), plan.models_key, key])
        for key in plan.legs
        for folder in folders
    }
    if fresh:
        for file in files.values():
            file.path.unlink(missing_ok=True)
    known = {place: file.read() for place, file in files.items()}
    wanted = {name: {each.query.id for each in own} for name, own in labelled.items()}
    incomplete = {name for (_, name), own in known.items() if not own.keys() >= wanted[name]}
    found: dict[str, list[SavedQuery]] = {key: [] for key in plan.legs}
    if not incomplete:
        for (key, name), own in known.items():
            found[key] += _relabelled(labelled[name], own)
        return found
    async with plan.engine(evaluation_settings(plan.settings), plan.uncut) as engine:
        await lend(engine, plan.models)
        for folder in folders:
            if folder.name in incomplete:
                await store_rows(engine, folder, plan.watch, fresh=fresh)
        for (key, name), file in files.items():
            with plan.watch(f"{name}: asking", len(labelled[name])) as progress:
                found[key] += await collect(
                    engine, labelled[name], plan.legs[key], file, concurrency=plan.concurrency, progress=progress
                )
    return found


async def collect_feedback(plan: CollectionPlan, namespace: str, *, position_bias: float) -> tuple[Runs, int]:
    """The runs of the searches of a namespace that callers gave feedback on, and how many have nothing relevant.

    The run files only serve to continue after an interruption, as long as the namespace's counts are unchanged; they
    are deleted once read, so that nothing of a namespace stays behind.

    Raises:
        NotFound: no such namespace.
        InvalidInput: too little feedback.
        LegFailed: a leg did not answer.
    """
    async with plan.engine(plan.settings, plan.uncut) as engine:
        judged = await engine.journal.judged_searches(namespace)
        labelled = labelled_searches(judged, namespace, position_bias=position_bias)
        state = msgspec.json.encode(await engine.get_namespace(namespace), order="sorted")
        found = {}
        for key, profile in plan.legs.items():
            file = plan.file("feedback", [plan.settings.database_url, namespace, state, plan.models_key, key])
            with plan.watch(f"{namespace}: asking", len(labelled)) as progress:
                found[key] = await collect(
                    engine, labelled, profile, file, concurrency=plan.concurrency, progress=progress
                )
            file.path.unlink(missing_ok=True)  # another run on the same feedback may have deleted it
        return found, len(judged) - len(labelled)


def uncut_profiles(profile: Profile) -> list[Profile]:
    """For every fan-out to run, a profile whose legs find the same as under `profile`, without a noise cut.

    No leg has weight 0, since such a leg would not run.
    """
    even = structs.replace(profile.fixed, weights=dict.fromkeys(Leg, 1.0))
    recipes = {depth: structs.replace(even, fan_out=depth) for depth in depths_of(profile)}
    return [
        structs.replace(
            profile,
            name=f"tune.{legs_key(profile)[:16]}.{depth}",
            version=1,
            fixed=recipe,
            per_intent=dict.fromkeys(INTENTS, recipe),
            shrink=0.0,
            learned_share=1.0,
            vector_noise=2.0,
            bm25_noise=0.0,
            source_cap=None,
            diversity=0.0,
        )
        for depth, recipe in recipes.items()
    ]


async def collect(
    engine: Trivet,
    labelled: Sequence[JudgedQuery],
    profile: Profile,
    file: RunFile,
    *,
    concurrency: int,
    progress: Progress = lambda _: None,
) -> list[SavedQuery]:
    """The legs' results for the queries, in their order; those in the file are not run again.

    The engine must know `uncut_profiles(profile)`. Labels come from `labelled`, not from the file.

    Raises:
        LegFailed: a leg did not answer; what was collected before stays in the file.
    """
    known = file.read()
    by_id = {each.query.id: each for each in labelled}
    missing = [each.query for each in labelled if each.query.id not in known]
    asked = uncut_profiles(profile)
    with file.appending() as add:

        async def ask(query: Query) -> None:
            saved = await _ask(engine, by_id[query.id], asked)
            known[query.id] = saved
            add(saved)

        await for_each(missing, ask, concurrency=concurrency, progress=progress)
    return _relabelled(labelled, known)


def _relabelled(labelled: Sequence[JudgedQuery], known: Mapping[str, SavedQuery]) -> list[SavedQuery]:
    """The saved results of the queries, with their current labels."""
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


async def store_rows(engine: Trivet, folder: EvaluationFolder, watch: Watch, *, fresh: bool) -> None:
    """Store a folder's rows, as `trivet eval` does, and log which could not be stored.

    Raises:
        Conflict: a namespace was filled from other rows.
    """
    with watch(f"{folder.name}: storing", len(folder.corpus)) as progress:
        stored = await ingest(engine, folder, folder.stored_name, fresh=fresh, progress=progress)
    await check_complete(engine, folder, stored)
    for each in stored.rejected:
        log.warning("not stored: corpus.jsonl:%s %s: %s", each.line, each.id, each.error)


async def _ask(engine: Trivet, labelled: JudgedQuery, asked: Sequence[Profile]) -> SavedQuery:
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
        in_domain=deepest.prediction.in_domain,
        learned={depth: _learned(answer) for depth, answer in answers.items()},
        fragment_share=deepest.fragment_share,
        rankings={leg: _hits(deepest, leg) for leg in (Leg.VECTOR, Leg.BM25)},
        graph={depth: _hits(answer, Leg.GRAPH) for depth, answer in answers.items()},
        rescored={
            depth: Rescoring(
                share=answer.ordering.rescored.share,
                scores=answer.rescorer_scores(),
                identified=_identified(answer),
            )
            for depth, answer in answers.items()
            if answer.ordering.rescored is not None
        },
        duplicates=[[found.memory.id, *found.duplicates] for found in deepest.memories if found.duplicates],
    )


async def _answer(engine: Trivet, labelled: JudgedQuery, asked: Profile) -> Answer:
    """The answer of all legs, and of the rescorer if the profile has one; raises LegFailed if one does not answer."""
    request = SearchRequest(
        **labelled.query.search_fields,
        mode=Mode.ADAPTIVE,
        profile=asked.label,
        top_k=asked.fan_out // 2,  # legs return twice that anyway; duplicates are only known among these
        rescore=asked.models.rescorer is not None,
    )
    await engine.load(labelled.searched)
    answer = await engine.answer(labelled.searched, request)
    if answer.degraded:
        reasons = "; ".join(f"{each.leg}: {each.reason}" for each in answer.degraded)
        raise LegFailed(f"query {labelled.query.id}: {reasons}; what was found so far is kept, run the same again")
    return answer


def _hits(answer: Answer, leg: Leg) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in answer.fused_rankings[leg].hits]


def _identified(answer: Answer) -> list[str]:
    candidates, identified = answer.ordering.candidates, answer.ordering.identified
    return candidates.ids([number for number, doc in enumerate(candidates.docs) if doc in identified])


def _learned(answer: Answer) -> tuple[float, float, float]:
    if answer.learned_weights is None:
        raise RuntimeError("all legs answered and nothing was made of what they found")
    vector, bm25, graph = (answer.learned_weights[leg] for leg in Leg)
    return vector, bm25, graph
