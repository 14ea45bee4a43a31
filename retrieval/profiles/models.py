"""The learned models of profiles, loaded once each."""

from __future__ import annotations

import asyncio
import hashlib
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from classifier.inference import IntentClassifier, ModelMismatch
from classifier.leg_weights import LegWeightModel
from classifier.rescorer import Rescorer
from retrieval.embedding import multilingual
from retrieval.errors import InvalidInput
from retrieval.installation import check_model_file
from retrieval.profiles.profile import Models, Profile
from retrieval.store import profiles as store
from retrieval.store.pool import Pool
from retrieval.tasks import SingleFlight
from retrieval.types.namespace import DEFAULT_EMBEDDER, EmbedderName

ModelKind = Literal["intent", "weights", "rescorer"]

LOADERS: Mapping[ModelKind, Callable[[Path], Any]] = {
    "intent": IntentClassifier,
    "weights": LegWeightModel,
    "rescorer": Rescorer,
}
"""Loads a model file, by kind."""

MULTILINGUAL_INTENT = "intent.multilingual.onnx"
"""Replaces the shipped classifier if the namespace's embedder is the multilingual one."""

_STORED = "sha256:"
_FILE_NAME = re.compile(r"[\w\-][\w.\-]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadedModels:
    """The loaded models of a profile.

    Attributes:
        classifier_embedder: the embedder whose vectors the classifier reads.
    """

    classifier: IntentClassifier
    classifier_embedder: EmbedderName
    leg_weights: LegWeightModel
    rescorer: Rescorer | None


class ModelRegistry:
    """Loads models by reference and caches them: a reference always means the same file."""

    def __init__(self, pool: Pool, folder: Path) -> None:
        """Loads nothing yet; models referenced by file name are in `folder`, those by checksum in the database."""
        self._pool = pool
        self._folder = folder
        self._loaded: dict[tuple[str, str], Any] = {}
        self._loading: SingleFlight[tuple[str, str], Any] = SingleFlight()

    async def load(self, models: Models, embedder: EmbedderName = DEFAULT_EMBEDDER) -> LoadedModels:
        """The loaded models for namespaces of an embedder; missing ones are loaded in a thread.

        Raises:
            InvalidInput: there is no such model, or it is not of its kind for this version; names the kind.
            ModelFileError: a shipped model is missing or damaged.
        """
        is_multilingual = embedder == multilingual.MODEL_NAME and models.intent == Models().intent
        return LoadedModels(
            classifier=await self._find("intent", MULTILINGUAL_INTENT if is_multilingual else models.intent),
            classifier_embedder=embedder if is_multilingual else DEFAULT_EMBEDDER,
            leg_weights=await self._find("weights", models.weights),
            rescorer=await self._find("rescorer", models.rescorer) if models.rescorer else None,
        )

    async def put_model(self, kind: ModelKind, path: Path) -> str:
        """Store a model in the database, for all servers; returns its reference: "sha256:" and the checksum.

        Raises:
            InvalidInput: it is not a model of this kind for this version.
        """
        content = await asyncio.to_thread(path.read_bytes)
        await asyncio.to_thread(_load, kind, path)
        checksum = hashlib.sha256(content).hexdigest()
        async with self._pool.connection() as conn:
            await store.put_model(conn, kind, checksum, content)
        return _STORED + checksum

    async def stored(self, kind: ModelKind, checksum: str) -> bytes:
        """The content of a model in the database.

        Raises:
            InvalidInput: there is no such model of this kind, or it is damaged.
        """
        async with self._pool.connection() as conn:
            content = await store.model(conn, kind, checksum)
        if content is None:
            raise InvalidInput(f"the database has no model '{_STORED}{checksum}' of this kind", loc=("models", kind))
        if hashlib.sha256(content).hexdigest() != checksum:
            raise InvalidInput(f"the model '{_STORED}{checksum}' in the database is damaged", loc=("models", kind))
        return content

    async def _find(self, kind: ModelKind, reference: str) -> Any:
        key = (kind, reference)
        if key not in self._loaded:
            loading = self._loading.get(key) or self._loading.start(key, self._load_referenced(kind, reference))
            self._loaded[key] = await asyncio.shield(loading)
        return self._loaded[key]

    async def _load_referenced(self, kind: ModelKind, reference: str) -> Any:
        if not reference.startswith(_STORED):
            if not _FILE_NAME.fullmatch(reference):
                raise InvalidInput(f"{reference!r} is neither a file name nor sha256:…", loc=("models", kind))
            return await asyncio.to_thread(load_file, kind, self._folder / reference)
        content = await self.stored(kind, reference.removeprefix(_STORED))
        return await asyncio.to_thread(_load_content, kind, content)


def stored_models(profile: Profile) -> dict[ModelKind, str]:
    """sha256 of the profile's models that are stored in the database, by kind."""
    named = [(kind, getattr(profile.models, kind)) for kind in LOADERS]
    return {kind: name.removeprefix(_STORED) for kind, name in named if name and name.startswith(_STORED)}


@cache
def load_file(kind: ModelKind, path: Path) -> Any:
    """The model in a file that does not change, loaded once per process.

    Raises:
        InvalidInput: there is no such model, or it is not of its kind for this version; names the kind.
        ModelFileError: a shipped model is damaged.
    """
    return _load(kind, path)


def _load(kind: ModelKind, path: Path) -> Any:
    check_model_file(path)
    try:
        return LOADERS[kind](path)
    except FileNotFoundError as exc:
        raise InvalidInput(f"there is no model {path.name!r}", loc=("models", kind)) from exc
    except ModelMismatch as exc:
        raise InvalidInput(str(exc), loc=("models", kind)) from exc
    except Exception as exc:  # ONNX Runtime raises different errors for different defects
        raise InvalidInput(f"{path.name!r} cannot be opened as a model: {exc}", loc=("models", kind)) from exc


def _load_content(kind: ModelKind, content: bytes) -> Any:
    """Load from a temporary file; the session reads all of it."""
    with tempfile.TemporaryDirectory(prefix="trivet-model-") as folder:
        path = Path(folder) / f"{kind}.onnx"
        path.write_bytes(content)
        return _load(kind, path)
