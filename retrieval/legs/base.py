"""What a leg is asked and what it answers: the one seam between the pipeline and its retrievers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from retrieval.types import Filters, Leg


@dataclass(frozen=True, kw_only=True, slots=True)
class LegQuery:
    """What every leg is asked.

    Attributes:
        ns: number of the namespace.
        language: the namespace's language of analysis.
        text: the query.
        embedding: awaits the query's unit vector (dimensions,); each leg awaits it only when it
            needs it, so that legs start before it is there. Raises what the embedder raised.
        filters: conditions that hold before the cut to `fan_out`.
        as_of: the moment as of which the namespace is read; None for now.
        include_superseded: whether superseded memories count.
        fan_out: most memories a leg returns.
        ef_search: breadth of the HNSW search.
        max_hops: hops of the graph walk beyond the memories that mention the query's entities.
        min_similarity: least cosine similarity the vector leg returns; None for no bound.
        explain: whether to return paths and details.
        docs_given_out: ordinals the namespace has given out, an upper bound of its memories.
    """

    ns: int
    language: str
    text: str
    embedding: Callable[[], Awaitable[NDArray[np.float32]]]
    filters: Filters
    as_of: datetime | None
    include_superseded: bool
    fan_out: int
    ef_search: int
    max_hops: int
    min_similarity: float | None
    explain: bool
    docs_given_out: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """One memory that a leg found, with the leg's own score."""

    id: str
    score: float
    path: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LegRanking:
    """A leg's answer: hits best first (score descending, ties by id ascending), each id once."""

    hits: tuple[Hit, ...]
    details: dict[str, Any]


class Retriever(Protocol):
    """A leg. It raises on failure; the pipeline holds the deadline and reports a failed leg."""

    leg: Leg

    async def search(self, query: LegQuery) -> LegRanking:
        """The best `query.fan_out` memories for the query."""
        ...
