"""Profiles of the database that is served from, for an evaluation that runs in one of its own.

An evaluation with the embedded database keeps its rows apart, where nobody has written any profile. So profiles are
looked up where searches find them, and lent to the engine that evaluates, with the models that their database holds.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from retrieval.engine import Trivet
from retrieval.profiles.models import ModelKind, stored_models
from retrieval.profiles.profile import Profile
from retrieval.settings import Settings
from retrieval.store.embedded.instance import is_made


@dataclass(frozen=True, kw_only=True, slots=True)
class LentModel:
    """A model that the database of the evaluation does not hold."""

    kind: ModelKind
    content: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Served:
    """Profiles by the names they were asked for as, and models of theirs that must be lent."""

    profiles: Mapping[str, Profile]
    models: Sequence[LentModel]


def evaluation_settings(settings: Settings) -> Settings:
    """Where an evaluation stores its rows: the database that is named, or an embedded one of its own."""
    return replace(settings, data_dir=settings.data_dir / "eval") if settings.uses_embedded else settings


async def look_up(settings: Settings, names: Sequence[str]) -> Served:
    """The profiles that searches over the settings' database would use.

    An embedded database that nobody has made yet has the profiles that come with the program; it is not made for that.

    Raises:
        InvalidInput: there is none of a name.
    """
    if settings.uses_embedded and not is_made(settings.data_dir):
        settings = evaluation_settings(settings)
    async with Trivet.open(settings) as engine:
        found = {name: await engine.profiles.find(name) for name in names}
        return Served(profiles=found, models=await lendable(engine, found.values()))


async def lendable(engine: Trivet, profiles: Iterable[Profile]) -> list[LentModel]:
    """The models, each once, that the engine's database holds for profiles and the evaluation's does not."""
    if not engine.settings.uses_embedded:
        return []
    stored = {pair for profile in profiles for pair in stored_models(profile).items()}
    return [LentModel(kind=kind, content=await engine.models.stored(kind, sha256)) for kind, sha256 in sorted(stored)]


async def lend(engine: Trivet, models: Iterable[LentModel]) -> None:
    """Keep models in the engine's database, so that profiles can name them."""
    with tempfile.TemporaryDirectory(prefix="trivet-model-") as folder:
        for model in models:
            path = Path(folder) / f"{model.kind}.onnx"
            path.write_bytes(model.content)
            await engine.models.put_model(model.kind, path)
