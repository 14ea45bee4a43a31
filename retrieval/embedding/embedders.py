"""The embedders of namespaces by name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from retrieval.embedding import multilingual
from retrieval.embedding.cache import CachedEmbedder, Embedder
from retrieval.embedding.multilingual import MultilingualEmbedder
from retrieval.embedding.onnx import DIMENSIONS
from retrieval.errors import InvalidInput, ModelFileError
from retrieval.types.namespace import DEFAULT_EMBEDDER, EmbedderName

_NONE: Mapping[str, Callable[[], CachedEmbedder]] = {}


class Embedders:
    """The default embedder and those that namespaces may choose instead, each opened when it is first used."""

    def __init__(self, default: CachedEmbedder, others: Mapping[str, Callable[[], CachedEmbedder]] = _NONE) -> None:
        """`default` is that of all namespaces that choose none of `others`."""
        self.default = default
        self._others = others
        self._opened: dict[str, CachedEmbedder] = {}

    def of(self, name: EmbedderName) -> CachedEmbedder:
        """The embedder of namespaces whose settings name it; one that cannot be opened raises why for each text."""
        if name not in self._others:
            return self.default
        if name not in self._opened:
            self._opened[name] = self._others[name]()
        return self._opened[name]

    @property
    def hits(self) -> int:
        """Queries answered from the caches."""
        return sum(each.hits for each in (self.default, *self._opened.values()))

    @property
    def misses(self) -> int:
        """Queries computed."""
        return sum(each.misses for each in (self.default, *self._opened.values()))

    async def aclose(self) -> None:
        """Close all that were opened."""
        await asyncio.gather(*(each.aclose() for each in (self.default, *self._opened.values())))


class UnusableEmbedder:
    """Stands in for the multilingual embedder where it cannot be opened: nothing can be written or compared by it."""

    model: str = multilingual.MODEL_NAME
    dimensions: int = DIMENSIONS

    def __init__(self, cause: ModelFileError) -> None:
        """`cause` is raised for every text."""
        self._cause = cause

    async def embed_query(self, _text: str) -> NDArray[np.float32]:
        """Raise the cause."""
        raise type(self._cause)(*self._cause.args)

    async def embed_documents(self, _texts: Sequence[str]) -> NDArray[np.float32]:
        """Raise the cause."""
        raise type(self._cause)(*self._cause.args)

    def fragment_share(self, _text: str) -> float:
        """None, as nothing is compared."""
        return 0.0

    def count_pieces(self, _text: str) -> int:
        """Raise the cause."""
        raise type(self._cause)(*self._cause.args)

    async def aclose(self) -> None:
        """Nothing is open."""


def multilingual_embedder(*, document_threads: int) -> Embedder:
    """The multilingual embedder, or what stands in for it where it is not installed or damaged."""
    try:
        return MultilingualEmbedder(document_threads=document_threads)
    except ModelFileError as exc:
        return UnusableEmbedder(exc)


def is_installed(name: str) -> bool:
    """Whether an embedder that a namespace names can be used; the default one comes with every installation."""
    return name == DEFAULT_EMBEDDER or (name == multilingual.MODEL_NAME and multilingual.is_installed())


def check_installed(name: EmbedderName) -> None:
    """Raise InvalidInput if an embedder that a namespace is to have is not installed."""
    if not is_installed(name):
        raise InvalidInput(multilingual.MISSING, loc=("embedder",))
