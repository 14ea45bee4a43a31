"""The result of a search, with everything that led to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from classifier.inference import IntentPrediction
from classifier.leg_weights import LEGS
from classifier.query_performance import QueryPerformanceFeatures
from retrieval.answer.selection import RankedMemory
from retrieval.ids import uuid7
from retrieval.index.namespace_index import NamespaceIndex
from retrieval.legs.base import LegRanking
from retrieval.preparation import PreparedQuery
from retrieval.ranking.ordering import Ordering
from retrieval.ranking.weighting import Weighting
from retrieval.store.namespaces import Namespace
from retrieval.types.search import Degradation, Leg


class Answer(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The result of a search.

    Attributes:
        query: the prepared request with its namespace.
        memories: those found, best first.
        said_before: ids of memories left out because the conversation already contains them.
        evidence: features of the legs' scores.
        learned_weights: predicted from the legs' scores; None if a leg is missing or the weights were explicit.
        fragment_share: share of the query that the embedder reads in fragments; 0 if the weights were explicit.
        ordering: of the memories that the legs ranked, limited to the hits per leg that the weighting's recipe wants.
        fused_rankings: the same rankings after the noise cut, as they were fused.
        degraded: what failed.
        search_id: identifies the search in feedback.
    """

    query: PreparedQuery
    memories: Sequence[RankedMemory]
    said_before: Sequence[str]
    prediction: IntentPrediction
    evidence: QueryPerformanceFeatures
    learned_weights: Mapping[str, float] | None
    fragment_share: float
    weighting: Weighting
    ordering: Ordering
    fused_rankings: Mapping[Leg, LegRanking]
    degraded: Sequence[Degradation]
    search_id: str = msgspec.field(default_factory=uuid7)

    @property
    def namespace(self) -> Namespace:
        """The namespace as of the search."""
        return self.query.snapshot.namespace

    @property
    def index(self) -> NamespaceIndex:
        """The namespace's index, which later searches may update."""
        return self.query.snapshot.index

    @property
    def evidence_by_id(self) -> QueryPerformanceFeatures:
        """The evidence with ids instead of candidate numbers, for training."""
        legs = {leg: getattr(self.evidence, leg) for leg in LEGS}
        return replace(
            self.evidence, **{leg: of._replace(ids=self.ordering.candidates.ids([*of.ids])) for leg, of in legs.items()}
        )

    def rescorer_scores(self) -> dict[str, float]:
        """The rescorer's scores by id; empty if no rescorer ran."""
        scores = {} if self.ordering.rescored is None else self.ordering.rescored.scores
        return dict(zip(self.ordering.candidates.ids([*scores]), scores.values(), strict=True))
