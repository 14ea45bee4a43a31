"""Bulk adding: one result line per input line, in order, whatever the lines are."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterable
from select import select
from typing import Any

import httpx
import pytest

from retrieval.api.app import create_app
from retrieval.validation import MAX_MEMORY_BYTES
from tests.processes import PATIENCE_S, until
from tests.serving import client_of, on_a_port, problem_of, served, settings_for

BULK = "/v1/namespaces/a/memories/bulk"
NDJSON = {"content-type": "application/x-ndjson"}


async def _pieces(body: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


def _results(answer: httpx.Response) -> list[dict[str, object]]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


def _lines(memories: Iterable[dict[str, object]]) -> bytes:
    return b"".join(json.dumps(memory).encode() + b"\n" for memory in memories)


@pytest.mark.parametrize("size", [7, 1_000, 10**9])
async def test_many_lines(client: httpx.AsyncClient, size: int) -> None:
    """More lines than a chunk, split anywhere by the network; all are stored afterwards."""
    body = _lines({"id": f"m{number}", "text": f"Memory number {number}."} for number in range(300))
    results = _results(await client.post(BULK, content=_pieces(body, size), headers=NDJSON))
    assert [(one["line"], one["id"], one["status"]) for one in results] == [
        (number + 1, f"m{number}", "created") for number in range(300)
    ]
    assert (await client.get("/v1/namespaces/a")).json()["memories"] == 300


async def test_a_request_that_a_stop_cuts_off_is_told_that_it_may_be_sent_again(client: httpx.AsyncClient) -> None:
    """Which the server cancels after its time limit."""
    begun, sent = asyncio.Event(), list[dict[str, Any]]()
    app = client._transport.app  # type: ignore[attr-defined]

    async def recorded(scope: Any, receive: Any, send: Any) -> None:
        async def keep(message: dict[str, Any]) -> None:
            sent.append(message)
            await send(message)

        await app(scope, receive, keep)

    async def without_end() -> AsyncIterator[bytes]:
        yield _lines([{"id": "m1", "text": "Memory number 1."}])
        begun.set()
        await asyncio.Event().wait()

    async with httpx.AsyncClient(transport=httpx.ASGITransport(recorded), base_url=client.base_url) as other:
        asking = asyncio.create_task(other.post(BULK, content=without_end(), headers=NDJSON))
        await begun.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert [message.get("status") for message in sent] == [503, None]
    assert json.loads(sent[1]["body"])["detail"] == "The server is being stopped."


async def test_what_an_export_has_of_nobody_is_told_in_the_log(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    """By number alone: a name may be somebody's."""
    header = {"trivet_export": 1, "memories": 1, "written": 1, "settings": {}, "aliases": [["ines", "Nesi"]]}
    lines = [json.dumps(header, separators=(",", ":")), '{"id": "a", "text": "The kettle is copper."}']
    assert len(_results(await client.post(BULK, content="\n".join(lines).encode(), headers=NDJSON))) == 1
    assert "1 aliases or merges of an export were not restored" in caplog.text
    assert "Nesi" not in caplog.text


