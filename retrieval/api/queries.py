"""The query log: what was asked, where the namespace's owner wants that kept."""

from __future__ import annotations

from typing import Any

from litestar import Request, delete, get

from retrieval.api.operation import Operation, QueryParameter
from retrieval.api.paging import PARAMETERS, Deleted, collected, read_page
from retrieval.api.paths import namespace_of
from retrieval.api.state import engine_of
from retrieval.query_log import QueryPage

PATH = "/v1/namespaces/{ns:str}/queries"

_LOGGED = {
    "id": "019b8d3c-6f0a-7c3e-9d51-0d6f1f0f7a11",
    "at": "2026-01-05T09:30:00Z",
    "query": "Did [email] come to the support group?",
    "query_chars": 47,
    "query_hash": None,
    "mode": "adaptive",
    "profile": "default@3",
    "intent": "fact_lookup",
    "results": [{"id": "m1", "score": 0.0163}],
    "filters": {"kind": ["message"]},
    "as_of": None,
    "query_timestamp": None,
    "total_ms": 4.1,
}

_LIST = Operation(
    id="list_queries",
    tag="journal",
    summary="List logged searches",
    description="Oldest first. Follow `next_cursor` until it is null. Searches are logged only while the namespace's "
    "setting `query_log` is set; it says how many and how long they are kept and what is taken out of them. An entry "
    "is written shortly after its answer.",
    response=QueryPage,
    errors=(404,),
    answer={"queries": [_LOGGED], "next_cursor": None},
    query=PARAMETERS,
)
_DELETE = Operation(
    id="delete_queries",
    tag="journal",
    summary="Delete logged searches",
    description="All of them, or those of the given ids.",
    response=Deleted,
    errors=(404,),
    answer={"deleted": 31},
    query=(QueryParameter(name="id", type=list[str], description="the `search_id` of an answer", repeated=True),),
)


@get(PATH, opt=_LIST.as_opt)
async def list_queries(request: Request[Any, Any, Any]) -> QueryPage:
    """One page."""
    name, page = namespace_of(request), read_page(request.scope["query_string"])
    return await engine_of(request).records.list_queries(name, cursor=page.cursor, limit=page.limit)


@delete(PATH, status_code=200, opt=_DELETE.as_opt)
async def delete_queries(request: Request[Any, Any, Any]) -> Deleted:
    """Some, or all."""
    name = namespace_of(request)
    ids = collected(request.scope["query_string"], often=("id",)).get("id")
    return Deleted(deleted=await engine_of(request).records.delete_queries(name, ids=ids))
