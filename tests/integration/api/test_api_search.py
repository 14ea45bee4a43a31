"""Search, context packs, classification, metrics over HTTP."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import httpx
import pytest

from retrieval.types.search import Leg, Mode
from tests.serving import on_a_port, problem_of, served, settings_for

NAMESPACE = "/v1/namespaces/caroline"
QUERY = "When did Caroline go to the support group?"

MEMORIES = [
    {"id": "m1", "text": "Caroline: I went to the support group yesterday.", "kind": "message", "speaker": "Caroline",
     "session_id": "s1", "created_at": "2023-05-08T13:56:00Z", "tags": ["chat"], "metadata": {"channel": "web"}},
    {"id": "m2", "text": "Melanie: My pottery class made a bowl with a dragon.", "kind": "message",
     "speaker": "Melanie", "session_id": "s1", "created_at": "2023-05-08T13:57:00Z", "tags": ["chat", "art"]},
    {"id": "m3", "text": "The support group meets on Thursdays in the library.", "kind": "chunk",
     "title": "Opening hours", "created_at": "2024-02-01T00:00:00Z"},
    {"id": "m4", "text": "Caroline prefers tea over coffee.", "created_at": "2024-03-01T00:00:00Z"},
]  # fmt: skip


@pytest.fixture
async def client(database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with served(database_url) as opened:
        added = await opened.post(f"{NAMESPACE}/memories", json={"memories": MEMORIES})
        assert added.status_code == 201, added.text
        yield opened


async def _search(client: httpx.AsyncClient, **request: object) -> dict[str, Any]:
    answer = await client.post(f"{NAMESPACE}/search", json={"query": QUERY, **request})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _ids(answer: dict[str, Any]) -> list[str]:
    return [result["id"] for result in answer["results"]]


async def test_every_mode(client: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    """Each mode answers from its legs, best first, in the contract's format."""
    for mode in Mode:
        with subtests.test(mode=mode):
            answer = await _search(client, mode=mode, explain=True)
            assert answer["degraded"] == []
            results = answer["results"]
            assert results[0]["id"] in ("m1", "m3")
            assert [result["score"] for result in results] == sorted((one["score"] for one in results), reverse=True)
            for result in results:
                assert result["legs"].keys() <= {leg.value for leg in mode.legs}
                assert datetime.fromisoformat(result["created_at"]).tzinfo is not None
                assert len(result["snippet"]) <= 240
    assert {leg for result in results for leg in result["legs"]} == {Leg.GRAPH.value}
    weighed = await _search(client, weights={"vector": 0.0, "bm25": 1.0, "graph": 0.0}, explain=True)
    assert weighed["explanation"]["legs"].keys() == {Leg.BM25.value}, "a leg without weight does not run"