async def test_an_export_that_ends_early_is_a_failed_job(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its aliases are not restored: the entity may be in what is missing."""
    monkeypatch.setattr("retrieval.lifecycle.jobs.BEAT_S", 0)
    await client.put("/v1/namespaces/a", json={})
    header = {"trivet_export": 1, "memories": 2, "written": 2, "settings": {}, "aliases": [["ines", "Nesi"]]}
    lines = [json.dumps(header, separators=(",", ":")), '{"id": "a", "text": "The kettle is copper."}']
    assert len(_results(await client.post(BULK, content="\n".join(lines).encode(), headers=NDJSON))) == 1
    early = "the export ends early: 1 of 2 memories are in it"
    assert early in caplog.text
    assert "aliases" not in caplog.text
    [job] = (await client.get("/v1/jobs")).json()["jobs"]
    assert (job["state"], job["error"]) == ("failed", early)


async def test_broken_lines(client: httpx.AsyncClient) -> None:
    """A broken line is rejected with its number; blank lines are skipped; the later line of an id wins."""
    lines = [
        b'{"id": "a", "text": "first"}',
        b"",
        b"not json",
        b'{"id": "c", "text": 3}\r',
        b'{"text": "half \\ud800"}',
        b'{"text": "' + b"x" * MAX_MEMORY_BYTES + b'"}',
        b'{"text": "\xff"}',
        b'{"id": "a", "text": "second"}',
        b'{"id": "b", "text": "no line break at the end"}',
    ]
    results = _results(await client.post(BULK, content=b"\n".join(lines), headers=NDJSON))
    assert [(one["line"], one["id"], one["status"]) for one in results] == [
        (1, "a", "created"),
        (3, None, "rejected"),
        (4, "c", "rejected"),
        (5, None, "rejected"),
        (6, None, "rejected"),
        (7, None, "rejected"),
        (8, "a", "updated"),
        (9, "b", "created"),
    ]
    assert all(one["error"] for one in results if one["status"] == "rejected")
    assert "text" in str(results[2]["error"])
    assert (await client.get("/v1/namespaces/a/memories/a")).json()["text"] == "second"


async def test_nothing_but_broken_lines(client: httpx.AsyncClient) -> None:
    """Results all the same, and no namespace."""
    results = _results(await client.post(BULK, content=b"{}\nx\n", headers=NDJSON))
    assert [one["status"] for one in results] == ["rejected", "rejected"]
    problem_of(await client.get("/v1/namespaces/a"), 404)
    assert _results(await client.post(BULK, content=b"\n \n", headers=NDJSON)) == []


async def test_refused_before_the_stream(client: httpx.AsyncClient) -> None:
    """A wrong media type or namespace is a problem."""
    body = b'{"text": "x"}\n'
    problem_of(await client.post(BULK, content=body, headers={"content-type": "application/json"}), 415)
    problem_of(await client.post("/v1/namespaces/a%2Fb/memories/bulk", content=body, headers=NDJSON), 422)


async def test_longer_than_other_bodies_may_be(database_url: str) -> None:
    """The limit of other bodies does not apply here."""
    body = _lines({"id": f"m{number}", "text": f"Memory number {number}."} for number in range(60))
    async with served(database_url, max_body_bytes=1_024) as client:
        assert len(_results(await client.post(BULK, content=_pieces(body, 4_096), headers=NDJSON))) == 60


def test_the_answer_begins_when_the_body_has_ended(database_url: str) -> None:
    """Lines are stored before that; but a proxy such as nginx stops sending the body once an answer begins."""
    with on_a_port(settings_for(database_url)) as url:
        target = httpx.URL(url)
        with socket.create_connection((target.host, target.port or 0), timeout=PATIENCE_S) as wire:
            head = f"POST {BULK} HTTP/1.1\r\nHost: {target.host}\r\nContent-Type: application/x-ndjson\r\n"
            wire.sendall(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
            chunk = _lines({"id": f"m{number}", "text": f"Number {number}."} for number in range(257))
            wire.sendall(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            until(lambda: httpx.get(f"{url}/v1/namespaces/a/memories/m255").status_code == 200)
            assert select([wire], [], [], 0.5)[0] == []
            wire.sendall(b"0\r\n\r\n")
            received = b""
            while b'"line":257' not in received:
                received += wire.recv(65_536)
    assert received.startswith(b"HTTP/1.1 200")
    assert received.count(b'"line":') == 257


async def test_more_results_than_are_held_in_memory(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrieval.api.bulk.HELD_BYTES", 1_000)
    monkeypatch.setattr("retrieval.api.bulk.SENT_BYTES", 700)
    body = _lines({"id": f"m{number}", "text": f"Memory number {number}."} for number in range(600))
    results = _results(await client.post(BULK, content=_pieces(body, 1_000), headers=NDJSON))
    assert [one["line"] for one in results] == list(range(1, 601))


async def test_an_answer_bears_nothing_of_the_one_before(client: httpx.AsyncClient) -> None:
    for request_id in ("first", "second"):
        answer = await client.post(BULK, content=b'{"text": "x"}', headers={**NDJSON, "x-request-id": request_id})
        assert answer.headers.get_list("x-request-id") == [request_id]


async def test_adding_stops_when_the_client_leaves(database_url: str) -> None:
    """Even if it sent its whole body: lines stored by then stay, and no more are added."""
    body = _lines({"id": f"m{number}", "text": f"Memory number {number}."} for number in range(5_000))
    app = create_app(settings_for(database_url))
    async with client_of(app) as client:
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive() -> Any:
            for message in messages:
                return message
            while (await client.get("/v1/namespaces/a/memories/m255")).status_code != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            return {"type": "http.disconnect"}

        sent = []

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            **{"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http"},
            **{"path": BULK, "raw_path": BULK.encode(), "root_path": "", "query_string": b"", "state": {}},
            **{"headers": [(b"content-type", b"application/x-ndjson")]},
        }
        await app(scope, receive, send)  # type: ignore[arg-type]
        assert all(message.get("more_body", True) for message in sent), (len(sent), sent[0], sent[-2:])
        stored = (await client.get("/v1/namespaces/a")).json()["memories"]
        assert stored % 256 == 0
        assert 256 <= stored < 5_000


def test_a_client_that_leaves(database_url: str) -> None:
    """In the middle of a line: the server keeps running."""
    with on_a_port(settings_for(database_url)) as url:
        target = httpx.URL(url)
        with socket.create_connection((target.host, target.port or 0), timeout=PATIENCE_S) as wire:
            head = f"POST {BULK} HTTP/1.1\r\nHost: {target.host}\r\nContent-Type: application/x-ndjson\r\n"
            wire.sendall(head.encode() + b"Content-Length: 100000\r\n\r\n" + b'{"id": "m1", "text": "One."}\n{"id"')
        assert httpx.get(f"{url}/health/ready").status_code == 200
