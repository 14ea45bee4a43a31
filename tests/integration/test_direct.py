"""Searches that go past the router are answered as the router would, and all others are left to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest

from retrieval.api import gateway
from retrieval.api.direct import Direct, direct
from tests.serving import served

LIMIT = 2_000
PATH = "/v1/namespaces/n/search"
QUERY = b'{"query": "boats in the harbour"}'


@pytest.fixture
async def client(database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with served(database_url, max_body_bytes=LIMIT) as opened:
        texts = ["Boats in the harbour.", "A walk in Rome."]
        await opened.post("/v1/namespaces/n/memories", json={"memories": [{"text": text} for text in texts]})
        yield opened


def scope(path: str = PATH, method: str = "POST", headers: dict[str, str] | None = None) -> Any:
    given = {"host": "trivet:80", "content-type": "application/json", "content-length": "9"} | (headers or {})
    encoded = [(name.encode(), value.encode()) for name, value in given.items() if value]
    return {"type": "http", "method": method, "path": path, "headers": encoded}


def test_an_ordinary_request_goes_past_the_router() -> None:
    for noun in ("search", "context"):
        found = direct(scope(f"/v1/namespaces/my.notes:a@b+c-1/{noun}"), most_bytes=9)
        assert found is not None
        assert (found.template, found.namespace) == (f"/v1/namespaces/{{ns}}/{noun}", "my.notes:a@b+c-1")


@pytest.mark.parametrize(
    "unusual",
    [
        scope(method="GET"),
        scope(method="OPTIONS"),
        scope("/v1/namespaces/n/search/"),
        scope("//v1/namespaces/n/search"),
        scope("/v1/namespaces/%6e/search"),
        scope("/v1/namespaces/é/search"),
        scope("/v1/namespaces//search"),
        scope("/v1/namespaces/n/search\n"),
        scope("/v1/namespaces/n/memories"),
        scope(headers={"content-type": "application/json; charset=utf-8"}),
        scope(headers={"content-type": ""}),
        scope(headers={"content-length": "10"}),
        scope(headers={"content-length": "+9"}),
        scope(headers={"content-length": ""}),
        scope(headers={"transfer-encoding": "chunked"}),
        scope(headers={"host": "a b"}),
        scope() | {"root_path": "/inside"},
    ],
)
def test_what_is_unusual_is_left_to_the_router(unusual: Any) -> None:
    assert direct(unusual, most_bytes=9) is None


@pytest.mark.parametrize(
    ("noun", "body"),
    [
        ("search", QUERY),
        ("search", b'{"query": "boats", "explain": true, "top_k": 1}'),
        ("context", b'{"query": "boats", "max_tokens": 64}'),
        ("search", b""),
        ("search", b"{"),
        ("search", b'{"query": 1}'),
        ("search", b'{"query": "a", "unknown": 1}'),
        ("search", b'{"query": "\\u0000"}'),
        ("search", b'{"query": "\\ud800"}'),
        ("search", b"[" * 1_500),
        ("search", b'{"query": "' + b"a" * LIMIT + b'"}'),
        ("context", b'{"messages": []}'),
        ("context", b'{"query": "boats", "profile": "none"}'),
    ],
)
@pytest.mark.parametrize("namespace", ["n", "unknown"])
async def test_the_answer_is_the_routers(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, namespace: str, noun: str, body: bytes
) -> None:
    """Status, headers and body, but for the request's id and what is timed."""

    async def ask() -> tuple[int, list[str], Any]:
        answer = await client.post(
            f"/v1/namespaces/{namespace}/{noun}", content=body, headers={"content-type": "application/json"}
        )
        told = msgspec.json.decode(answer.content)
        for timed in ("timings_ms", "search_id"):
            told.pop(timed, None)
        return answer.status_code, [*answer.headers, answer.headers["content-type"]], told

    past: list[Direct] = []

    def seen(*args: Any, **options: Any) -> Direct | None:
        if found := direct(*args, **options):
            past.append(found)
        return found

    monkeypatch.setattr(gateway, "direct", seen)
    answered = await ask()
    assert bool(past) == (len(body) <= LIMIT)
    monkeypatch.setattr(gateway, "direct", lambda *_, **__: None)
    assert await ask() == answered


async def test_it_is_counted_as_the_routers(client: httpx.AsyncClient) -> None:
    for content in (QUERY, QUERY, b"{"):
        await client.post(PATH, content=content, headers={"content-type": "application/json"})
    told = (await client.get("/metrics")).text
    for status, count in ((200, 2), (422, 1)):
        labels = f'method="POST",route="/v1/namespaces/{{ns}}/search",status="{status}"'
        assert f"trivet_http_request_seconds_count{{{labels}}} {count}.0" in told


async def test_a_client_that_goes_away_within_its_body_is_told_so(client: httpx.AsyncClient) -> None:
    """As the router says it, should anybody still listen."""
    sent: list[Any] = []
    messages = iter([{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}])

    async def receive() -> Any:
        return next(messages)

    async def send(message: Any) -> None:
        sent.append(message)

    app: Any = client._transport.app  # type: ignore[attr-defined]
    await app(scope() | {"raw_path": PATH.encode(), "query_string": b"", "state": {}}, receive, send)
    assert [sent[0]["status"], msgspec.json.decode(sent[1]["body"])["detail"]] == [400, "The body ended before its end"]
