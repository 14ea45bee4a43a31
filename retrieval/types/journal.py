"""Feedback and the entries of the query log."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from classifier.intents import Intent
from retrieval.types.memory import Label, MemoryId, Zoned
from retrieval.types.search import MAX_TOP_K, Filters, Query, Share


class ScoredId(Struct, frozen=True, kw_only=True):
    """A returned memory with its score."""

    id: str
    score: float


class LoggedQuery(Struct, frozen=True, kw_only=True):
    """One logged search."""

    id: Annotated[str, Meta(description="the `search_id` of its answer")]
    at: Zoned
    query: Annotated[str | None, Meta(description="after redaction; null: withheld")]
    query_chars: Annotated[int, Meta(description="of the original query")]
    query_hash: Annotated[str | None, Meta(description="with `all` redacted: equal for equal queries of the namespace")]
    mode: str
    profile: str
    intent: str | None
    results: Annotated[list[ScoredId] | None, Meta(description="best first; null: not stored")]
    filters: Annotated[Filters | None, Meta(description="null: withheld because they contain something to redact")]
    as_of: Zoned | None
    query_timestamp: Zoned | None
    total_ms: float


class QueryPage(Struct, frozen=True, kw_only=True):
    """A page of the log, oldest first; `next_cursor` is null on the last."""

    queries: list[LoggedQuery]
    next_cursor: str | None


def _ids(description: str) -> Meta:
    return Meta(max_length=MAX_TOP_K, description=description)


class FeedbackRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was relevant for a query, and the ranking that was shown. At least one judgement is required."""

    id: Annotated[MemoryId | None, Meta(description="makes sending this feedback again safe")] = None
    search_id: Annotated[Label | None, Meta(description="of the answer that is judged")] = None
    query: Annotated[Query | None, Meta(description="null: from the query log")] = None
    shown: Annotated[
        Annotated[list[MemoryId], Meta(min_length=1, max_length=MAX_TOP_K)] | None,
        Meta(description="best first; null: from the query log"),
    ] = None
    relevant: Annotated[list[MemoryId], _ids("judged relevant, whether shown or missed")] = []
    irrelevant: Annotated[list[MemoryId], _ids("judged irrelevant")] = []
    clicked: Annotated[list[MemoryId], _ids("chosen from those shown, which also depends on their rank")] = []
    ratings: Annotated[dict[MemoryId, Share], _ids("how relevant, from 0 to 1, whether shown or missed")] = {}
    intent: Annotated[Intent | None, Meta(description="of the query, if the caller knows it")] = None
    profile: Annotated[Label | None, Meta(description="the `profile` of the answer")] = None
    filters: Annotated[Filters | None, Meta(description="of the search; null: unknown, or none")] = None
    as_of: Annotated[Zoned | None, Meta(description="of the search")] = None
    query_timestamp: Annotated[Zoned | None, Meta(description="of the search")] = None


class FeedbackReceipt(Struct, frozen=True, kw_only=True):
    """Whether feedback was written; False if the same feedback was stored before."""

    id: str
    stored: bool


class Feedback(Struct, frozen=True, kw_only=True):
    """Feedback as stored. Memory ids remain after the memories are deleted."""

    id: str
    at: Zoned
    query: str
    shown: list[str]
    relevant: list[str]
    irrelevant: list[str]
    clicked: list[str]
    ratings: dict[str, float]
    intent: str | None
    profile: str | None
    search_id: str | None
    filters: Filters | None
    as_of: Zoned | None
    query_timestamp: Zoned | None


def asked_at(search: LoggedQuery | Feedback) -> Zoned:
    """The time from which relative times in its query count."""
    return search.query_timestamp or search.as_of or search.at


class FeedbackPage(Struct, frozen=True, kw_only=True):
    """A page of feedback, oldest first; `next_cursor` is null on the last."""

    feedback: list[Feedback]
    next_cursor: str | None
