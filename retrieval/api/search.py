"""Search, context packs, and the intent of a query."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from litestar import Controller, post
from litestar.params import JSONBody

from retrieval.api.parameters import MAX_BYTES, MAX_CONVERSATION_BYTES, NamespaceName, TypedRequest
from retrieval.api.problems import problems
from retrieval.api.state import Api, AppState
from retrieval.api.tokens import READS, check_access
from retrieval.types.search import (
    ClassifyRequest,
    ClassifyResponse,
    ContextRequest,
    ContextResponse,
    SearchRequest,
    SearchResponse,
)

Response = TypeVar("Response", SearchResponse, ContextResponse)


class SearchController(Controller):
    """Searches, context packs, classification."""

    path = "/v1"
    tags = ("retrieval",)

    @post("/namespaces/{ns:str}/search", status_code=200, opt={READS: True}, responses=problems(404))
    async def search(self, api: Api, ns: NamespaceName, data: JSONBody[SearchRequest]) -> SearchResponse:
        """Ranked memories.

        Three legs run in parallel: `vector` (embeddings), `bm25` (words) and `graph` (entities, walking on from the
        other legs' top hits). Weak hits are dropped, and weighted reciprocal rank fusion combines the rankings. `mode`
        sets the weights: `adaptive` derives them from the query's intent and the legs' results, `hybrid` uses the
        profile's fixed weights, the other modes run one leg. `weights` overrides both. A turn of a session is matched
        together with the turns around it. A time in the query ("in June", "last week", counted from
        `query_timestamp`) is a preference, not a filter. Filters apply in every leg, before the cut to `top_k`. `as_of`
        searches the namespace as it was at that time. A leg that fails or times out is named in `degraded` and the
        others answer; if none answers, the response is a 503.
        """
        return _observed(api, await api.engine.search(ns, data))

    @post(
        "/namespaces/{ns:str}/context",
        status_code=200,
        opt={MAX_BYTES: MAX_CONVERSATION_BYTES, READS: True},
        responses=problems(404),
    )
    async def context(self, api: Api, ns: NamespaceName, data: JSONBody[ContextRequest]) -> ContextResponse:
        """A context pack.

        A search whose results are rendered as text for an assistant's prompt: deduplicated, cited, within
        `max_tokens`, facts separate from turns, turns grouped by session with the question or answer they need, long
        texts as excerpts around the match. `query` or `messages` is required; nothing that is already in `messages` is
        returned. `tokens_used` counts the whole text, headers and citations included, and never exceeds `max_tokens`;
        what does not fit is skipped and listed in `dropped`.
        """
        return _observed(api, await api.engine.context(ns, data))

    @post("/classify", status_code=200, opt={READS: True}, responses=problems(404))
    async def classify(self, api: Api, request: TypedRequest, data: JSONBody[ClassifyRequest]) -> ClassifyResponse:
        """The intent of a query and its leg weights.

        Nothing is searched. A search in mode `adaptive` reads misspelt words as similar ones that memories have, and
        also adjusts the weights to the legs' results. Name the `namespace` that you would search: it may have its own
        profile, with its own classifier and weights.
        """
        if data.namespace is not None:
            check_access(request.scope, data.namespace, writes=False)
        return await api.engine.classify(data)


def _observed(api: AppState, answer: Response) -> Response:
    """Count an answer and return it; its stages are counted in the event loop's next turn, after it has been sent."""
    asyncio.get_running_loop().call_soon(api.metrics.observe_answer, answer.timings_ms, answer.degraded)
    if api.tracing is not None:
        api.tracing.describe(answer)
    return answer
