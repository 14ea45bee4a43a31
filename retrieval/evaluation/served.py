"""Profiles of the serving database, for an evaluation that runs in a separate one.

With the embedded database, an evaluation keeps its rows in a separate one, which has no tuned profiles. So profiles
are looked up where searches find them, and lent to the engine that evaluates, with the models stored beside them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from retrieval.engine import Trivet
from retrieval.profiles.models import ModelKind, stored_models
from retrieval.profiles.profile import Profile
from retrieval.settings import Settings
from retrieval.store.embedded.instance import is_made

LentModel = tuple[ModelKind, bytes]
"""A model that the evaluation's database lacks: its kind and its content."""


def evaluation_settings(settings: Settings) -> Settings:
    """Where an evaluation stores its rows: the given database, or a separate embedded one."""
    return replace(settings, data_dir=settings.data_dir / "eval") if settings.uses_embedded else settings


async def look_up(settings: Settings, names: Sequence[str]) -> tuple[dict[str, Profile], list[LentModel]]:
    """The profiles that searches over the settings' database would use, by name, and their models to lend.

    An embedded database that does not exist yet is not created for this; the shipped profiles are used.

    Raises:
        InvalidInput: there is no profile of a name.
    """
    if settings.uses_embedded and not is_made(settings.data_dir):
        settings = evaluation_settings(settings)
    async with Trivet.open(settings) as engine:
        found = {name: await engine.profiles.find(name) for name in names}
        return found, await lendable(engine, found.values())


async def lendable(engine: Trivet, profiles: Iterable[Profile]) -> list[LentModel]:
    """The profiles' models, each once, that the engine's database has and the evaluation's lacks."""
    if not engine.settings.uses_embedded:
        return []
    stored = {pair for profile in profiles for pair in stored_models(profile).items()}
    return [(kind, await engine.models.stored(kind, sha256)) for kind, sha256 in sorted(stored)]


async def lend(engine: Trivet, models: Iterable[LentModel]) -> None:
    """Store models in the engine's database, so that profiles can refer to them."""
    with tempfile.TemporaryDirectory(prefix="trivet-model-") as folder:
        for kind, content in models:
            path = Path(folder) / f"{kind}.onnx"
            path.write_bytes(content)
            await engine.models.put_model(kind, path)
