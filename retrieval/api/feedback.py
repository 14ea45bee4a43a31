"""Feedback: what callers say of rankings."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request, delete, get, post

from retrieval.api.bodies import read_json
from retrieval.api.operation import Operation
from retrieval.api.paging import PARAMETERS, Deleted, collected, read_page
from retrieval.api.paths import namespace_of
from retrieval.api.state import engine_of
from retrieval.feedback import FeedbackPage, FeedbackReceipt, FeedbackRequest

_decoder = msgspec.json.Decoder(FeedbackRequest)

PATH = "/v1/namespaces/{ns:str}/feedback"

_EXAMPLE = {
    "id": "f1",
    "query": "When did Caroline go to the support group?",
    "shown": ["m1", "m7"],
    "clicked": ["m1"],
    "ratings": {"m1": 1.0},
    "intent": "fact_lookup",
    "profile": "default@3",
}
_STORED = {
    "at": "2026-01-05T09:30:00Z",
    "relevant": [],
    "irrelevant": [],
    "search_id": None,
    "filters": None,
    "as_of": None,
    "query_timestamp": None,
    **_EXAMPLE,
}

_ADD = Operation(
    id="add_feedback",
    tag="journal",
    summary="Say what was relevant",
    description="Stored with the ranking that was shown, for tuning. `clicked` memories must be among `shown`; "
    "`relevant`, `irrelevant` and `ratings` may also name memories that were missed, but they must exist. With the "
    "`search_id` of a logged search, `query`, `shown` and what else is left out are taken from the query log. The same "
    "`id` with the same content is stored once; with other content it is a 409. A namespace keeps the last 100,000. "
    "When a memory is deleted its id stays in feedback; deleting the namespace deletes its feedback.",
    request=FeedbackRequest,
    response=FeedbackReceipt,
    status=201,
    errors=(404, 409),
    example=_EXAMPLE,
    answer={"id": "f1", "stored": True},
)
_LIST = Operation(
    id="list_feedback",
    tag="journal",
    summary="List feedback",
    description="Oldest first. Follow `next_cursor` until it is null.",
    response=FeedbackPage,
    errors=(404,),
    answer={"feedback": [_STORED], "next_cursor": None},
    query=PARAMETERS,
)
_DELETE = Operation(
    id="delete_feedback", tag="journal", summary="Delete all feedback of a namespace",
    response=Deleted, errors=(404,), answer={"deleted": 12},
)  # fmt: skip


@post(PATH, status_code=201, opt=_ADD.as_opt)
async def add_feedback(request: Request[Any, Any, Any]) -> FeedbackReceipt:
    """Store it."""
    name = namespace_of(request)
    return await engine_of(request).records.add_feedback(name, await read_json(request, _decoder))


@get(PATH, opt=_LIST.as_opt)
async def list_feedback(request: Request[Any, Any, Any]) -> FeedbackPage:
    """One page."""
    name, page = namespace_of(request), read_page(request.scope["query_string"])
    return await engine_of(request).records.list_feedback(name, cursor=page.cursor, limit=page.limit)


@delete(PATH, status_code=200, opt=_DELETE.as_opt)
async def delete_feedback(request: Request[Any, Any, Any]) -> Deleted:
    """All of it."""
    name = namespace_of(request)
    collected(request.scope["query_string"])
    return Deleted(deleted=await engine_of(request).records.delete_feedback(name))
