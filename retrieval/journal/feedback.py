"""Feedback: callers' judgements of memories that a ranking showed, or should have shown; no I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from retrieval.errors import InvalidInput
from retrieval.types.journal import Feedback, FeedbackRequest, LoggedQuery
from retrieval.validation import check_query

T = TypeVar("T")

_LISTS = ("relevant", "irrelevant", "clicked")
"""Fields with a list of judged memories."""


def check_feedback(request: FeedbackRequest) -> None:
    """Check what does not depend on stored data.

    Raises InvalidInput, which names the field, for no judgement, neither query nor ranking nor search, a blank query, a
    memory shown twice, or one judged both ways.
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

    Raises InvalidInput if the log lacks a required field, or a clicked memory was not shown.
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
    """Feedback in order of time, merged by key, with the keys judged last at the end.

    Clicks add up; a memory's last judgement counts.
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
    """A key of the search that feedback is on; without a search id, the question and the memories shown."""
    if judged.search_id is not None:
        return judged.search_id
    return by_question(judged) + msgspec.json.encode(judged.shown)


def by_question(judged: Feedback) -> bytes:
    """A key of the question that feedback is on, whenever it was asked."""
    asked = (judged.query, judged.filters, judged.as_of, judged.query_timestamp)
    return msgspec.json.encode(asked, order="sorted")


def limited(judged: Feedback, existing: Collection[str]) -> Feedback:
    """The feedback on the `existing` memories only; the ranking shown is kept."""
    lists = {name: [each for each in getattr(judged, name) if each in existing] for name in _LISTS}
    ratings = {each: rating for each, rating in judged.ratings.items() if each in existing}
    return msgspec.structs.replace(judged, ratings=ratings, **lists)


def fingerprint(request: FeedbackRequest) -> bytes:
    """A hash of all that the caller sent except the id; equal hashes mean the same feedback."""
    lists = {name: sorted(set(getattr(request, name))) for name in _LISTS}
    plain = msgspec.structs.replace(request, id=None, **lists)
    return hashlib.blake2b(msgspec.json.encode(plain, order="sorted"), digest_size=16).digest()
