"""A lean HTTP client: keep-alive sockets, requests as ready bytes, since it shares the cores with the server."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec

_END = b"\r\n\r\n"
_LENGTH = b"content-length:"


def post(path: str, body: Any) -> bytes:
    """A POST request of anything that msgspec knows, as bytes."""
    content = msgspec.json.encode(body)
    head = (
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(content)}"
    )
    return head.encode() + _END + content


@dataclass(frozen=True, slots=True)
class Reply:
    """Status, body, and how long it took from the first byte sent to the last received."""

    status: int
    body: bytes
    seconds: float


class Connection:
    """One kept-alive connection, one request at a time."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = bytearray()

    def ask(self, request: bytes) -> Reply:
        """Send a request and wait for the whole answer.

        Raises:
            ConnectionError: the server closed the connection.
        """
        started = time.perf_counter()
        self.socket.sendall(request)
        while (reply := self.receive(started)) is None:
            pass
        return reply

    def receive(self, started: float) -> Reply | None:
        """Take in what has arrived; the answer, once it is whole.

        Raises:
            ConnectionError: the server closed the connection.
        """
        data = self.socket.recv(1 << 18)
        if not data:
            raise ConnectionError("the server closed the connection")
        self._received += data
        end = self._received.find(_END)
        if end < 0:
            return None
        head = bytes(self._received[:end]).lower()
        length = int(head.partition(_LENGTH)[2].partition(b"\r\n")[0])
        if len(self._received) < end + len(_END) + length:
            return None
        reply = Reply(int(head[9:12]), bytes(self._received[end + len(_END) :]), time.perf_counter() - started)
        self._received.clear()
        return reply

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


@dataclass(slots=True)
class LoadResult:
    """What a load of requests gave: seconds of each that succeeded, failures by what was wrong, the time of all."""

    latencies: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0


def closed_loop(port: int, requests: Iterable[bytes], concurrency: int, *, seconds: float = float("inf")) -> LoadResult:
    """Send requests over so many connections, each of which sends its next when the last is answered.

    It ends when the requests or the seconds do. An answer that is not a 2xx, or that says that a leg failed, is a
    failure, and so is a broken connection, which takes part no more.
    """
    result = LoadResult()
    waiting: Iterator[bytes] = iter(requests)
    started = time.perf_counter()
    with selectors.DefaultSelector() as selector:
        for request in islice(waiting, concurrency):
            connection = Connection(port)
            connection.socket.sendall(request)
            selector.register(connection.socket, selectors.EVENT_READ, (connection, [time.perf_counter()]))
        while selector.get_map():
            for key, _ in selector.select():
                connection, sent = key.data
                try:
                    reply = connection.receive(sent[0])
                except (ConnectionError, TimeoutError) as exc:
                    result.failures.append(str(exc))
                    following = None
                else:
                    if reply is None:
                        continue
                    _judge(reply, result)
                    over = time.perf_counter() - started > seconds
                    following = None if over else next(waiting, None)
                if following is None:
                    selector.unregister(connection.socket)
                    connection.socket.close()
                else:
                    sent[0] = time.perf_counter()
                    connection.socket.sendall(following)
    result.seconds = time.perf_counter() - started
    return result


def _judge(reply: Reply, result: LoadResult) -> None:
    if not 200 <= reply.status < 300:
        result.failures.append(f"{reply.status}: {reply.body[:200].decode(errors='replace')}")
    elif b'"degraded":[{' in reply.body:
        result.failures.append("a leg did not answer")
    else:
        result.latencies.append(reply.seconds)
