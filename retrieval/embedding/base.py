"""What every embedding provider offers."""

from collections.abc import Awaitable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Embedder(Protocol):
    """Turns texts into unit vectors, so that their inner product is their cosine.

    Queries and documents are apart because some models want a different prefix for each and
    because a query is waited for while documents come in bulk.

    Attributes:
        model: name stored with a namespace's vectors; vectors of different names are never
            compared.
        dimensions: length of every vector.
    """

    model: str
    dimensions: int

    def embed_query(self, text: str) -> Awaitable[NDArray[np.float32]]:
        """Embed one search text as a unit vector of shape (dimensions,)."""
        ...

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts to be stored as unit rows, shape (len(texts), dimensions), order kept."""
        ...

    async def aclose(self) -> None:
        """Release threads and connections; the embedder is not used afterwards."""
        ...
