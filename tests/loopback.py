"""An HTTP server on loopback that accepts POST requests, for tests of Trivet's outgoing requests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Request(NamedTuple):
    """A request received; the names of headers are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: bytes


class Reply(NamedTuple):
    """The answer."""

    status: int
    content: bytes = b"{}"
    headers: Mapping[str, str] = {}


@contextmanager
def answering(answer: Callable[[Request], Reply]) -> Iterator[str]:
    """A running server with this answer; yields its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = answer(Request(self.path, headers, body))
            self.send_response(reply.status)
            for name, value in {**reply.headers, "content-length": str(len(reply.content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
