"""The clients' requests, and how they treat answers."""

from __future__ import annotations

import base64
import re
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from textwrap import dedent
from typing import Any, get_args, get_type_hints

import httpx
import msgspec
import numpy as np
import pytest

import trivet
from retrieval.errors import NO_SUCH_PATH
from retrieval.settings import Settings
from retrieval.types.search import ContextRequest, Filters, SearchRequest
from tests.processes import python
from trivet.generate import FOLDER, TARGET, synchronous

Handler = Callable[[httpx.Request], httpx.Response]

PAGE: dict[str, object] = {"memories": [], "next_cursor": None}


def client(handler: Handler, **options: Any) -> trivet.Client:
    return trivet.Client(namespace="ana", transport=httpx.MockTransport(handler), **options)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long a client waited, without the waiting."""
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    return waited


def test_the_synchronous_client_is_the_one_that_is_made_of_the_other() -> None:
    assert (FOLDER / TARGET).read_text(encoding="utf-8") == synchronous()


@pytest.mark.parametrize(
    ("method", "request_type", "own"),
    [
        ("search", SearchRequest, {"query"}),
        ("context", ContextRequest, {"query", "messages"}),
        ("get_all", Filters, set()),
    ],
)
def test_an_editor_knows_the_fields_that_the_server_takes(method: str, request_type: type, own: set[str]) -> None:
    """By the type of a method's keyword arguments."""
    hints = get_type_hints(getattr(trivet.Client, method))
    [named] = get_args(next(hints[name] for name in ("fields", "filters") if name in hints))
    assert {*get_type_hints(named), *own} == {field.name for field in msgspec.structs.fields(request_type)}


@pytest.mark.parametrize("name", ["a/b", "../../admin", "?x=1", "#", "a b", "é", "%2F", "a%2e%2e"])
def test_no_name_leaves_its_place_in_the_path(name: str) -> None:
    paths = []

    def answer(request: httpx.Request) -> httpx.Response:
        paths.append(request.url.raw_path)
        return httpx.Response(204)

    client(answer).delete(name, namespace=name)
    [path] = paths
    assert path.count(b"/") == 5
    assert b"?" not in path
    *_, namespace, memories, memory_id = path.split(b"/")
    assert memories == b"memories"
    assert httpx.URL(b"/".join([b"http://x", namespace]).decode()).path == f"/{name}"
    assert namespace == memory_id


@pytest.mark.parametrize("name", ["", ".", "..", 5, None, b"m1"])
def test_names_that_paths_cannot_carry_are_refused(name: Any) -> None:
    with pytest.raises(trivet.InvalidInput, match="must be text"):
        client(lambda _: httpx.Response(204)).delete(name)


def test_what_is_too_long_for_an_address_is_said() -> None:
    made = client(lambda _: httpx.Response(200, json=PAGE))
    sessions = [f"{number:067}" for number in range(1_000)]
    for call in (made.get_all(session_id=sessions), made.entities(filters={"session_id": sessions})):
        with pytest.raises(trivet.InvalidInput, match="too long: give fewer or shorter values"):
            next(call)


@pytest.mark.parametrize("url", ["http://[::1", "http://localhost\n"])
def test_an_address_that_cannot_be_read_is_refused(url: str) -> None:
    with pytest.raises(trivet.InvalidInput) as raised:
        trivet.Client(url)
    assert raised.value.loc == ("base_url",)


def test_a_password_in_the_address_is_sent_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="httpx")
    sent = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.headers["Authorization"])
        return httpx.Response(502)

    with pytest.raises(trivet.ServerError, match=re.escape("http://trivet.example/v1")) as raised:
        client(answer, base_url="http://ana:p%20w@trivet.example", retries=0).search("x")
    assert sent == [f"Basic {base64.b64encode(b'ana:p w').decode()}"]
    assert "trivet.example" in caplog.text
    assert "ana:" not in caplog.text + str(raised.value)
    with pytest.raises(trivet.Unreachable, match=re.escape("from http://127.0.0.1:9:")):
        trivet.Client("http://ana:pw@127.0.0.1:9", retries=0).namespaces()


def test_a_key_and_a_password_in_the_address_are_refused_together() -> None:
    """A request has one header for both."""
    with pytest.raises(trivet.InvalidInput, match=r"^the user in base_url .* give one$") as raised:
        trivet.Client("http://ana:pw@trivet.example", "key")
    assert raised.value.loc == ("api_key",)


