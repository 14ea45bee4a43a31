"""What a leg is asked and what it answers: the one seam between the pipeline and its retrievers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from graph.resolution import Named
from graph.rules import Rule
from retrieval.legs.looked import Looked
from retrieval.legs.okapi import Sought
from retrieval.mirror.mirror import Mirror
from retrieval.mirror.registry import Standing
from retrieval.mirror.vectors import Vectors
from retrieval.profiles import DEFAULT, Profile
from retrieval.stopwatch import Stopwatch
from retrieval.store.visibility import eligibility
from retrieval.types import Filters, Leg


async def _alone() -> Mapping[Leg, Sequence[Hit]]:
    """No leg runs beside this one."""
    return {}


@dataclass(frozen=True, kw_only=True, slots=True)
class LegQuery:
    """What every leg is asked.

    Attributes:
        standing: the namespace as of the query.
        text: the query.
        looked: what it looks for by terms, all of which the mirror has.
        embedding: awaits the query's unit vector (dimensions,); each leg awaits it only when it
            needs it, so that legs start before it is there. Raises what the embedder raised.
        filters: conditions that hold before the cut to `fan_out`.
        as_of: the moment as of which the namespace is read; None for now.
        include_superseded: whether superseded memories count.
        among: the memories that meet the filter by metadata; None where there is none.
        fan_out: most memories a leg returns.
        ef_search: breadth of the search for the nearest vectors.
        max_hops: hops of the graph walk beyond the memories that mention the query's entities.
        min_similarity: least cosine similarity the vector leg returns; None for no bound.
        explain: whether to return paths and details.
        profile: what the legs do with turns, periods and each other's results.
        rules: what follows from the relations that memories state.
        linked: awaits what the query may name in the namespace of a mirror; None where nobody asked yet.
        others: awaits the hits of the legs that wait for no other, best first, by leg; a leg that failed
            or is late is not among them.
        patience_s: how long a leg waits for what it can do without.
        vectors: of the memories that legs looked at; what one has read another need not.
        stopwatch: takes the times of a leg's own stages.
    """

    standing: Standing
    text: str
    looked: Looked
    embedding: Callable[[], Awaitable[NDArray[np.float32]]]
    filters: Filters
    as_of: datetime | None
    include_superseded: bool
    fan_out: int
    ef_search: int
    max_hops: int
    min_similarity: float | None
    explain: bool
    vectors: Vectors
    profile: Profile = DEFAULT
    rules: Sequence[Rule] = ()
    linked: Callable[[Mirror], Awaitable[Named]] | None = None
    others: Callable[[], Awaitable[Mapping[Leg, Sequence[Hit]]]] = _alone
    patience_s: float = 0.5
    among: NDArray[np.int64] | None = None
    stopwatch: Stopwatch = field(default_factory=Stopwatch)

    @property
    def ns(self) -> int:
        """The number of the namespace."""
        return self.standing.namespace.ns

    @property
    def docs_given_out(self) -> int:
        """Ordinals that the namespace has given out, an upper bound of its memories."""
        return self.standing.namespace.next_doc

    @property
    def eligibility(self) -> dict[str, Any]:
        """The parameters of the predicate that says which memories the query may see."""
        return eligibility(self.filters, as_of=self.as_of, include_superseded=self.include_superseded)

    def masks(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which memories the query may see, and which of them meet its filters.

        By ordinal, as of this instant: memories that come later have no place in them. The two are one object
        where there are no filters.
        """
        visible, eligible = self.standing.mirror.memories.masks(
            self.filters,
            as_of=self.as_of,
            include_superseded=self.include_superseded,
            now=self.standing.now,
        )
        if self.among is None:
            return visible, eligible
        among = np.zeros_like(eligible)
        among[self.among[self.among < len(eligible)]] = True
        return visible, eligible & among


class Hit(NamedTuple):
    """One memory that a leg found.

    Attributes:
        id, doc: the memory and its ordinal.
        score: the leg's own.
        path, why: names of the entities that led to it, and the same as a sentence; the graph leg's,
            where an explanation is wanted.
    """

    id: str
    doc: int
    score: float
    path: tuple[str, ...] = ()
    why: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LegRanking:
    """A leg's answer.

    Attributes:
        hits: best first (score descending, ties by id ascending), each id once.
        details: what `explain` shows of how they were found.
        attainable: the score of a memory that could not match better; 0 where the leg knows of none.
        terms: what the leg looked for, where it looks for terms.
        rarities: of the entities of the query that the leg knows, in [0, 1]: 1 is one that a single
            memory mentions.
    """

    hits: tuple[Hit, ...]
    details: dict[str, Any]
    attainable: float = 0.0
    terms: Sought | None = None
    rarities: tuple[float, ...] = ()


class Retriever(Protocol):
    """A leg. It raises on failure; the pipeline holds the deadline and reports a failed leg."""

    leg: Leg

    async def search(self, query: LegQuery) -> LegRanking:
        """The best `query.fan_out` memories for the query."""
        ...
