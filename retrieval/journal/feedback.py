"""Feedback: callers' judgements of memories that a ranking showed, or should have shown; no I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from classifier.intents import Intent
from retrieval.errors import InvalidInput
from retrieval.journal.query_log import LoggedQuery
from retrieval.types.memory import Label, MemoryId, Zoned
from retrieval.types.search import MAX_TOP_K, Filters, Query
from retrieval.validation import check_query

T = TypeVar("T")

Grade = Annotated[float, Meta(ge=0, le=1)]


def _ids(description: str) -> Meta:
    return Meta(max_length=MAX_TOP_K, description=description)


class FeedbackRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was relevant for a query, and the ranking that was shown. At least one judgement is required."""

    id: Annotated[MemoryId | None, Meta(description="makes sending this feedback again safe")] = None
    search_id: Annotated[Label | None, Meta(description="of the answer that is judged")] = None
    query: Annotated[Query | None, Meta(description="null: from the query log")] = None
    shown: (
        Annotated[
            list[MemoryId],
            Meta(min_length=1, max_length=MAX_TOP_K, description="best first; null: from the query log"),
        ]
        | None
    ) = None
    relevant: Annotated[list[MemoryId], _ids("judged relevant, whether shown or missed")] = []
    irrelevant: Annotated[list[MemoryId], _ids("judged irrelevant")] = []
    clicked: Annotated[list[MemoryId], _ids("chosen from those shown, which also depends on their rank")] = []
    ratings: Annotated[dict[MemoryId, Grade], _ids("how relevant, from 0 to 1, whether shown or missed")] = {}
    intent: Annotated[Intent | None, Meta(description="of the query, if the caller knows it")] = None
    profile: Annotated[Label | None, Meta(description="the `profile` of the answer")] = None
    filters: Annotated[Filters | None, Meta(description="of the search; null: unknown, or none")] = None
    as_of: Annotated[Zoned | None, Meta(description="of the search")] = None
    query_timestamp: Annotated[Zoned | None, Meta(description="of the search")] = None


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


class FeedbackPage(Struct, frozen=True, kw_only=True):
    """A page of feedback, oldest first; `next_cursor` is null on the last."""

    feedback: list[Feedback]
    next_cursor: str | None


def check_feedback(request: FeedbackRequest) -> None:
    """Check what does not depend on stored data.

    Raises:
        InvalidInput: no judgement, neither query nor ranking nor search, a blank query, a memory shown twice, or one
            judged both ways; names the field.
    """
    if not (request.relevant or request.irrelevant or request.clicked or request.ratings):
        raise InvalidInput("judge at least one memory in `relevant`, `irrelevant`, `clicked` or `ratings`")
    for name in ("query", "shown"):
        if getattr(request, name) is None and request.search_id is None:
            raise InvalidInput("is required unless `search_id` names a logged search", loc=(name,))
    if request.query is not None:
        check_query(request.query)
    seen: set[str] = set()
    for at, memory_id in enumerate(request.shown or ()):
        if memory_id in seen:
            raise InvalidInput(f"{memory_id!r} is shown twice", loc=("shown", at))
        seen.add(memory_id)
    for at, memory_id in enumerate(request.irrelevant):
        if memory_id in request.relevant:
            raise InvalidInput(f"{memory_id!r} is judged both relevant and irrelevant", loc=("irrelevant", at))


def completed(request: FeedbackRequest, logged: LoggedQuery | None) -> FeedbackRequest:
    """Fill in the fields that a request, which passed `check_feedback`, leaves out from the log entry of its search.

    Raises:
        InvalidInput: the log lacks a required field, or a clicked memory was not shown.
    """
    query, shown = request.query, request.shown
    if logged is None and (query is None or shown is None):
        raise InvalidInput(
            "is not in the query log of this namespace; send `query` and `shown`, or another id", loc=("search_id",)
        )
    if query is None:
        query = _logged(logged.query if logged else None, "query")
    if shown is None:
        shown = [result.id for result in _logged(logged.results if logged else None, "shown")]
    for at, memory_id in enumerate(request.clicked):
        if memory_id not in shown:
            raise InvalidInput(f"{memory_id!r} is not among those shown", loc=("clicked", at))
    missing: dict[str, Any] = {
        name: getattr(logged, name)
        for name in ("profile", "filters", "as_of", "query_timestamp")
        if logged is not None and getattr(request, name) is None
    }
    return msgspec.structs.replace(request, query=query, shown=shown, **missing)


def _logged(value: T | None, name: str) -> T:
    if value is None:
        raise InvalidInput("is not kept in the query log for this search; send it", loc=(name,))
    return value


def judged_by_id(request: FeedbackRequest | Feedback) -> Iterator[tuple[str, str]]:
    """Yield (field, memory id) for the judgements of memories that need not have been shown."""
    for name in ("relevant", "irrelevant", "ratings"):
        for memory_id in getattr(request, name):
            yield name, memory_id


def merged(feedback: Iterable[Feedback], key: Callable[[Feedback], str | bytes]) -> list[Feedback]:
    """Feedback in order of time with that of the same key as one, those judged last at the end.

    Clicks add up; of the judgements of a memory the last counts.
    """
    found: dict[str | bytes, Feedback] = {}
    for later in feedback:
        before = found.pop(key(later), None)
        found[key(later)] = later if before is None else _overridden(before, later)
    return list(found.values())


def _overridden(before: Feedback, later: Feedback) -> Feedback:
    judged = {*later.relevant, *later.irrelevant, *later.ratings}
    return msgspec.structs.replace(
        later,
        shown=list(dict.fromkeys([*before.shown, *later.shown])),
        relevant=[*(each for each in before.relevant if each not in judged), *later.relevant],
        irrelevant=[*(each for each in before.irrelevant if each not in judged), *later.irrelevant],
        clicked=list(dict.fromkeys([*before.clicked, *later.clicked])),
        ratings={each: rating for each, rating in before.ratings.items() if each not in judged} | later.ratings,
        intent=later.intent or before.intent,
    )


def by_search(judged: Feedback) -> str | bytes:
    """The same for feedback on one search; without its id those of the same question are taken for one."""
    return judged.search_id if judged.search_id is not None else by_question(judged)


def by_question(judged: Feedback) -> bytes:
    """The same for feedback on the same question, whenever it was asked."""
    asked = (judged.query, judged.filters, judged.as_of, judged.query_timestamp)
    return msgspec.json.encode(asked, order="sorted")


def limited(judged: Feedback, existing: Collection[str]) -> Feedback:
    """What it says of the `existing` memories; the ranking that was shown stays."""
    return msgspec.structs.replace(
        judged,
        relevant=[each for each in judged.relevant if each in existing],
        irrelevant=[each for each in judged.irrelevant if each in existing],
        clicked=[each for each in judged.clicked if each in existing],
        ratings={each: rating for each, rating in judged.ratings.items() if each in existing},
    )


def fingerprint(request: FeedbackRequest) -> bytes:
    """A hash of all that the caller sent except the id; equal hashes mean the same feedback."""
    plain = msgspec.structs.replace(
        request,
        id=None,
        relevant=sorted(set(request.relevant)),
        irrelevant=sorted(set(request.irrelevant)),
        clicked=sorted(set(request.clicked)),
    )
    return hashlib.blake2b(msgspec.json.encode(plain, order="sorted"), digest_size=16).digest()
