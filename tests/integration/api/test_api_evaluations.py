"""A namespace is evaluated by its callers' judgements."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from retrieval.evaluation.metrics import ndcg
from tests.serving import problem_of, served

NAMESPACE = "/v1/namespaces/shop"
THINGS = (
    *("bicycle", "kettle", "piano", "tent", "ladder", "mirror", "violin", "carpet", "lantern", "compass", "saddle"),
    *("anchor", "teapot"),
)


@pytest.fixture
async def client(database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with served(database_url) as opened:
        memories = [{"id": thing, "text": f"Somebody left a {thing} in the hall."} for thing in THINGS]
        assert (await opened.post(f"{NAMESPACE}/memories", json={"memories": memories})).status_code == 201
        yield opened


async def judge(client: httpx.AsyncClient, thing: str, **judgement: Any) -> None:
    body = {"query": f"Where is the {thing}?", "shown": list(THINGS), **(judgement or {"relevant": [thing]})}
    assert (await client.post(f"{NAMESPACE}/feedback", json=body)).status_code == 201


async def evaluated(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    answer = await client.post(f"{NAMESPACE}/evaluations", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_each_way_to_rank_is_scored_on_the_judged_queries(client: httpx.AsyncClient) -> None:
    for thing in THINGS[:11]:
        await judge(client, thing)
    report = await evaluated(client)
    systems = {each["system"]: each["measures"] for each in report["systems"]}
    assert {"vector", "bm25", "graph", "1,1,1", "rrf-fixed", "rrf-adaptive", "all"} <= systems.keys()
    assert systems["bm25"]["ndcg@10"] == {"mean": 1.0, "low": 1.0, "high": 1.0}
    assert {each["query"] for each in report["queries"]} == {f"Where is the {thing}?" for thing in THINGS[:11]}
    assert (report["judged"], report["failed"], report["left_out"]) == ("all", [], 0)

    query = report["queries"][0]
    ranking = (await client.post(f"{NAMESPACE}/search", json={"query": query["query"], "mode": "graph"})).json()
    expected = ndcg([each["id"] for each in ranking["results"]], dict.fromkeys(query["relevant"], 1), cutoff=10)
    assert query["ndcg"]["graph"] == expected

    versus = {(each["baseline"], each["measure"]): each for each in report["comparisons"]}
    assert versus.keys() == {
        (name, measure) for name in systems.keys() - {"all"} for measure in ("ndcg@10", "recall@10")
    }
    for each in versus.values():
        assert each["wins"] + each["ties"] + each["losses"] == 11
        better = each["difference"]["mean"] > 0
        assert each["verdict"] == ("not different" if each["p_value"] >= 0.05 else "better" if better else "worse")


async def test_what_was_judged_otherwise_later_or_clicked_does_not_count(client: httpx.AsyncClient) -> None:
    for thing in THINGS[:11]:
        await judge(client, thing)
    await judge(client, "bicycle", irrelevant=["bicycle"])
    await judge(client, "anchor", clicked=["anchor"])
    await judge(client, "teapot", ratings={"teapot": 0.4})
    await judge(client, "kettle", ratings={"piano": 0.9})
    report = await evaluated(client)
    relevant = {each["query"]: each["relevant"] for each in report["queries"]}
    assert relevant.keys() == {f"Where is the {thing}?" for thing in THINGS[1:11]}
    assert relevant["Where is the kettle?"] == ["kettle", "piano"]
    assert report["queries"][-1]["query"] == "Where is the kettle?"  # judged last


async def test_nothing_of_it_is_logged(client: httpx.AsyncClient) -> None:
    assert (await client.put(NAMESPACE, json={"query_log": {}})).status_code == 200
    for thing in THINGS[:10]:
        await judge(client, thing)
    await client.post(f"{NAMESPACE}/search", json={"query": "piano"})
    await evaluated(client)
    await client.post(f"{NAMESPACE}/search", json={"query": "tent"})
    queries: list[str] = []
    while len(queries) < 2:  # entries are written beside the answers
        queries = [each["query"] for each in (await client.get(f"{NAMESPACE}/queries")).json()["queries"]]
    assert queries == ["piano", "tent"]


async def test_another_profile_is_compared(client: httpx.AsyncClient) -> None:
    for thing in THINGS[:10]:
        await judge(client, thing)
    report = await evaluated(client, other="research")
    assert "profile=research" in {each["system"] for each in report["systems"]}
    problem_of(await client.post(f"{NAMESPACE}/evaluations", json={"other": "nobody"}), 422)


async def test_too_few_judgements_are_refused(client: httpx.AsyncClient) -> None:
    await judge(client, "bicycle")
    refused = await client.post(f"{NAMESPACE}/evaluations", json={})
    problem_of(refused, 422)
    assert "needs 10 queries" in refused.json()["detail"]
    problem_of(await client.post("/v1/namespaces/none/evaluations", json={}), 404)
