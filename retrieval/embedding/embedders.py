"""The embedders of namespaces by name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from retrieval.embedding import multilingual
from retrieval.embedding.cache import CachedEmbedder, Embedder
from retrieval.embedding.multilingual import MultilingualEmbedder
from retrieval.errors import EmbedderMissing, InvalidInput, ModelFileError
from retrieval.settings import REMOTE_PROVIDERS, Settings
from retrieval.types.namespace import DEFAULT_EMBEDDER, EmbedderName


class Embedders:
    """The bundled embedder and the alternatives that namespaces may use, each opened on first use.

    Attributes:
        default: the bundled one, `DEFAULT_EMBEDDER`.
        of_new: the name of the embedder that new namespaces get.
    """

    def __init__(
        self,
        default: CachedEmbedder,
        others: Mapping[EmbedderName, Callable[[], CachedEmbedder]] = {},
        *,
        of_new: EmbedderName = DEFAULT_EMBEDDER,
    ) -> None:
        """`others` open an embedder each."""
        self.default = default
        self.of_new = of_new
        self._others = others
        self._opened: dict[EmbedderName, CachedEmbedder] = {}

    def get(self, name: EmbedderName) -> CachedEmbedder:
        """The embedder with that name; one that cannot be used raises the reason for every text."""
        if name == DEFAULT_EMBEDDER:
            return self.default
        if name not in self._opened:
            self._opened[name] = self._others[name]() if name in self._others else self._unknown(name)
        return self._opened[name]

    def check(self, name: EmbedderName) -> None:
        """Raise InvalidInput if this server lacks the embedder."""
        if fault := embedder_fault(name, self.of_new):
            raise InvalidInput(fault, loc=("embedder",))

    def _unknown(self, name: EmbedderName) -> CachedEmbedder:
        cause = EmbedderMissing(embedder_fault(name, self.of_new))
        return CachedEmbedder(UnusableEmbedder(name, cause), max_entries=0, max_age_s=0)

    @property
    def hits(self) -> int:
        """Queries answered from the caches."""
        return sum(each.hits for each in (self.default, *self._opened.values()))

    @property
    def misses(self) -> int:
        """Queries computed."""
        return sum(each.misses for each in (self.default, *self._opened.values()))

    async def aclose(self) -> None:
        """Close all open embedders."""
        await asyncio.gather(*(each.aclose() for each in (self.default, *self._opened.values())))


class UnusableEmbedder(Embedder):
    """Stands in for an embedder that cannot be opened; embeds nothing."""

    def __init__(self, model: EmbedderName, cause: ModelFileError) -> None:
        """`cause` is raised for every text."""
        self.model: str = model
        self._cause = cause

    def _fail(self, *_: Any, **__: Any) -> NoReturn:
        raise type(self._cause)(*self._cause.args)

    embed_query = embed_documents = count_pieces = _fail

    async def aclose(self) -> None:
        """Nothing is open."""


def multilingual_embedder(*, document_threads: int) -> Embedder:
    """The multilingual embedder, or an `UnusableEmbedder` if it is not installed or is damaged."""
    try:
        return MultilingualEmbedder(document_threads=document_threads)
    except ModelFileError as exc:
        return UnusableEmbedder(multilingual.MODEL_NAME, exc)


def remote_embedder(settings: Settings) -> Embedder:
    """The provider's embedder, for settings that name one."""
    from retrieval.embedding.remote import RemoteEmbedder  # imports httpx: a tenth of a program's start, and 7 MB

    return RemoteEmbedder(settings)


def embedder_fault(name: EmbedderName, server: EmbedderName) -> str | None:
    """Why a server whose settings name the embedder `server` cannot use another one; None if it can."""
    if name in (DEFAULT_EMBEDDER, server):
        return None
    if name == multilingual.MODEL_NAME:
        return None if multilingual.is_installed() else multilingual.MISSING
    provider, _, model = name.partition("/")
    if provider in REMOTE_PROVIDERS and model:
        return (
            f"this server has no embedder {name}: set TRIVET_EMBEDDING_PROVIDER={provider} and "
            f"TRIVET_EMBEDDING_MODEL={model}, or give the namespace another one by `trivet reembed`"
        )
    providers = ", ".join(REMOTE_PROVIDERS)
    return f"must be {DEFAULT_EMBEDDER}, {multilingual.MODEL_NAME} or PROVIDER/MODEL, one of {providers}, not {name!r}"