async def test_misspelt_words(client: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    """A word that neither a memory nor English has is searched for as the similar one that memories have."""
    for query, meant in (
        ("Which potery class?", "Which pottery class?"),
        ("WHAT DID MELANEI MAKE", "WHAT DID MELANIE MAKE"),
        ("What does Carroline's friend prefer, tea or cofefe?", "What does Caroline's friend prefer, tea or coffee?"),
        ("Whcih potery did Melanei make?", "Which pottery did Melanie make?"),
        ("Which potery?" + " a" * 63, None),  # pasted text
        ("wich potry", None),  # in shorter words too much is similar
        ("Whcih library?", "Which library?"),
        ("Does she like the Potery, or Thsee?", None),  # names, and no name is similar
        ("Is she a porter?", None),
        ("Was Carolina there?", None),
        ("See potery.txt or potery_class", None),
        ("Ist das die potery von gestern?", None),
        ("Who plays the saxophne?", None),
    ):
        with subtests.test(query=query):
            found = await _search(client, query=query, explain=True)
            assert found["explanation"]["query"] == (meant or query)
    for mode in Mode:
        answers = [await _search(client, query=query, mode=mode) for query in ("dargon", "dragon")]
        assert answers[0]["results"] == answers[1]["results"]
        assert _ids(answers[0])[0] == "m2"
    named = [{"name": "Potery", "aliases": ["Dargon Club"]}]
    added = {"memories": [{"id": "m5", "text": "Ana's saxophone matches Vegas.", "entities": named}]}
    assert (await client.post(f"{NAMESPACE}/memories", json=added)).status_code == 201
    assert _ids(await _search(client, query="Who plays the saxophne?", mode="bm25"))[0] == "m5"
    # Two names and two English words.
    for query in ("Who likes Potery?", "Who is in the dargon club?", "Is Ana vegan?", "Is matcha Ana's?"):
        assert (await _search(client, query=query, explain=True))["explanation"]["query"] == query
    assert (await client.delete(f"{NAMESPACE}/memories/m5")).status_code == 204
    deleted = await _search(client, query="Who plays the saxophne?", explain=True)
    assert deleted["explanation"]["query"] == "Who plays the saxophne?", "nothing tells of the deleted memory"


async def test_misspelt_words_where_english_is_given_by_its_code(client: httpx.AsyncClient) -> None:
    english = "/v1/namespaces/english"
    assert (await client.put(english, json={"language": "en"})).status_code == 200
    assert (await client.post(f"{english}/memories", json={"memories": MEMORIES})).status_code == 201
    found = await client.post(f"{english}/search", json={"query": "Which potery class?", "explain": True})
    assert found.json()["explanation"]["query"] == "Which pottery class?"


async def test_a_speakers_name_does_not_decide_the_vector_leg(client: httpx.AsyncClient) -> None:
    """Any short turn is nearer to "Nate" than one that says something; other languages are read by their names."""
    texts = ("Nate: Take care!", "Nate: I avoid shellfish.", "Nate: Sounds good to me.", "Nate: Hi, long time no see!")
    queries = ("What is Nate allergic to?", "Wogegen ist Nate allergisch?")
    found = {}
    for speaker in ("Nate", None):
        names = f"/v1/namespaces/names-of-{speaker}"
        memories = [{"id": text, "text": text, "speaker": speaker} for text in texts]
        assert (await client.post(f"{names}/memories", json={"memories": memories})).status_code == 201
        for query in queries:
            asked = {"query": query, "mode": Mode.VECTOR, "explain": True}
            answer = (await client.post(f"{names}/search", json=asked)).json()
            in_person = answer["explanation"]["legs"]["vector"].get("also_read_as")
            assert in_person == ("What is I allergic to?" if speaker and query == queries[0] else None)
            found[query, speaker] = answer["results"]
    english, german = ([found[query, speaker] for speaker in ("Nate", None)] for query in queries)
    assert [each[0]["id"] for each in english] == ["Nate: I avoid shellfish.", "Nate: Take care!"]
    assert [each["score"] for each in german[0]] == [each["score"] for each in german[1]]


async def test_every_filter(client: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    """Filters apply before the cut to `top_k`."""
    for filters, expected in (
        ({"tags_all": ["chat"]}, {"m1", "m2"}),
        ({"tags_any": ["art"]}, {"m2"}),
        ({"kind": ["chunk"]}, {"m3"}),
        ({"session_id": ["s1"]}, {"m1", "m2"}),
        ({"speaker": ["Caroline"]}, {"m1"}),
        ({"created_after": "2023-12-31T00:00:00Z"}, {"m3", "m4"}),
        ({"created_before": "2023-12-31T00:00:00Z"}, {"m1", "m2"}),
        ({"metadata": {"channel": "web"}}, {"m1"}),
        ({"speaker": ["Nobody"]}, set()),
    ):
        with subtests.test(filters=filters):
            assert set(_ids(await _search(client, filters=filters))) == expected


async def test_writes_and_deletes_are_seen_at_once(client: httpx.AsyncClient) -> None:
    """A search after a write sees it, and after a delete nothing is left of it."""
    text = "The zebrafish aquarium needs new filters."
    await client.post(f"{NAMESPACE}/memories", json={"memories": [{"id": "m9", "text": text}]})
    assert _ids(await _search(client, query="zebrafish", mode="bm25")) == ["m9"]
    await client.delete(f"{NAMESPACE}/memories/m9")
    assert "m9" not in _ids(await _search(client, query="zebrafish aquarium"))


async def test_as_of(client: httpx.AsyncClient) -> None:
    """The namespace as of then."""
    assert set(_ids(await _search(client, as_of="2023-06-01T00:00:00Z"))) == {"m1", "m2"}
    assert _ids(await _search(client, as_of="2020-01-01T00:00:00Z")) == []


async def test_queries_without_words(client: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    """Emoji, stop words and punctuation are answered, not refused."""
    for query in ("😀😀", "the of and", "?!", "\u200b"):
        with subtests.test(query=query):
            await _search(client, query=query)


async def test_context_packs(client: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    """Within the budget in each format; messages can replace a query, but one of them is required."""
    for shape in ("markdown", "xml", "json"):
        with subtests.test(format=shape):
            body = {"query": QUERY, "max_tokens": 128, "format": shape}
            answer = await client.post(f"{NAMESPACE}/context", json=body)
            assert answer.status_code == 200, answer.text
            pack = answer.json()
            assert 0 < pack["tokens_used"] <= pack["max_tokens"] == 128
            assert "support group" in pack["context"]
            assert {"m1", "m3"} & {item["id"] for item in pack["items"]}
    messages = [{"role": "user", "content": QUERY}]
    assert (await client.post(f"{NAMESPACE}/context", json={"messages": messages})).status_code == 200
    bad: list[dict[str, Any]] = [
        {},
        {"messages": []},
        {"query": QUERY, "max_tokens": 0},
        {"query": QUERY, "format": "yaml"},
    ]
    for body in bad:
        problem_of(await client.post(f"{NAMESPACE}/context", json=body), 422)


async def test_classify(client: httpx.AsyncClient) -> None:
    """Probabilities of all four intents and a weight per leg."""
    answer = (await client.post("/v1/classify", json={"query": QUERY})).json()
    assert sum(answer["intent"]["probabilities"].values()) == pytest.approx(1.0, abs=0.01)
    assert answer["intent"]["label"] in answer["intent"]["probabilities"]
    assert answer["weights"].keys() == {leg.value for leg in Leg}
    problem_of(await client.post("/v1/classify", json={"query": ""}), 422)
    problem_of(await client.post("/v1/classify", json={"query": QUERY, "namespace": "nobody"}), 404)
    problem_of(await client.post("/v1/classify", json={"query": QUERY, "namespace": "no body"}), 422)


async def test_unknown_namespaces(client: httpx.AsyncClient) -> None:
    """404 on reads; a pack is empty, so that an assistant's first turn is no error, and says why."""
    problem_of(await client.post("/v1/namespaces/nobody/search", json={"query": QUERY}), 404)
    pack = (await client.post("/v1/namespaces/nobody/context", json={"query": QUERY})).json()
    assert pack["reason"] == "unknown_namespace"
    assert pack["profile"].startswith("default@")
    problem_of(await client.post("/v1/namespaces/nobody/context", json={"query": QUERY, "profile": "nope"}), 422)
    assert (pack["context"], pack["tokens_used"], pack["items"]) == ("", 0, [])
    problem_of(await client.post("/v1/namespaces/no body/context", json={"query": QUERY}), 422)


@pytest.mark.parametrize("layout", ["markdown", "xml", "json"])
async def test_a_pack_of_any_budget_is_within_it(client: httpx.AsyncClient, layout: str) -> None:
    for budget in (*range(1, 70, 3), 200_000):
        asked = {"query": QUERY, "max_tokens": budget, "format": layout}
        pack = (await client.post(f"{NAMESPACE}/context", json=asked)).json()
        assert pack["tokens_used"] <= budget
        assert bool(pack["items"]) == bool(pack["context"])
        assert {each["id"] for each in (*pack["items"], *pack["dropped"])}
        assert "reason" not in pack
    problem_of(await client.post(f"{NAMESPACE}/context", json={"query": QUERY, "max_tokens": 0}), 422)


async def test_health_and_version(client: httpx.AsyncClient) -> None:
    """Live, ready with all parts, and a version."""
    assert (await client.get("/health/live")).json() == {"status": "live"}
    ready = (await client.get("/health/ready")).json()
    checks = dict.fromkeys(("database", "migrations", "models", "namespaces"), True)
    assert ready == {"status": "ready", "checks": checks}
    assert (await client.get("/version")).json()["name"] == "trivet"


def test_what_may_be_got_may_be_asked_for_its_head(database_url: str) -> None:
    with on_a_port(settings_for(database_url)) as url, httpx.Client(base_url=url) as client:
        client.post("/v1/namespaces/a/memories", json={"memories": [{"id": "bulk", "text": "Boats."}]})
        for path in ("/health/live", "/health/ready", "/version", "/v1/namespaces/a", "/v1/namespaces/a/memories/bulk"):
            answer = client.head(path)
            assert (answer.status_code, answer.content) == (200, b"")
            assert answer.headers["content-length"] == client.get(path).headers["content-length"]
        assert client.head("/v1/namespaces/a/export").status_code == 200
        assert client.head("/v1/namespaces/none").status_code == 404
        assert [client.head(path).status_code for path in ("/v1/classify", "/mcp/a", f"{url}//mcp/a")] == [405] * 3


async def test_metrics(client: httpx.AsyncClient) -> None:
    """Requests by route template, stages by name, the embedding cache; no id, no query."""
    await _search(client)
    await _search(client)
    await client.post("/v1/classify", json={"query": "Who is Ana?"})
    await client.get(f"{NAMESPACE}/memories/m1")
    await client.get("/made/up/path")
    await client.get("/mcp/ana", headers={"accept": "text/html"})
    answer = await client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    values = dict(re.findall(r"^(\S+\{.*\}) (\S+)$", answer.text, re.MULTILINE))
    count = 'trivet_http_request_seconds_count{{method="{}",route="{}",status="{}"}}'
    assert values[count.format("POST", "/v1/namespaces/{ns}/search", 200)] == "2.0"
    assert values[count.format("GET", "/v1/namespaces/{ns}/memories/{memory_id}", 200)] == "1.0"
    assert values[count.format("other", "unmatched", 404)] == "1.0"
    assert any(key.startswith('trivet_http_request_seconds_count{method="GET",route="/mcp"') for key in values)
    for leg in Leg:
        assert values[f'trivet_stage_seconds_count{{stage="{leg}"}}'] == "2.0"
        assert values[f'trivet_degraded_total{{leg="{leg}"}}'] == "0.0"  # so that an alert on its rise sees the first
    assert values['trivet_embedding_cache_total{outcome="hit"}'] == "2.0"  # with Caroline's name, and without
    assert values['trivet_embedding_cache_total{outcome="miss"}'] == "3.0"
    assert "support" not in answer.text