def test_a_call_needs_a_namespace() -> None:
    with pytest.raises(trivet.InvalidInput, match="no namespace"):
        trivet.Client().get("m1")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, trivet.InvalidInput),
        (401, trivet.Unauthorized),
        (409, trivet.Conflict),
        (413, trivet.BodyTooLarge),
        (422, trivet.InvalidInput),
        (429, trivet.RateLimited),
        (500, trivet.ServerError),
        (502, trivet.ServerError),
        (503, trivet.Unavailable),
    ],
)
@pytest.mark.parametrize(
    "body", [b'{"title": "T", "status": 1, "detail": "what is wrong"}', b"<html>what is wrong", b""]
)
def test_every_status_has_its_error(status: int, kind: type[trivet.TrivetError], body: bytes) -> None:
    with pytest.raises(trivet.TrivetError) as raised:
        client(lambda _: httpx.Response(status, content=body), retries=0).search("x")
    assert type(raised.value) is kind
    assert ("what is wrong" if body.startswith(b"{") else f"{status}") in str(raised.value)


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:84267", "http://a..b", "http://[::1", f"http://{'a' * 64}", "127.0.0.1:8321", "localhost:8321"],
)
@pytest.mark.parametrize("kind", [trivet.Client, trivet.AsyncClient])
def test_what_is_no_address_is_refused(kind: type[trivet.Client | trivet.AsyncClient], address: str) -> None:
    """Also a port that the system would truncate."""
    with pytest.raises(trivet.InvalidInput, match="is no address") as refused:
        kind(address)
    assert refused.value.loc == ("base_url",)
    assert str(refused.value).startswith(f"{address} is no address: ")
    with pytest.raises(trivet.InvalidInput, match="is no address") as refused:
        kind(address.replace("http://", "http://ana:secret@") if "//" in address else f"ana:secret@{address}")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("address", ["http://127.0.0.1:8321?key=secret", "http://127.0.0.1:8321/#secret"])
def test_an_address_with_more_than_a_path_is_refused(address: str) -> None:
    with pytest.raises(trivet.InvalidInput, match="no query") as refused:
        trivet.Client(address)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("password", ["se/cret", "se?cret", "se#cret", "80/secret"])
def test_a_password_that_should_have_been_encoded_is_not_shown(password: str) -> None:
    with pytest.raises(trivet.InvalidInput, match="a stray @") as refused:
        trivet.Client(f"http://ana:{password}@memory.example")
    assert "se" not in str(refused.value)


@pytest.mark.parametrize(
    ("status", "body", "encoding"),
    [
        (301, b"<html>moved", ""),
        (308, b"", ""),
        (200, b"<html>log in", ""),
        (200, b'{"a": 1}', ""),
        (200, b'{"id": "\xff"}', ""),
        (200, b"none of it", "gzip"),
        (422, b'{"detail": "\xff"}', ""),
        (502, b"none of it", "gzip"),
    ],
)
def test_what_is_no_answer_of_trivet_is_an_error_of_its_own(status: int, body: bytes, encoding: str) -> None:
    """As of a proxy that sends elsewhere, wants a login or breaks what it passes on."""
    stream, headers = httpx.ByteStream(body), {"Content-Encoding": encoding, "Location": "https://x.example/"}
    made = client(lambda _: httpx.Response(status, headers=headers, stream=stream), retries=0)
    for call in (made.get, made.search, made.add, made.delete, made.undo_merge):
        with pytest.raises(trivet.TrivetError, match=r"http://127\.0\.0\.1:8321"):
            call("m1")
    with pytest.raises(trivet.TrivetError, match=r"http://127\.0\.0\.1:8321"):
        next(made.export())


def test_a_redirect_is_not_followed_and_says_where_it_leads() -> None:
    """As that of a proxy that wants https: following it would turn a POST into a GET."""
    made = client(lambda _: httpx.Response(301, headers={"Location": "https://x.example/v1/namespaces"}), retries=0)
    moved = "301 Moved Permanently from http://127.0.0.1:8321/v1/namespaces to https://x.example/v1/namespaces"
    with pytest.raises(trivet.ServerError, match=f"^{moved}$"):
        made.namespaces()


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        ({"type": "/docs#not-found", "detail": "there is no namespace 'ana'"}, trivet.NotFound),
        ({"type": "/docs#not-found", "detail": NO_SUCH_PATH}, trivet.ServerError),
        ({"detail": "Not Found"}, trivet.ServerError),
        ({}, trivet.ServerError),
    ],
)
def test_only_trivet_says_what_it_does_not_have(problem: dict[str, str], kind: type[trivet.TrivetError]) -> None:
    """Another server, a proxy, or a path outside the API has no memories."""
    made = client(lambda _: httpx.Response(404, json=problem), base_url="http://memory.example/v1")
    with pytest.raises(trivet.TrivetError) as raised:
        made.get("m1")
    assert type(raised.value) is kind
    told = problem["detail"] if kind is trivet.NotFound else "http://memory.example/v1/v1/namespaces/ana/memories/m1"
    assert told in str(raised.value)


