"""The kinds of search that are timed one after another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from retrieval.benchmarking.corpus import DAYS, EPOCH, TAGS, TEAMS
from retrieval.benchmarking.figures import EmbeddingUse
from retrieval.types import Filters, Mode, SearchRequest

TOP_K = 10
LATEST = 0.05
"""Share of the memories that the filter by time lets through."""

FILTERS: Mapping[str, Filters] = {
    **{f"tag {share:.1%}": Filters(tags_all=[tag]) for tag, share in TAGS.items()},
    f"metadata {1 / TEAMS:.1%}": Filters(metadata={"team": "t0"}),
    f"created_after {LATEST:.1%}": Filters(created_after=EPOCH + timedelta(days=DAYS * (1 - LATEST))),
}
"""By what they let through."""

NARROW = f"tag {TAGS['twohundredth']:.1%}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One kind of search; a cached one repeats the queries of the case before it."""

    name: str
    mode: Mode = Mode.ADAPTIVE
    embedding: EmbeddingUse = "computed"
    filter: str | None = None

    def request(self, query: str) -> SearchRequest:
        """The search for a query."""
        filters = FILTERS[self.filter] if self.filter else Filters()
        return SearchRequest(query=query, top_k=TOP_K, mode=self.mode, filters=filters)


ADAPTIVE, ADAPTIVE_CACHED = "adaptive", "adaptive, embedding cached"

CASES = (
    Case(name=ADAPTIVE),
    Case(name=ADAPTIVE_CACHED, embedding="cached"),
    Case(name="vector", mode=Mode.VECTOR),
    Case(name="vector, embedding cached", mode=Mode.VECTOR, embedding="cached"),
    Case(name="bm25", mode=Mode.BM25, embedding="none"),
    Case(name="graph", mode=Mode.GRAPH),
    Case(name="graph, embedding cached", mode=Mode.GRAPH, embedding="cached"),
    *(Case(name=f"adaptive, {name}", filter=name) for name in FILTERS),
    Case(name=f"vector, {NARROW}", mode=Mode.VECTOR, filter=NARROW),
)
