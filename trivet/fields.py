"""Keyword fields of the clients, for editors and type checkers; the server describes and checks them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, TypedDict

from retrieval.types.memory import Kind
from retrieval.types.search import PackFormat, PackOrder

Time = datetime | str


class FilterFields(TypedDict, total=False):
    """Which memories: all given filters must match."""

    tags_all: list[str]
    tags_any: list[str]
    kind: list[Kind]
    session_id: list[str]
    document_id: list[str]
    speaker: list[str]
    created_after: Time | None
    created_before: Time | None
    metadata: Mapping[str, Any]


class SearchFields(TypedDict, total=False):
    """Options of a search."""

    top_k: int
    mode: Literal["adaptive", "hybrid", "vector", "bm25", "graph"]
    weights: Mapping[str, float] | None
    intent: Literal["fact_lookup", "relationship", "preference", "open_ended"] | None
    profile: str | None
    rrf_k: int | None
    filters: FilterFields | Mapping[str, Any]
    exclude: Mapping[str, Any]
    as_of: Time | None
    query_timestamp: Time | None
    include_superseded: bool
    min_similarity: float | None
    ef_search: int
    max_hops: int | None
    rescore: bool | None
    min_relevance: float | None
    source_cap: int | None
    diversity: float | None
    explain: bool


class ContextFields(SearchFields, total=False):
    """Options of a context pack."""

    max_tokens: int
    format: PackFormat
    order: PackOrder
