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

Answer = TypeVar("Answer", SearchResponse, ContextResponse)


class SearchController(Controller):
    """What is asked of memories."""

    path = "/v1"
    tags = ("retrieval",)

    @post("/namespaces/{ns:str}/search", status_code=200, opt={READS: True}, responses=problems(404))
    async def search(self, api: Api, ns: NamespaceName, data: JSONBody[SearchRequest]) -> SearchResponse:
        """Ranked memories.

        Three legs run side by side: `vector` (embeddings), `bm25` (words) and `graph` (entities, walking on from what
        the other two found first). Their rankings, cut where they say nothing any more, are fused by weighted
        reciprocal ranks. `mode` picks how: `adaptive` weighs the legs by the query's intent and by what they found,
        `hybrid` by the profile's fixed weights, the others run one leg. `weights` overrides both. A turn of a session
        is found with the turns around it. A time in the query ("in June", "last week", counted from
        `query_timestamp`) is a preference. Filters hold in every leg, before the cut to `top_k`. `as_of` answers as
        the namespace stood then. A leg that fails or is late is named in `degraded` and the others answer; when none
        answers it is a 503.
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

        A search whose results are rendered into the text that an assistant puts in its prompt: deduplicated, cited,
        within `max_tokens`, facts apart from turns, turns grouped by session with the question or answer they need,
        long texts as excerpts around the match. `query` or `messages` is required; nothing that `messages` holds comes
        back. `tokens_used` counts the whole text, headers and citations included, and never exceeds `max_tokens`; what
        does not fit is skipped and listed in `dropped`.
        """
        return _observed(api, await api.engine.context(ns, data))

    @post("/classify", status_code=200, opt={READS: True}, responses=problems(404))
    async def classify(self, api: Api, request: TypedRequest, data: JSONBody[ClassifyRequest]) -> ClassifyResponse:
        """The intent of a query and the weights that it alone asks for.

        Nothing is searched. In a search of mode `adaptive` what the legs find moves these weights. Name the
        `namespace` that would be searched: it may have a profile, and with it a classifier and weights, of its own.
        """
        if data.namespace is not None:
            check_access(request.scope, data.namespace, writes=False)
        return await api.engine.classify(data)


def _observed(api: AppState, answer: Answer) -> Answer:
    """The answer, counted; its stages in the next turn of the event loop, when it has been sent."""
    embedders = api.engine.embedders
    api.metrics.observe_cache(hits=embedders.hits, misses=embedders.misses)
    asyncio.get_running_loop().call_soon(api.metrics.observe_answer, answer.timings_ms, answer.degraded)
    if api.tracing is not None:
        api.tracing.describe(answer)
    return answer
