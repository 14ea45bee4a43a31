"""The interface of embedding providers."""

from collections.abc import Awaitable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Embedder(Protocol):
    """Turns texts into unit vectors, so that inner products are cosines.

    Queries and documents are separate because some models need a different prefix for each, and because queries are
    latency-bound while documents come in bulk.

    Attributes:
        model: name stored with a namespace's vectors; vectors of different models are never compared.
        dimensions: length of every vector.
    """

    model: str
    dimensions: int

    def embed_query(self, text: str) -> Awaitable[NDArray[np.float32]]:
        """Embed a query as a unit vector of shape (dimensions,)."""
        ...

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed documents as unit rows of shape (len(texts), dimensions), in order."""
        ...

    async def aclose(self) -> None:
        """Release threads and connections; the embedder cannot be used afterwards."""
        ...
