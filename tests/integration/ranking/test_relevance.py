"""How likely each result answers the query, and leaving out unlikely ones."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import httpx
import pytest

from retrieval.engine import Trivet
from retrieval.errors import InvalidInput
from retrieval.types.memory import MemoryInput
from retrieval.types.search import ChatMessage, ContextRequest, LegWeights, Mode, SearchRequest
from tests.serving import settings_for

QUERY = "Who watered the fig tree while Ilse was in Bergen?"
TEXTS = (
    "Joost watered the fig tree while I was in Bergen, twice a week.",
    "The fig tree dropped its leaves in October.",
    "Bergen was wet, we saw the fish market.",
    "Ok.",
    "The printer on the second floor is out of toner again.",
    "Dinner on Friday is at seven.",
)


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[Trivet]:
    async with Trivet.open(settings_for(database_url)) as opened:
        days = [datetime(2025, 3, 1 + at, tzinfo=UTC) for at in range(len(TEXTS))]
        await opened.add(
            "n",
            [
                MemoryInput(id=f"m{at}", text=text, speaker="Ilse", session_id=f"s{at}", created_at=day)
                for at, (text, day) in enumerate(zip(TEXTS, days, strict=True))
            ],
        )
        yield opened


async def test_the_answer_is_the_most_relevant(engine: Trivet) -> None:
    answer = await engine.search("n", SearchRequest(query=QUERY))
    relevance = {each.id: each.relevance for each in answer.results}
    known = {id_: value for id_, value in relevance.items() if value is not None}
    assert known.keys() == relevance.keys()
    assert all(0 <= value <= 1 for value in known.values())
    assert max(known, key=known.__getitem__) == "m0"
    assert known["m0"] > 5 * known["m4"]


@pytest.mark.parametrize(
    "options", [{"rescore": False}, {"mode": Mode.BM25}, {"weights": LegWeights(vector=1, bm25=1, graph=1)}]
)
async def test_without_the_rescorer_relevance_is_unknown_and_cannot_be_asked_for(
    engine: Trivet, options: dict[str, object]
) -> None:
    answer = await engine.search("n", SearchRequest(query=QUERY, **options))  # type: ignore[arg-type]
    assert answer.results
    assert all(each.relevance is None for each in answer.results)
    with pytest.raises(InvalidInput, match="needs the rescorer"):
        await engine.search("n", SearchRequest(query=QUERY, min_relevance=0.1, **options))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="needs the rescorer"):
        await engine.context("n", ContextRequest(query=QUERY, min_relevance=0.1, **options))  # type: ignore[arg-type]
    for bound in (None, 0):
        request = ContextRequest(query=QUERY, min_relevance=bound, **options)  # type: ignore[arg-type]
        assert (await engine.context("n", request)).items


async def test_the_bound_leaves_the_others_as_they_were(engine: Trivet) -> None:
    everything = (await engine.search("n", SearchRequest(query=QUERY))).results
    bounds = sorted({each.relevance for each in everything if each.relevance is not None})
    for bound in (0.0, *bounds, 1.0):
        answer = await engine.search("n", SearchRequest(query=QUERY, min_relevance=bound))
        least = bound - 1e-4  # results are rounded
        kept = [each.id for each in everything if each.relevance is not None and each.relevance >= least]
        assert set(each.id for each in answer.results) <= set(kept)
        assert [each.id for each in answer.results] == [id_ for id_ in kept if id_ in {e.id for e in answer.results}]
        assert len(answer.results) >= len([e for e in everything if e.relevance and e.relevance > bound + 1e-4])


async def test_a_pack_names_what_it_left_out_as_not_relevant(engine: Trivet) -> None:
    whole = await engine.context("n", ContextRequest(query=QUERY, min_relevance=0))
    assert "not_relevant" not in {each.reason for each in whole.dropped}
    pack = await engine.context("n", ContextRequest(query=QUERY, min_relevance=0.2))
    assert "Joost watered" in pack.context
    assert "printer" not in pack.context
    assert {each.id for each in pack.dropped if each.reason == "not_relevant"} >= {"m4", "m5"}


async def test_a_pack_of_nothing_relevant_is_empty_and_says_so(engine: Trivet) -> None:
    messages = [ChatMessage(role="user", content=QUERY)]
    pack = await engine.context("n", ContextRequest(messages=messages, min_relevance=1))
    assert (pack.context, pack.items, pack.reason) == ("", [], "nothing_relevant")
    assert {each.reason for each in pack.dropped} == {"not_relevant"}


async def test_what_was_said_at_the_time_that_is_asked_for_is_shown(engine: Trivet) -> None:
    request = ContextRequest(query="What did Ilse say on 5 March 2025?", min_relevance=1)
    pack = await engine.context("n", request)
    assert [each.id for each in pack.items] == ["m4"]


@pytest.mark.parametrize("endpoint", ["search", "context"])
async def test_a_bad_bound_is_named(client: httpx.AsyncClient, endpoint: str) -> None:
    wrong: list[tuple[dict[str, object], str]] = [
        ({"min_relevance": 1.5}, "min_relevance"),
        ({"min_relevance": 0.1, "rescore": False}, "rescorer"),
    ]
    await client.post("/v1/namespaces/n/memories", json={"memories": [{"text": "The oven is hot."}]})
    for body, loc in wrong:
        answer = await client.post(f"/v1/namespaces/n/{endpoint}", json={"query": "oven", **body})
        assert answer.status_code == 422
        assert loc in answer.text