def test_an_error_names_the_field() -> None:
    problem = {"detail": "top_k: too large", "errors": [{"loc": ["top_k"], "msg": "too large"}]}
    with pytest.raises(trivet.InvalidInput) as raised:
        client(lambda _: httpx.Response(422, json=problem)).search("x", top_k=1_000)
    assert raised.value.loc == ("top_k",)


def test_nobody_at_the_address(pauses: list[float]) -> None:
    """One clear error with the address in it, after some more attempts."""
    with (
        trivet.Client("http://127.0.0.1:9", namespace="ana") as away,
        pytest.raises(trivet.Unreachable, match=r"no answer from http://127\.0\.0\.1:9"),
    ):
        away.add("x")
    assert pauses == [0.1, 0.2, 0.4]


@pytest.mark.parametrize("outcome", [503, 429, httpx.ReadTimeout("late"), httpx.RemoteProtocolError("cut off")])
@pytest.mark.parametrize(("call", "is_repeated"), [("search", True), ("add", True), ("delete", False)])
def test_what_may_be_sent_twice_is(
    pauses: list[float], outcome: int | httpx.TransportError, call: str, is_repeated: bool
) -> None:
    """A write without an id gets one first, so that the server sees the same memory again."""
    bodies = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(request.content)
        if isinstance(outcome, httpx.TransportError):
            raise outcome
        return httpx.Response(outcome, headers={"Retry-After": "7"} if outcome == 429 else {})

    with pytest.raises(trivet.TrivetError):
        getattr(client(answer, retries=2), call)("x")
    assert len(bodies) == (3 if is_repeated else 1)
    assert len(set(bodies)) == 1
    assert pauses == (([7.0, 7.0] if outcome == 429 else [0.1, 0.2]) if is_repeated else [])


