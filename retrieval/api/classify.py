"""The intent of a query."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request, post

from retrieval.api.bodies import read_json
from retrieval.api.operation import Operation
from retrieval.api.state import engine_of
from retrieval.types import ClassifyRequest, ClassifyResponse

_decoder = msgspec.json.Decoder(ClassifyRequest)

_CLASSIFY = Operation(
    id="classify",
    tag="retrieval",
    summary="The intent of a query and the weights that it alone asks for",
    description="Nothing is searched. In a search of mode `adaptive` what the legs find moves these weights.",
    request=ClassifyRequest,
    response=ClassifyResponse,
    errors=(404, 503),
    example={"query": "How are Caroline and Melanie connected?"},
    answer={
        "intent": {
            "label": "relationship",
            "probabilities": {"fact_lookup": 0.09, "relationship": 0.83, "preference": 0.02, "open_ended": 0.06},
        },
        "weights": {"vector": 0.28, "bm25": 0.3, "graph": 0.42},
        "profile": "default@3",
        "timings_ms": {"embed": 1.6, "classify": 0.1},
    },
)


@post("/v1/classify", status_code=200, opt=_CLASSIFY.as_opt)
async def classify(request: Request[Any, Any, Any]) -> ClassifyResponse:
    """Intent and weights."""
    return await engine_of(request).classify(await read_json(request, _decoder))
