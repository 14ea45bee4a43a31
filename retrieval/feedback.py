"""Feedback: what callers say of the memories that a ranking showed, or should have shown; no I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from classifier.intents import Intent
from retrieval.errors import InvalidInput
from retrieval.query_log import LoggedQuery
from retrieval.types import MAX_TOP_K, Filters, Label, MemoryId, Zoned

T = TypeVar("T")

Grade = Annotated[float, Meta(ge=0, le=1)]


def _ids(description: str) -> Meta:
    return Meta(max_length=MAX_TOP_K, description=description)


class FeedbackRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was relevant for a query, and the ranking that was shown. At least one judgement is required."""

    id: Annotated[MemoryId | None, Meta(description="names this feedback, so that sending it again is safe")] = None
    search_id: Annotated[Label | None, Meta(description="of the answer that is judged")] = None
    query: Annotated[str, Meta(min_length=1, max_length=8_192, description="null: as the query log has it")] | None = (
        None
    )
    shown: (
        Annotated[
            list[MemoryId],
            Meta(min_length=1, max_length=MAX_TOP_K, description="best first; null: as the query log has it"),
        ]
        | None
    ) = None
    relevant: Annotated[list[MemoryId], _ids("judged relevant, whether shown or missed")] = []
    irrelevant: Annotated[list[MemoryId], _ids("judged irrelevant")] = []
    clicked: Annotated[list[MemoryId], _ids("chosen among those shown, which also depends on where they stood")] = []
    ratings: Annotated[dict[MemoryId, Grade], _ids("how relevant, from 0 to 1, whether shown or missed")] = {}
    intent: Annotated[Intent | None, Meta(description="of the query, if the caller knows it")] = None
    profile: Annotated[Label | None, Meta(description="the `profile` of the answer")] = None
    filters: Annotated[Filters | None, Meta(description="of the search; null: not known, or none")] = None
    as_of: Annotated[Zoned | None, Meta(description="of the search")] = None
    query_timestamp: Annotated[Zoned | None, Meta(description="of the search")] = None


class FeedbackReceipt(Struct, frozen=True, kw_only=True):
    """Whether feedback was written; it was not where the same is there already."""

    id: str
    stored: bool


class Feedback(Struct, frozen=True, kw_only=True):
    """Feedback as it is stored. Ids of memories stay when the memories are deleted."""

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
    """Refuse what is wrong whatever is stored.

    Raises:
        InvalidInput: no judgement, nothing that names the query or the ranking, a blank query, a memory shown twice,
            or one judged both ways; names the field.
    """
    if not (request.relevant or request.irrelevant or request.clicked or request.ratings):
        raise InvalidInput("judge at least one memory in `relevant`, `irrelevant`, `clicked` or `ratings`")
    for name in ("query", "shown"):
        if getattr(request, name) is None and request.search_id is None:
            raise InvalidInput("is required unless `search_id` names a logged search", loc=(name,))
    if request.query is not None and not request.query.strip():
        raise InvalidInput("must not be blank", loc=("query",))
    seen: set[str] = set()
    for at, memory_id in enumerate(request.shown or ()):
        if memory_id in seen:
            raise InvalidInput(f"{memory_id!r} is shown twice", loc=("shown", at))
        seen.add(memory_id)
    for at, memory_id in enumerate(request.irrelevant):
        if memory_id in request.relevant:
            raise InvalidInput(f"{memory_id!r} is judged both relevant and irrelevant", loc=("irrelevant", at))


def completed(request: FeedbackRequest, logged: LoggedQuery | None) -> FeedbackRequest:
    """The request with what it leaves out as the query log has it.

    Args:
        request: passed `check_feedback`.
        logged: the entry of its search, if there is one.

    Raises:
        InvalidInput: the log does not have what is needed, or a memory was clicked that was not shown.
    """
    query, shown = request.query, request.shown
    if logged is None and (query is None or shown is None):
        raise InvalidInput(
            "is not in the query log of this namespace; send `query` and `shown`, or another id", loc=("search_id",)
        )
    if query is None:
        query = _kept(logged.query if logged else None, "query")
    if shown is None:
        shown = [result.id for result in _kept(logged.results if logged else None, "shown")]
    for at, memory_id in enumerate(request.clicked):
        if memory_id not in shown:
            raise InvalidInput(f"{memory_id!r} is not among those shown", loc=("clicked", at))
    known: dict[str, Any] = {} if logged is None else {name: getattr(logged, name) for name in _OF_THE_SEARCH}
    unsaid = {name: value for name, value in known.items() if getattr(request, name) is None}
    return msgspec.structs.replace(request, query=query, shown=shown, **unsaid)


_OF_THE_SEARCH = ("profile", "filters", "as_of", "query_timestamp")


def _kept(value: T | None, name: str) -> T:
    if value is None:
        raise InvalidInput("is not kept in the query log for this search; send it", loc=(name,))
    return value


def judged_by_id(request: FeedbackRequest) -> Iterator[tuple[str, str]]:
    """Each field that names memories whether shown or not, with each memory that it names."""
    for name in ("relevant", "irrelevant", "ratings"):
        for memory_id in getattr(request, name):
            yield name, memory_id


def fingerprint(request: FeedbackRequest) -> bytes:
    """A hash of all that the caller sent but the id: equal means the same feedback."""
    plain = msgspec.structs.replace(
        request,
        id=None,
        relevant=sorted(set(request.relevant)),
        irrelevant=sorted(set(request.irrelevant)),
        clicked=sorted(set(request.clicked)),
    )
    return hashlib.blake2b(msgspec.json.encode(plain, order="sorted"), digest_size=16).digest()
