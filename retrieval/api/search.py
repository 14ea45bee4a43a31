"""Search and context packs."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request, post

from retrieval.api.bodies import read_json
from retrieval.api.operation import Operation
from retrieval.api.paths import namespace_of
from retrieval.api.state import Shared, running, shared_of
from retrieval.types import ContextRequest, ContextResponse, SearchRequest, SearchResponse

search_decoder = msgspec.json.Decoder(SearchRequest)
context_decoder = msgspec.json.Decoder(ContextRequest)

_INTENT = {
    "label": "fact_lookup",
    "probabilities": {"fact_lookup": 0.86, "relationship": 0.05, "preference": 0.03, "open_ended": 0.06},
}
_ANSWERED_BY = {
    "intent": _INTENT,
    "weights": {"vector": 0.31, "bm25": 0.55, "graph": 0.14},
    "profile": "default@2",
    "degraded": [],
    "timings_ms": {"classify": 0.1, "embed": 1.6, "vector": 1.2, "bm25": 1.1, "graph": 1.4, "total": 4.1},
    "search_id": "019b8d3c-6f0a-7c3e-9d51-0d6f1f0f7a11",
}
_SEARCH = Operation(
    id="search",
    tag="retrieval",
    summary="Ranked memories",
    description="Three legs run side by side: `vector` (embeddings), `bm25` (words) and `graph` (entities, walking on "
    "from what the other two found first). Their rankings, cut where they say nothing any more, are fused by weighted "
    "reciprocal ranks. `mode` picks how: `adaptive` weighs the legs by the query's intent and by what they found, "
    "`hybrid` by the profile's fixed weights, the others run one leg. `weights` overrides both. A turn of a session "
    'is found with the turns around it. A time in the query ("in June", "last week", counted from '
    "`query_timestamp`) is a preference. Filters hold in every leg, before the cut to `top_k`. `as_of` answers as the "
    "namespace stood then. A leg that fails or is late is named in `degraded` and the others answer; when none "
    "answers it is a 503.",
    request=SearchRequest,
    response=SearchResponse,
    errors=(404, 503),
    example={
        "query": "When did Caroline go to the support group?",
        "top_k": 5,
        "filters": {"kind": ["message"], "tags_all": ["chat"]},
        "explain": True,
    },
    answer={
        "results": [
            {
                "id": "m1",
                "text": "Caroline: I went to the support group yesterday.",
                "snippet": "Caroline: I went to the support group yesterday.",
                "title": None,
                "kind": "message",
                "speaker": "Caroline",
                "session_id": "s1",
                "document_id": None,
                "created_at": "2023-05-08T13:56:00Z",
                "tags": ["chat"],
                "metadata": {"channel": "web"},
                "score": 0.0163,
                "fused": {"rank": 1, "score": 0.0163},
                "legs": {
                    "vector": {"rank": 2, "score": 0.71},
                    "bm25": {"rank": 1, "score": 9.3},
                    "graph": {"rank": 4, "score": 0.12, "path": ["Caroline", "support group"]},
                },
                "duplicates": ["m7"],
            }
        ],
        **_ANSWERED_BY,
    },
)
_CONTEXT = Operation(
    id="context",
    tag="retrieval",
    summary="A context pack",
    description="A search whose results are rendered into the text that an assistant puts in its prompt: "
    "deduplicated, cited, within `max_tokens`. `query` or `messages` is required. `tokens_used` counts the whole "
    "text, headers and citations included, and never exceeds `max_tokens`; what does not fit is skipped and "
    "listed in `dropped`.",
    request=ContextRequest,
    response=ContextResponse,
    errors=(404, 503),
    example={"query": "What does Caroline do on Thursdays?", "max_tokens": 512, "format": "markdown"},
    answer={
        "context": "[1] 2023-05-08, Caroline: I went to the support group yesterday.\n",
        "tokens_used": 19,
        "max_tokens": 512,
        "items": [{"id": "m1", "tokens": 17, "citation": "[1]"}],
        "dropped": [{"id": "m7", "reason": "duplicate_of:m1"}],
        **_ANSWERED_BY,
    },
)


async def answer_search(shared: Shared, namespace: str, asked: SearchRequest) -> SearchResponse:
    """Ranked memories; raises as the engine does."""
    answer = await running(shared).search(namespace, asked)
    shared.metrics.observe_answer(answer.timings_ms, answer.degraded)
    return answer


async def answer_context(shared: Shared, namespace: str, asked: ContextRequest) -> ContextResponse:
    """A context pack; raises as the engine does."""
    answer = await running(shared).context(namespace, asked)
    shared.metrics.observe_answer(answer.timings_ms, answer.degraded)
    return answer


@post("/v1/namespaces/{ns:str}/search", status_code=200, opt=_SEARCH.as_opt)
async def search(request: Request[Any, Any, Any]) -> SearchResponse:
    """Ranked memories."""
    return await answer_search(shared_of(request), namespace_of(request), await read_json(request, search_decoder))


@post("/v1/namespaces/{ns:str}/context", status_code=200, opt=_CONTEXT.as_opt)
async def context(request: Request[Any, Any, Any]) -> ContextResponse:
    """A context pack."""
    return await answer_context(shared_of(request), namespace_of(request), await read_json(request, context_decoder))
