"""Ordering candidates: fusion, blended with the rescorer, adjusted for a time or an identifier in the query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from classifier.rescorer import RescoredCandidates
from retrieval.legs.base import LegRanking
from retrieval.ranking.candidates import Candidates, RankedCandidates
from retrieval.ranking.timeliness import NamedTime, StateOrder
from retrieval.text.time.states import AskedState
from retrieval.types.search import Leg


class Ordering(NamedTuple):
    """How the candidates of a query are ordered.

    Attributes:
        weights: of the legs in the fusion.
        rescored: the rescorer's scores; None if it did not run.
        named_time: the memories of the time that the query names; None if it names none.
        state_order: the order by time if the query asks how things are now, or were; None if it does not.
        min_relevance: less relevant candidates are left out if a rescorer ran; None to keep all.
        identified: slots of memories that contain an identifier of the query, if a rescorer ran, as that cannot tell
            one from any other rare word; they come first and stay in the answer regardless of relevance.
    """

    candidates: Candidates
    weights: Mapping[Leg, float]
    rrf_k: float
    rescored: RescoredCandidates | None
    named_time: NamedTime | None
    state_order: StateOrder | None
    min_relevance: float | None
    identified: frozenset[int]

    def order(self, rankings: Mapping[Leg, LegRanking]) -> RankedCandidates:
        """The candidates in these rankings, each a prefix of the leg's full ranking."""
        candidates, rescored, least = self.candidates, self.rescored, self.min_relevance
        order = candidates.rank(candidates.fuse(rankings, self.weights, rrf_k=self.rrf_k), rescored)
        if in_time := self.named_time or self.state_order:
            order = in_time.first(order, candidates)
        if self.puts_identified_first:
            order = self._identified_first(order)
        if least is not None and rescored is not None:
            docs = candidates.docs_of(order, len(order.numbers))
            known = enumerate(zip(rescored.relevance(order.numbers), docs, strict=True))
            kept = [position for position, (each, doc) in known if self.is_relevant(each, doc, at_least=least)]
            order = order.select(kept)
        return order

    def _identified_first(self, order: RankedCandidates) -> RankedCandidates:
        """Memories with an identifier come first: score'(d) = score(d) + the best score, for those d."""
        scores = np.array(order.scores)
        held = [doc in self.identified for doc in self.candidates.docs_of(order, scores.size)]
        return order.reordered(scores + scores[:1] * held)

    @property
    def asks_for_the_past(self) -> bool:
        """Whether the query names a time or asks for an earlier state."""
        order = self.state_order
        return self.named_time is not None or (order is not None and order.state is AskedState.EARLIER)

    @property
    def puts_identified_first(self) -> bool:
        """Whether candidates that contain an identifier of the query come first."""
        return not self.identified.isdisjoint(self.candidates.docs)

    def is_relevant(self, relevance: float, doc: int, *, at_least: float) -> bool:
        """Whether a memory is relevant enough, contains the query's identifier or is of the time that it asks for.

        The rescorer ignores identifiers and times.
        """
        time = self.named_time
        of_time = time is not None and time.certain and bool(time.eligible[doc])
        return relevance >= at_least or of_time or doc in self.identified
