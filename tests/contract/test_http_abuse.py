"""Abusive requests over a real connection: refused by name or answered sensibly, with nothing left behind."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterable, Iterator
from typing import Any

import httpx
import psycopg
import pytest
from psycopg import sql

from retrieval.api import connections
from tests.processes import PATIENCE_S
from tests.serving import on_a_port, settings_for

JSON = {"content-type": "application/json"}
NDJSON = {"content-type": "application/x-ndjson"}
MEMORIES = "/v1/namespaces/a/memories"
SEARCH = "/v1/namespaces/a/search"
CONTEXT = "/v1/namespaces/a/context"
TEN_MB = "x" * 10_000_000


def batch(memory: dict[str, Any]) -> dict[str, Any]:
    """The body with one memory."""
    return {"memories": [memory]}


REFUSED: list[tuple[str, str, dict[str, Any], str]] = [
    ("10 MB text", MEMORIES, batch({"text": TEN_MB}), "memories.0"),
    ("1 MB query", SEARCH, {"query": "x" * 1_000_000}, "query"),
    ("4 MB message", CONTEXT, {"messages": [{"role": "user", "content": "x" * 4_000_000}]}, "messages.0.content"),
    ("numbers in a filter", SEARCH, {"query": "a", "filters": {"metadata": {"a": [1] * 200_000}}}, ""),
    ("a batch of numbers", MEMORIES, {"memories": [1] * 200_000}, "memories"),
    ("lone surrogate in a long text", MEMORIES, batch({"text": "a" * 70_000 + "\ud83d"}), "memories.0.text"),
    ("null byte in a tag", MEMORIES, batch({"text": "a", "tags": ["\x00"]}), "memories.0.tags.0"),
    ("lone surrogate in a tag", MEMORIES, batch({"text": "a", "tags": ["\ud83d"]}), "memories.0.tags.0"),
    ("wrong type of a filter", SEARCH, {"query": "a", "filters": {"speaker": "Ana"}}, "filters.speaker"),
    ("NaN weight as a string", SEARCH, {"query": "a", "weights": {"vector": "NaN"}}, "weights.vector"),
]  # fmt: skip

ODD_BUT_FINE = ["🎉", "🎉🎊 👩‍👩‍👧", "the of and", "_", "a __ b", "?!", "\u200b\u0301", "東京", "ﷺ", "a" * 8_192]


@pytest.fixture
def client(database_url: str) -> Iterator[httpx.Client]:
    with on_a_port(settings_for(database_url)) as url, httpx.Client(base_url=url) as opened:
        kept = {"id": "kept", "text": "Ana: my sister Ines moved to Porto.", "speaker": "Ana"}
        assert opened.post(MEMORIES, json={"memories": [kept]}).status_code == 201
        yield opened


def rows_of(database_url: str) -> dict[str, int]:
    """How many rows each table has."""
    with psycopg.connect(database_url) as db:
        names = db.execute("select tablename from pg_tables where schemaname = 'public'").fetchall()
        counts = {}
        for (name,) in names:
            row = db.execute(sql.SQL("select count(*) from {}").format(sql.Identifier(name))).fetchone()
            assert row is not None
            counts[str(name)] = int(row[0])
    assert counts["memory"] > 0
    return counts


def test_what_is_refused(client: httpx.Client, database_url: str, subtests: pytest.Subtests) -> None:
    """422 with the field, the tables as before, the server up, and connections usable."""
    before = rows_of(database_url)
    for what, path, body, field in REFUSED:
        with subtests.test(what=what):
            answer = client.post(path, content=json.dumps(body).encode(), headers=JSON)
            assert answer.status_code == 422, answer.text[:300]
            assert [".".join(str(part) for part in error["loc"]) for error in answer.json()["errors"]] == [field]
            assert len(answer.content) < 4_096
    for path, too_long in (
        (MEMORIES, {"memories": [{"text": TEN_MB * 2}]}),
        (SEARCH, {"query": TEN_MB}),
        (CONTEXT, {"messages": [{"role": "user", "content": TEN_MB}]}),
    ):
        assert client.post(path, content=json.dumps(too_long), headers=JSON).status_code == 413
    assert rows_of(database_url) == before
    assert client.post(SEARCH, json={"query": "Who moved to Porto?"}).json()["results"][0]["id"] == "kept"


def test_bad_lines_of_a_stream(client: httpx.Client, database_url: str) -> None:
    """Each is rejected by name, the good one between them is stored, and nothing else."""
    before = rows_of(database_url)
    bad = [
        json.dumps(body["memories"][0]) for _, path, body, _ in REFUSED if path == MEMORIES and isinstance(body, dict)
    ]
    lines = [*bad, "{", "[]", '{"id": "good", "text": "Good."}', *bad]
    answer = client.post(f"{MEMORIES}/bulk", content="\n".join(lines).encode(), headers=NDJSON)
    assert answer.status_code == 200
    results = [json.loads(line) for line in answer.text.splitlines()]
    assert [result["status"] for result in results].count("created") == 1
    assert [result["status"] for result in results].count("rejected") == len(lines) - 1
    assert all(result["error"] for result in results if result["status"] == "rejected")
    after = rows_of(database_url)
    assert after["memory"] == before["memory"] + 1
    assert client.delete(f"{MEMORIES}/good").status_code == 204
    changed = {name for name, count in rows_of(database_url).items() if count != before[name]}
    assert changed == {"memory_change"}, "what was written and deleted is told to the indexes"


def test_odd_texts_are_stored_and_found(client: httpx.Client, subtests: pytest.Subtests) -> None:
    """Emoji, stop words, underscores, only marks: accepted as text, title, query and name of an entity."""
    for number, text in enumerate(ODD_BUT_FINE):
        with subtests.test(text=text[:20]):
            memory = {"id": f"odd{number}", "text": text, "title": text[:1_000], "speaker": text[:256]}
            entities = [{"name": text[:256], "aliases": [text[:128]]}]
            relations = [{"source": text[:256], "type": "is", "target": text[:256]}]
            whole = {**memory, "entities": entities, "relations": relations}
            added = client.post(MEMORIES, json={"memories": [whole]})
            assert (added.status_code, added.json()["results"][0]["status"]) == (201, "created"), added.text
            for mode in ("adaptive", "hybrid", "vector", "bm25", "graph"):
                answer = client.post(SEARCH, json={"query": text, "mode": mode, "top_k": 200, "explain": True})
                assert answer.status_code == 200, answer.text
                assert answer.json()["degraded"] == []
            found = client.post(SEARCH, json={"query": text, "top_k": 200}).json()["results"]
            assert f"odd{number}" in {result["id"] for result in found}
            for layout in ("markdown", "xml", "json"):
                pack = client.post(CONTEXT, json={"query": text, "format": layout, "max_tokens": 64})
                assert pack.status_code == 200, pack.text
                assert pack.json()["tokens_used"] <= 64


CHUNKED = (
    b"POST /v1/classify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)


def connected(client: httpx.Client) -> socket.socket:
    """A separate connection to the server."""
    return socket.create_connection((client.base_url.host, client.base_url.port or 80), PATIENCE_S)


def is_cut_off(connection: socket.socket, pieces: Iterable[bytes], *, pause_s: float = 0) -> bool:
    """Whether the server closes a connection before it has read all pieces."""
    try:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause_s)
    except (BrokenPipeError, ConnectionResetError):
        return True
    return False


@pytest.mark.parametrize(
    ("start", "rest"),
    [
        (b"GET /version?", b"a"),
        (b"GET /version HTTP/1.1\r\nHost: localhost\r\nX-A: ", b"a"),
        (b"GET /version HTTP/1.1\r\nHost: localhost\r\n", b"X-A: a\r\n"),
        (CHUNKED + b"2\r\n{}\r\n0\r\n", b"X-A: a\r\n"),
        (CHUNKED + b"2;", b"a"),
    ],
    ids=["address", "header", "headers", "trailers", "extension"],
)
def test_what_has_no_end_beside_a_body_is_cut_off(client: httpx.Client, start: bytes, rest: bytes) -> None:
    """It needs no key, and the server would store all of it."""
    piece = rest * (65_536 // len(rest))
    with connected(client) as connection:
        connection.sendall(start)
        assert is_cut_off(connection, [piece] * 1_024)
    assert client.get("/version").status_code == 200


def test_a_long_request_line_is_read(client: httpx.Client) -> None:
    """As that of a list with many filters."""
    sessions = [f"{number:036}" for number in range(1_000)]
    answer = client.get(MEMORIES, params={"filters": json.dumps({"session_id": sessions})})
    assert (answer.status_code, answer.json()["memories"]) == (200, [])


@pytest.mark.parametrize("piece", [65_536, 50])
def test_a_request_that_asks_for_another_protocol_is_answered_in_this_one(client: httpx.Client, piece: int) -> None:
    """Java's HTTP client asks for HTTP/2. The body is still the request's, and no request of its own."""
    body = b'{"query": "Who moved to Porto?"}'
    line = f"POST {SEARCH} HTTP/1.1\r\n".encode()
    asking = b"Host: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    head = line + b"Content-Type: application/json\r\n" + asking
    requests = (
        head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        + head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        + b"GET /version HTTP/1.1\r\nConnection: close\r\n" + asking + b"\r\n"
    )  # fmt: skip
    with connected(client) as connection:
        for at in range(0, len(requests), piece):
            connection.sendall(requests[at : at + piece])
        answers = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert answers.count(b"HTTP/1.1 200 OK") == answers.count(b"HTTP/1.1") == 3, answers
    assert answers.count(b'"id":"kept"') == 2


@pytest.mark.parametrize("asking", ["Connection: close\r\n", "Connection: close, Upgrade\r\nUpgrade: h2c\r\n"])
def test_a_request_that_closes_is_answered_whatever_follows_it(client: httpx.Client, asking: str) -> None:
    request = f"GET /version HTTP/1.1\r\nHost: localhost\r\n{asking}\r\n".encode()
    with connected(client) as connection:
        connection.sendall(request * 2)
        answers = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert answers.startswith(b"HTTP/1.1 200 OK")
    assert answers.count(b"HTTP/1.1") == 1


def test_a_client_that_does_not_finish_its_headers(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """It times out, whether it sends nothing or a byte now and then; a slow body does not."""
    monkeypatch.setattr(connections, "HEAD_TIMEOUT_S", 2)
    with connected(client) as silent, connected(client) as slow, connected(client) as body:
        body.sendall(CHUNKED)
        assert is_cut_off(slow, [b"GET /version HTTP/1.1\r\nX-A: ", *[b"a"] * 1_000], pause_s=0.05)
        assert silent.recv(1) == b""
        body.sendall(b"2\r\n{}\r\n0\r\n\r\n")
        assert body.recv(12) == b"HTTP/1.1 422"