def test_a_fork_uses_connections_of_its_own() -> None:
    """As the workers of a server that loads its application before it forks them."""
    callers: list[tuple[str, int]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # keeps connections open

        def do_GET(self) -> None:
            callers.append(self.client_address)
            answer = b'{"namespaces":[]}'
            self.send_response(200)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    program = """
        import os, sys, trivet
        client = trivet.Client(sys.argv[1])
        client.namespaces()
        if not (child := os.fork()):
            client.namespaces()
            os._exit(0)
        os.waitpid(child, 0)
        client.namespaces()
    """
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            python("-c", dedent(program), f"http://127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()
            thread.join()
    parent, child, parent_again = callers
    assert parent == parent_again != child


def test_a_second_attempt_may_succeed(pauses: list[float]) -> None:
    answers = iter([httpx.Response(503), httpx.Response(200, json=PAGE)])
    assert list(client(lambda _: next(answers)).get_all()) == []
    assert len(pauses) == 1


def test_many_memories_are_sent_in_batches_as_they_come() -> None:
    sizes: list[int] = []
    progress: list[tuple[int, int]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        memories = msgspec.json.decode(request.content)["memories"]
        sizes.append(len(memories))
        return httpx.Response(201, json={"results": [{"id": each["id"], "status": "created"} for each in memories]})

    texts = (f"text {number}" for number in range(450))
    results = client(answer).add(texts, on_progress=lambda done: progress.append((done, len(sizes))))
    assert sizes == [200, 200, 50]
    assert progress == [(200, 1), (400, 2), (450, 3)]
    assert len({result.id for result in results}) == 450


@pytest.mark.parametrize(("count", "chars"), [(17, 990_000), (200, 100_000)])
def test_long_memories_are_sent_in_smaller_batches(count: int, chars: int) -> None:
    sent: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        memories = msgspec.json.decode(request.content)["memories"]
        assert len(request.content) <= Settings().max_body_bytes
        sent.extend(each["id"] for each in memories)
        return httpx.Response(201, json={"results": [{"id": each["id"], "status": "created"} for each in memories]})

    ids = [f"m{number}" for number in range(count)]
    results = client(answer).add({"id": each, "text": "x" * chars} for each in ids)
    assert sent == [result.id for result in results] == ids


def test_what_is_no_memory_is_named() -> None:
    with pytest.raises(trivet.InvalidInput, match=r"a memory is a text, its fields or a trivet\.Memory, not 5"):
        client(lambda _: httpx.Response(500)).add(["text", 5])  # type: ignore[list-item]


@pytest.mark.parametrize(
    "call",
    [
        lambda ana: ana.add({"text": b"tea"}),
        lambda ana: ana.update("m1", text=b"tea"),
        lambda ana: ana.add_document(b"tea"),
    ],
)
def test_bytes_are_no_text(call: Callable[[trivet.Client], object]) -> None:
    """Their base64 would be stored instead."""
    with pytest.raises(trivet.InvalidInput, match=r"^must be text, not bytes$"):
        call(client(lambda _: httpx.Response(500)))


def test_numpys_numbers_and_arrays_are_numbers_and_lists_of_json() -> None:
    bodies = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(msgspec.json.decode(request.content))
        return httpx.Response(201, json={"results": [{"id": "m1", "status": "created"}]})

    metadata = {
        "share": np.float32(0.5),
        "count": np.int64(5),
        "sure": np.bool_(True),
        "name": np.str_("a"),
        "nan": None,
    }
    numbers = {**metadata, "list": np.arange(2), "pair": np.array(["a", "b"])}
    client(answer).add({"id": "m1", "text": "x", "position": np.int16(3), "metadata": numbers})
    [stored] = bodies[0]["memories"]
    assert stored["position"] == 3
    assert stored["metadata"] == {**metadata, "list": [0, 1], "pair": ["a", "b"]}


def test_an_answer_is_waited_for_as_long_as_its_work_takes() -> None:
    """Long texts are embedded for minutes, and many memories are deleted for some."""
    waits: list[dict[str, float]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        waits.append(request.extensions["timeout"])
        return httpx.Response(200, json={"results": [], "deleted": 1})

    ana = client(answer, timeout_s=7)
    ana.add("x")
    ana.add("x" * 1_000_000)
    ana.delete_all(tags_any=["x"])
    short, long, many = (wait["read"] for wait in waits)
    assert short < 8
    assert long > 500
    assert many > 500
    assert {wait[part] for wait in waits for part in ("connect", "write", "pool")} == {7}


def test_a_batch_of_bad_memories_keeps_no_other_from_being_stored() -> None:
    """Unless all are bad, they are rejected; a long one may become a batch of its own."""

    def answer(request: httpx.Request) -> httpx.Response:
        memories = msgspec.json.decode(request.content)["memories"]
        if all(len(each["text"]) > 1_000_000 for each in memories):
            problem = {"type": "/docs#invalid-input", "detail": "too long"}
            fault = {"loc": ["memories", 0], "msg": "too long"}
            return httpx.Response(422, json=problem | {"errors": [fault]})
        return httpx.Response(201, json={"results": [{"id": each["id"], "status": "created"} for each in memories]})

    bad, good = client(answer).add([{"id": "bad", "text": "x" * 3_000_000}, {"id": "good", "text": "x"}])
    assert (bad.id, bad.status, bad.error, good.id, good.status) == ("bad", "rejected", "too long", "good", "created")
    with pytest.raises(trivet.InvalidInput, match="too long"):
        client(answer).add(["x" * 3_000_000])


@pytest.mark.parametrize("key", ["secret-key\n", "secret-key ", " secret-key", "secret\tkey"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(trivet.InvalidInput, match=r"^api_key must be one line of text") as raised:
        trivet.Client(api_key=key)
    assert raised.value.loc == ("api_key",)
    assert "secret" not in f"{raised.value!r}"


def test_a_key_may_have_any_letters() -> None:
    seen = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(dict(request.headers.raw)[b"Authorization"])
        return httpx.Response(401, json={"detail": "A valid key is needed"})

    with pytest.raises(trivet.Unauthorized):
        client(answer, api_key="clé").search("x")
    assert seen == ["Bearer clé".encode()]


def test_the_key_travels_and_is_not_shown() -> None:
    seen = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["authorization"])
        return httpx.Response(401, json={"detail": "A valid key is needed"})

    made = client(answer, api_key="secret-key")
    with pytest.raises(trivet.Unauthorized) as raised:
        made.search("x")
    assert seen == ["Bearer secret-key"]
    assert "secret" not in f"{raised.value!r} {made!r} {raised.value.__cause__!r}"
