"""Feedback and the query log over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import httpx
import pytest

from tests.serving import problem_of, served

NAMESPACE = "/v1/namespaces/caroline"
FEEDBACK = f"{NAMESPACE}/feedback"
QUERIES = f"{NAMESPACE}/queries"
CLICK: dict[str, Any] = {"query": "Where was Caroline?", "shown": ["m1", "m2"], "clicked": ["m1"]}


@pytest.fixture
async def client(database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with served(database_url) as opened:
        memories = [
            {"id": "m1", "text": "Caroline went to the support group."},
            {"id": "m2", "text": "Caroline went to Porto."},
        ]
        assert (await opened.post(f"{NAMESPACE}/memories", json={"memories": memories})).status_code == 201
        yield opened


def faults_of(answer: httpx.Response) -> list[dict[str, Any]]:
    """The field that a 422 names."""
    problem_of(answer, 422)
    faults: list[dict[str, Any]] = answer.json()["errors"]
    return faults


async def entries(client: httpx.AsyncClient, at_least: int) -> list[dict[str, Any]]:
    """The query log, once it has this many entries, as they are written in the background."""
    for _ in range(6_000):
        found: list[dict[str, Any]] = (await client.get(QUERIES)).json()["queries"]
        if len(found) >= at_least:
            return found
        await asyncio.sleep(0.01)
    pytest.fail(f"{len(found)} entries are in the log")


async def test_feedback_is_stored_listed_and_deleted(client: httpx.AsyncClient) -> None:
    first = await client.post(FEEDBACK, json=CLICK)
    assert first.status_code == 201, first.text
    assert first.json()["stored"] is True
    assert UUID(first.json()["id"]).version == 7
    second = await client.post(FEEDBACK, json={**CLICK, "id": "f2", "ratings": {"m2": 0.5}, "intent": "fact_lookup"})
    assert second.json() == {"id": "f2", "stored": True}
    page = (await client.get(FEEDBACK, params={"limit": 1})).json()
    assert [entry["id"] for entry in page["feedback"]] == [first.json()["id"]]
    page = (await client.get(FEEDBACK, params={"limit": 1, "cursor": page["next_cursor"]})).json()
    (entry,) = page["feedback"]
    assert page["next_cursor"] is None
    assert (entry["query"], entry["shown"], entry["clicked"]) == (CLICK["query"], CLICK["shown"], CLICK["clicked"])
    assert (entry["ratings"], entry["intent"], entry["filters"]) == ({"m2": 0.5}, "fact_lookup", None)
    assert (await client.delete(FEEDBACK)).json() == {"deleted": 2}
    assert (await client.get(FEEDBACK)).json() == {"feedback": [], "next_cursor": None}


async def test_feedback_sent_again(client: httpx.AsyncClient) -> None:
    """It is stored once; other feedback with the same id is a conflict that names it."""
    for stored in (True, False):
        answer = await client.post(FEEDBACK, json={**CLICK, "id": "f1"})
        assert (answer.status_code, answer.json()) == (201, {"id": "f1", "stored": stored})
    answer = await client.post(FEEDBACK, json={**CLICK, "id": "f1", "clicked": ["m2"]})
    assert "'f1'" in str(problem_of(answer, 409)["detail"])


async def test_bad_feedback(client: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    """422 that names the field and says why; nothing is stored."""
    bad: list[tuple[dict[str, Any], list[Any], str]] = [
        ({"clicked": []}, [], "judge at least one memory"),
        ({"clicked": ["m3"]}, ["clicked", 0], "'m3' is not among those shown"),
        ({"shown": ["m1", "m1"]}, ["shown", 1], "'m1' is shown twice"),
        ({"shown": []}, ["shown"], "a list of 1 to 200"),
        ({"shown": None}, ["shown"], "is required unless"),
        ({"query": None, "search_id": "x"}, ["search_id"], "is not in the query log"),
        ({"relevant": ["m3", "m1", "m4"]}, ["relevant"], "no memory 'm3', 'm4'"),
        ({"relevant": ["m1"], "irrelevant": ["m1"]}, ["irrelevant", 0], "both relevant and irrelevant"),
        ({"ratings": {"m1": 1.5}}, ["ratings", "m1"], "from 0 to 1"),
        ({"ratings": {"a\x00": 1}}, ["ratings", "key"], "null byte"),
        ({"intent": "gossip"}, ["intent"], "gossip"),
        ({"as_of": "2024-05-01T12:00:00"}, ["as_of"], "with a zone"),
        ({"rating": 5}, ["rating"], "did you mean `ratings`"),
    ]
    for change, loc, message in bad:
        with subtests.test(change=change):
            (fault,) = faults_of(await client.post(FEEDBACK, json={**CLICK, **change}))
            assert fault["loc"] == loc
            assert message in fault["msg"]
            assert (await client.get(FEEDBACK)).json()["feedback"] == []


async def test_an_unknown_namespace_is_a_404(client: httpx.AsyncClient) -> None:
    nobody = "/v1/namespaces/nobody"
    problem_of(await client.post(f"{nobody}/feedback", json=CLICK), 404)
    for what in ("feedback", "queries"):
        problem_of(await client.get(f"{nobody}/{what}"), 404)
        problem_of(await client.delete(f"{nobody}/{what}"), 404)
        problem_of(await client.get(f"/v1/namespaces/a%20b/{what}"), 422)


async def test_bad_listings(client: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    """422 that names the parameter."""
    for method, query, loc in (
        ("GET", "limit=0", ["limit"]),
        ("GET", "limit=ten", ["limit"]),
        ("GET", "cursor=made-up", ["cursor"]),
        ("GET", "cursor=1&cursor=2", ["cursor"]),
        ("GET", "id=s1", ["id"]),
        ("GET", "limit=%ff", ["query_string"]),
        ("DELETE", "limit=1", ["limit"]),
    ):
        for path in (FEEDBACK, QUERIES):
            with subtests.test(method=method, query=query, path=path):
                faults = faults_of(await client.request(method, f"{path}?{query}"))
                assert [fault["loc"] for fault in faults] == [loc]
    problem_of(await client.delete(f"{FEEDBACK}?id=f1"), 422)


async def test_searches_are_logged_once_that_is_switched_on(client: httpx.AsyncClient) -> None:
    """Searches and context packs, under the id in the answer, without the redacted parts."""
    ask = {"query": "Did ana@example.org see Caroline?", "top_k": 1}
    assert (await client.post(f"{NAMESPACE}/search", json=ask)).status_code == 200
    put = await client.put(NAMESPACE, json={"query_log": {"max_entries": 100}})
    assert put.json()["settings"]["query_log"]["redact"] == ["email", "phone", "url"]
    search = (await client.post(f"{NAMESPACE}/search", json=ask)).json()
    context = (await client.post(f"{NAMESPACE}/context", json={**ask, "mode": "bm25"})).json()
    assert UUID(search["search_id"]).version == 7
    logged = {entry["id"]: entry for entry in await entries(client, 2)}
    assert logged.keys() == {search["search_id"], context["search_id"]}
    entry = logged[search["search_id"]]
    assert entry["query"] == "Did [email] see Caroline?"
    assert entry["results"] == [
        {"id": found["id"], "score": pytest.approx(found["score"], rel=1e-5)} for found in search["results"]
    ]
    assert (entry["profile"], entry["intent"], entry["mode"]) == (
        search["profile"],
        search["intent"]["label"],
        "adaptive",
    )
    assert logged[context["search_id"]]["mode"] == "bm25"
    assert [result["id"] for result in logged[context["search_id"]]["results"]] == [
        item["id"] for item in context["items"]
    ]
    assert (await client.delete(f"{QUERIES}?id={search['search_id']}&id=none")).json() == {"deleted": 1}
    assert (await client.delete(QUERIES)).json() == {"deleted": 1}
    assert (await client.get(QUERIES)).json() == {"queries": [], "next_cursor": None}
    ask = {"query": "Was Carroline there?", "explain": True}
    misspelt = (await client.post(f"{NAMESPACE}/search", json=ask)).json()
    assert misspelt["explanation"]["query"] == "Was Caroline there?"
    assert [entry["query"] for entry in await entries(client, 1)] == ["Was Carroline there?"], "as it was asked"


async def test_feedback_on_a_logged_search_needs_only_its_id(client: httpx.AsyncClient) -> None:
    await client.put(NAMESPACE, json={"query_log": {}})
    ask = {"query": "Where was Caroline?", "filters": {"kind": ["memory"]}}
    search = (await client.post(f"{NAMESPACE}/search", json=ask)).json()
    await entries(client, 1)
    first = search["results"][0]["id"]
    answer = await client.post(FEEDBACK, json={"search_id": search["search_id"], "clicked": [first]})
    assert answer.status_code == 201, answer.text
    (entry,) = (await client.get(FEEDBACK)).json()["feedback"]
    assert (entry["query"], entry["profile"]) == (ask["query"], search["profile"])
    assert entry["shown"] == [result["id"] for result in search["results"]]
    assert entry["filters"]["kind"] == ["memory"]


async def test_settings_of_the_log_are_checked(client: httpx.AsyncClient) -> None:
    for bad in ({"max_entries": 0}, {"max_entries": 1_000_001}, {"max_age_days": 0}, {"redact": ["names"]}, {"x": 1}):
        problem_of(await client.put(NAMESPACE, json={"query_log": bad}), 422)
    kept = {"max_entries": 5, "max_age_days": None, "redact": ["all"], "store_results": False}
    assert (await client.put(NAMESPACE, json={"query_log": kept})).json()["settings"]["query_log"] == kept
    assert (await client.get(NAMESPACE)).json()["settings"]["query_log"] == kept


async def test_deleting_the_namespace_deletes_both(client: httpx.AsyncClient) -> None:
    """And the receipt counts them."""
    await client.put(NAMESPACE, json={"query_log": {}})
    await client.post(FEEDBACK, json=CLICK)
    await client.post(f"{NAMESPACE}/search", json={"query": "Where was Caroline?"})
    await entries(client, 1)
    deleted = (await client.delete(NAMESPACE, params={"confirm": "caroline"})).json()["deleted"]
    assert (deleted["feedback"], deleted["queries"], deleted["shadow_runs"]) == (1, 1, 0)
    await client.put(NAMESPACE, json={})
    assert (await client.get(FEEDBACK)).json()["feedback"] == []
    assert (await client.get(QUERIES)).json()["queries"] == []
