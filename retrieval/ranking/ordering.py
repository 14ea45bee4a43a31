"""The order of a query's candidates: fused, blended with the rescorer's, by the time and identifier that it names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from classifier.rescorer import Rescored
from retrieval.legs.base import LegRanking
from retrieval.ranking.candidates import Candidates, RankedCandidates
from retrieval.ranking.timeliness import NamedTime, StateOrder
from retrieval.types.search import Leg


class Ordering(NamedTuple):
    """How the candidates of a query are put in order.

    Attributes:
        weights: of the legs in the fusion.
        rescored: the rescorer's scores; None if it did not run.
        named_time: the memories of the time that the query names; None if it names none.
        state_order: the order by time where the query asks how things are now, or were; None if it does not.
        min_relevance: candidates that are less relevant are left out if a rescorer ran; None to keep all.
        identified: slots of memories that hold an identifier of the query, if a rescorer ran, which cannot tell one
            from any other rare word; they come first, and stay in the answer whatever their relevance.
    """

    candidates: Candidates
    weights: Mapping[Leg, float]
    rrf_k: float
    rescored: Rescored | None
    named_time: NamedTime | None
    state_order: StateOrder | None
    min_relevance: float | None
    identified: frozenset[int]

    def of(self, rankings: Mapping[Leg, LegRanking]) -> RankedCandidates:
        """The candidates in these rankings, of which each is the beginning of the leg's own."""
        candidates, rescored, least = self.candidates, self.rescored, self.min_relevance
        order = candidates.rank(candidates.fuse(rankings, self.weights, rrf_k=self.rrf_k), rescored)
        if in_time := self.named_time or self.state_order:
            order = in_time.first(order, candidates)
        if self.puts_identified_first:
            order = self._identified_first(order)
        if least is not None and rescored is not None:
            docs = candidates.docs_of(order, len(order.numbers))
            known = enumerate(zip(rescored.relevance(order.numbers), docs, strict=True))
            order = order.at([place for place, (each, doc) in known if self.is_relevant(each, doc, at_least=least)])
        return order

    def _identified_first(self, order: RankedCandidates) -> RankedCandidates:
        """The memories that hold an identifier first: score'(d) = score(d) + the best score, for those d."""
        scores = np.array(order.scores)
        held = [doc in self.identified for doc in self.candidates.docs_of(order, scores.size)]
        return order.reordered(scores + scores[:1] * held)

    @property
    def puts_identified_first(self) -> bool:
        """Whether candidates come first for holding an identifier of the query."""
        return not self.identified.isdisjoint(self.candidates.docs)

    def is_relevant(self, relevance: float, doc: int, *, at_least: float) -> bool:
        """Whether a memory is relevant enough, or holds the query's identifier or is of the time for which it asks.

        The rescorer ignores both.
        """
        time = self.named_time
        of_time = time is not None and time.certain and bool(time.eligible[doc])
        return relevance >= at_least or of_time or doc in self.identified
