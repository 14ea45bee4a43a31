"""Queries that the embedder reads letter by letter: the vector leg counts less, only in mode adaptive."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from retrieval.engine import Trivet
from retrieval.ranking.weighting import FRAGMENTED_WEIGHT
from retrieval.types.memory import MemoryInput
from retrieval.types.search import Leg, LegWeights, Mode, SearchRequest
from tests.serving import settings_for

QUERY = "林静的猫叫什么名字"


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[Trivet]:
    async with Trivet.open(settings_for(database_url)) as opened:
        texts = ("林静养了一只猫，名字叫毛毛。", "周五我们去了杭州。", "Rex is three.", "The oven is hot.")
        await opened.add("n", [MemoryInput(id=f"m{at}", text=text) for at, text in enumerate(texts)])
        yield opened


async def test_the_vector_leg_counts_less_for_a_query_in_fragments(engine: Trivet) -> None:
    answer = await engine.answer("n", SearchRequest(query=QUERY))
    assert answer.fragment_share == 1
    assert answer.learned_weights is not None
    others = answer.weighting.weights[Leg.BM25] + answer.weighting.weights[Leg.GRAPH]
    learned = answer.learned_weights
    assert answer.weighting.weights[Leg.VECTOR] / others == pytest.approx(
        FRAGMENTED_WEIGHT * learned["vector"] / (learned["bm25"] + learned["graph"])
    )
    assert "letter by letter, so the vector leg counts 50% of that" in answer.weighting.reason


@pytest.mark.parametrize(
    "request_",
    [
        SearchRequest(query="What is the name of Lin Jing's cat?"),
        SearchRequest(query=QUERY, mode=Mode.HYBRID),
        SearchRequest(query=QUERY, weights=LegWeights(vector=1, bm25=1, graph=1)),
        SearchRequest(query=QUERY, mode=Mode.VECTOR),
    ],
)
async def test_other_queries_and_stated_weights_are_left_alone(engine: Trivet, request_: SearchRequest) -> None:
    answer = await engine.answer("n", request_)
    assert answer.fragment_share == 0
    assert "letter by letter" not in answer.weighting.reason
