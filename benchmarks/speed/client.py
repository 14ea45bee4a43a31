"""A lean HTTP client, as it shares the cores with the server: keep-alive sockets and prepared requests."""

from __future__ import annotations

import selectors
import socket
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from benchmarks.speed.figures import spread

_END = b"\r\n\r\n"
_LENGTH = b"content-length:"


def post(path: str, body: Any, *, method: str = "POST") -> bytes:
    """A request as bytes, with a body of any type that msgspec supports."""
    content = msgspec.json.encode(body)
    head = bare(method, path).removesuffix(_END)
    return head + f"\r\ncontent-type: application/json\r\ncontent-length: {len(content)}".encode() + _END + content


def bare(method: str, path: str) -> bytes:
    """A request without a body."""
    return f"{method} {path} HTTP/1.1\r\nhost: localhost".encode() + _END


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
        """Read what has arrived; returns the answer once it is complete.

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
        length = int(head.partition(_LENGTH)[2].partition(b"\r\n")[0] or 0)  # a 204 has none
        if len(self._received) < end + len(_END) + length:
            return None
        reply = Reply(int(head[9:12]), bytes(self._received[end + len(_END) :]), time.perf_counter() - started)
        self._received.clear()
        return reply

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


class Request(NamedTuple):
    """A request as bytes, and what kind of request it is."""

    kind: str
    content: bytes


@dataclass(slots=True)
class LoadResult:
    """The results of a load: seconds of each successful request, failures by reason, the total time."""

    latencies: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def figures(self) -> dict[str, Any]:
        """The fields of a `Load`."""
        return {
            "per_second": len(self.latencies) / self.seconds,
            "latency": spread([1e3 * each for each in self.latencies]) if self.latencies else None,
            "failures": dict(Counter(self.failures)),
        }


def closed_loop(port: int, requests: Iterable[bytes], concurrency: int, *, seconds: float = float("inf")) -> LoadResult:
    """Like `mixed_loop`, with requests of one kind shared by `concurrency` clients."""
    shared = (Request("", content) for content in requests)
    return mixed_loop(port, [shared] * concurrency, seconds=seconds)[""]


def mixed_loop(
    port: int, clients: Sequence[Iterator[Request]], *, seconds: float = float("inf")
) -> Mapping[str, LoadResult]:
    """Run clients that send each request once the previous one is answered; returns the results by kind.

    It ends when the requests or the seconds run out. An answer that is not a 2xx or reports a failed leg is a failure,
    and so is a broken connection, which is not used again.
    """
    results: defaultdict[str, LoadResult] = defaultdict(LoadResult)
    started = time.perf_counter()
    with selectors.DefaultSelector() as selector:
        for client in clients:
            if (request := next(client, None)) is not None:
                selector.register(_Exchange(port, client, request), selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                exchange: Any = key.fileobj
                try:
                    reply = exchange.connection.receive(exchange.sent)
                except (ConnectionError, TimeoutError) as exc:
                    results[exchange.kind].failures.append(str(exc))
                    goes_on = False
                else:
                    if reply is None:
                        continue
                    _judge(reply, results[exchange.kind])
                    goes_on = time.perf_counter() - started <= seconds and exchange.send_next()
                if not goes_on:
                    selector.unregister(exchange)
                    exchange.connection.socket.close()
    for result in results.values():
        result.seconds = time.perf_counter() - started
    return results


class _Exchange:
    """A client's connection with its current request."""

    def __init__(self, port: int, client: Iterator[Request], first: Request) -> None:
        self.connection = Connection(port)
        self._client = client
        self._send(first)

    def fileno(self) -> int:
        return self.connection.socket.fileno()

    def send_next(self) -> bool:
        """Send the client's next request; False if there is none."""
        following = next(self._client, None)
        if following is not None:
            self._send(following)
        return following is not None

    def _send(self, request: Request) -> None:
        self.kind, self.sent = request.kind, time.perf_counter()
        self.connection.socket.sendall(request.content)


def _judge(reply: Reply, result: LoadResult) -> None:
    if not 200 <= reply.status < 300:
        result.failures.append(f"{reply.status}: {reply.body[:200].decode(errors='replace')}")
    elif b'"degraded":[{' in reply.body:
        result.failures.append("a leg did not answer")
    else:
        result.latencies.append(reply.seconds)
