"""The benchmark's HTTP client against a server that answers in pieces, with failures, or not at all."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from benchmarks.speed.client import Connection, Request, closed_loop, mixed_loop, post

Answer = Callable[[bytes], list[bytes]]
"""The answer to a request's body, in pieces; an empty piece closes the connection."""


@contextmanager
def answering(answer: Answer) -> Iterator[int]:
    """A server on a free port that answers each connection like this; yields the port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def converse(connection: socket.socket) -> None:
        with connection:
            received = b""
            while data := connection.recv(65_536):
                received += data
                head, found, body = received.partition(b"\r\n\r\n")
                if not found or len(body) < int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]):
                    continue
                received = b""
                for piece in answer(body):
                    if not piece:
                        return
                    connection.sendall(piece)

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=converse, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def reply(body: bytes, status: int = 200) -> bytes:
    return b"HTTP/1.1 %d Some\r\nContent-Length: %d\r\nx: y\r\n\r\n%s" % (status, len(body), body)


def test_an_answer_in_pieces_is_put_together() -> None:
    def slowly(body: bytes) -> list[bytes]:
        whole = reply(b"<" + body + b">")
        return [whole[at : at + 7] for at in range(0, len(whole), 7)]

    with answering(slowly) as port, Connection(port) as connection:
        for number in range(3):
            found = connection.ask(post("/x", {"n": number}))
            assert (found.status, found.body) == (200, b'<{"n":%d}>' % number)
            assert found.seconds > 0


def test_a_load_counts_what_succeeds_and_names_what_fails() -> None:
    def judged(body: bytes) -> list[bytes]:
        number = int(body)
        if number % 10 == 3:
            return [reply(b"no", 503)]
        return [reply(b'{"degraded":[{"leg":"graph"}]}' if number % 10 == 7 else b'{"degraded":[]}')]

    with answering(judged) as port:
        result = closed_loop(port, [post("/x", number) for number in range(100)], 8)
    assert len(result.latencies) == 80
    assert sorted(set(result.failures)) == ["503: no", "a leg did not answer"]
    assert len(result.failures) == 20
    assert result.seconds >= max(result.latencies)


def test_a_closed_connection_is_a_failure() -> None:
    with answering(lambda body: [b""] if int(body) == 2 else [reply(b"{}")]) as port:
        result = closed_loop(port, [post("/x", number) for number in range(20)], 2)
        assert result.failures == ["the server closed the connection"]
        assert len(result.latencies) == 19
        with Connection(port) as connection, pytest.raises(ConnectionError):
            connection.ask(post("/x", 2))


def test_each_client_sends_its_own_requests_in_their_order() -> None:
    asked: list[bytes] = []

    def noted(body: bytes) -> list[bytes]:
        asked.append(body)
        return [reply(b"{}", 503 if body == b'"a2"' else 204)]

    with answering(noted) as port:
        clients = [iter([Request(f"kind {at % 2}", post("/x", f"{name}{at}")) for at in range(5)]) for name in "ab"]
        results = mixed_loop(port, clients)
    assert [body for body in asked if b"a" in body] == [b'"a%d"' % at for at in range(5)]
    assert {kind: (len(each.latencies), each.failures) for kind, each in results.items()} == {
        "kind 0": (5, ["503: {}"]),
        "kind 1": (4, []),
    }


def test_a_load_ends_with_its_time() -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield post("/x", 1)

    with answering(lambda _: [reply(b"{}")]) as port:
        result = closed_loop(port, endless(), 4, seconds=0.3)
    assert 0.3 <= result.seconds < 5
    assert result.latencies
    assert not result.failures
