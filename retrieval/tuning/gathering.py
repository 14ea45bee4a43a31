"""Gets the saved runs of folders and of feedback: asks what has not been asked, in the database where the rows are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from retrieval.engine import Trivet
from retrieval.evaluation.folder import EvaluationFolder
from retrieval.evaluation.provenance import model_checksums
from retrieval.evaluation.runner import check_complete, ingest
from retrieval.evaluation.served import LentModel, evaluation_settings, lend
from retrieval.profiles import Profile
from retrieval.settings import Settings
from retrieval.tuning.collect import Labelled, collect, wide_profiles
from retrieval.tuning.feedback import labelled_searches
from retrieval.tuning.runs import RunFile, SavedQuery, checksum, legs_key
from retrieval.tuning.sources import content_of, labelled_queries, searched_namespace

LEG_TIMEOUT_S = 30.0
"""A run that lacks a leg is of no use, and nobody waits for it."""

Watch = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
Runs = Mapping[str, Sequence[SavedQuery]]
"""Saved queries by `legs_key` of the profiles that they are of, in the same order for all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Asking:
    """How queries are asked.

    Attributes:
        settings: of the database that serves.
        profiles: whose legs are asked, each set of legs once.
        models: that these profiles name and another database must be lent.
        work: folder of the run files.
        concurrency: queries at a time.
        watch: shows how far it is.
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


async def of_folders(
    asking: Asking, folders: Sequence[EvaluationFolder], *, limit: int | None, seed: int, fresh: bool
) -> Runs:
    """The runs of evaluation folders. What is in the run files already is not asked again.

    Rows are stored as `trivet eval` stores them, and stay.

    Args:
        asking: how.
        folders: of which.
        limit: queries of each folder, drawn by `seed`; None for all.
        seed: of the draw.
        fresh: store the rows anew and forget the run files.

    Raises:
        Conflict: a namespace was filled from other rows.
        LegFailed: a leg did not answer.
    """
    labelled = {folder.name: labelled_queries(folder, limit=limit, seed=seed) for folder in folders}
    models = msgspec.json.encode(model_checksums(asking.profiles), order="sorted")
    files = {
        (key, folder.name): _file(asking.work, folder.name, [content_of(folder), models, key])
        for key in asking.legs
        for folder in folders
    }
    if fresh:
        for file in files.values():
            file.path.unlink(missing_ok=True)
    incomplete = {
        folder.name
        for folder in folders
        for key in asking.legs
        if not {each.query.id for each in labelled[folder.name]} <= files[key, folder.name].read().keys()
    }
    found: dict[str, list[SavedQuery]] = {key: [] for key in asking.legs}
    if not incomplete:
        for (key, name), file in files.items():
            known = file.read()
            found[key] += [known[each.query.id] for each in labelled[name]]
        return found
    settings = replace(
        evaluation_settings(asking.settings), leg_timeout_s=max(LEG_TIMEOUT_S, asking.settings.leg_timeout_s)
    )
    async with Trivet.open(settings, profiles=_wide(asking)) as engine:
        await lend(engine, asking.models if settings.uses_embedded else ())
        for folder in folders:
            if folder.name in incomplete:
                await _store(engine, folder, asking.watch, fresh=fresh)
        for key, profile in asking.legs.items():
            for folder in folders:
                found[key] += await _collect(
                    engine, asking, labelled[folder.name], profile, files[key, folder.name], folder.name
                )
    return found


async def of_feedback(asking: Asking, namespace: str, *, position_bias: float) -> Runs:
    """The runs of the searches of a namespace that callers gave feedback on.

    The run files are for going on after an interruption, while the namespace has the counts that it had; they are
    deleted once they are read, so that nothing of a namespace stays behind.

    Raises:
        NotFound: no such namespace.
        InvalidInput: too little feedback.
        LegFailed: a leg did not answer.
    """
    settings = replace(asking.settings, leg_timeout_s=max(LEG_TIMEOUT_S, asking.settings.leg_timeout_s))
    models = msgspec.json.encode(model_checksums(asking.profiles), order="sorted")
    async with Trivet.open(settings, profiles=_wide(asking)) as engine:
        judged = await engine.records.read_feedback(namespace)
        labelled = labelled_searches(judged, namespace, position_bias=position_bias)
        state = msgspec.json.encode(await engine.get_namespace(namespace), order="sorted")
        found = {}
        for key, profile in asking.legs.items():
            file = _file(asking.work, "feedback", [settings.database_url, namespace, state, models, key])
            found[key] = await _collect(engine, asking, labelled, profile, file, namespace)
            file.path.unlink()
        return found


async def _collect(
    engine: Trivet, asking: Asking, labelled: Sequence[Labelled], profile: Profile, file: RunFile, name: str
) -> list[SavedQuery]:
    with asking.watch(f"{name}: asking", len(labelled)) as progress:
        return await collect(engine, labelled, profile, file, concurrency=asking.concurrency, progress=progress)


async def _store(engine: Trivet, folder: EvaluationFolder, watch: Watch, *, fresh: bool) -> None:
    def names(namespace: str) -> str:
        return searched_namespace(folder, namespace)

    with watch(f"{folder.name}: storing", len(folder.corpus)) as progress:
        stored = await ingest(engine, folder, names, fresh=fresh, progress=progress)
    await check_complete(engine, folder, names, stored)


def _wide(asking: Asking) -> dict[str, Profile]:
    return {each.name: each for profile in asking.legs.values() for each in wide_profiles(profile)}


def _file(work: Path, name: str, parts: Sequence[str | bytes]) -> RunFile:
    key = checksum(parts)
    stem = "".join(char if char.isalnum() else "-" for char in name)
    return RunFile(work / f"{stem}-{key[:16]}.jsonl", key)
