"""A server on loopback that embeds as OpenAI, Ollama and Google do, by hashes of the texts' words."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import numpy as np

from retrieval.settings import Settings
from tests.turns import own_vector

KEY = "sk-of-the-provider-9f8e7d"
MODELS = {"openai": "text-embedding-3-small", "ollama": "all-minilm", "google": "gemini-embedding-001"}


class Received(NamedTuple):
    """A request: its path, its headers in small letters and its body."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        """What is to be embedded."""
        if "requests" in self.body:
            return [one["content"]["parts"][0]["text"] for one in self.body["requests"]]
        return list(self.body["input"])


class Reply(NamedTuple):
    """An answer that is no vectors."""

    status: int
    content: bytes = b"{}"
    headers: dict[str, str] = {}


@dataclass
class Provider:
    """What the server has received and how it answers.

    Attributes:
        replies: given to the next requests instead of vectors.
        is_down: every request is a 503.
        drift: by which the vectors of a text differ from one request to the next.
    """

    url: str
    dimensions: int = 384
    received: list[Received] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    is_down: bool = False
    drift: float = 0.0

    def settings(self, provider: str, **changes: Any) -> Settings:
        """Settings for this server as one of the providers."""
        values = {"embedding_url": self.url, "embedding_api_key": KEY, **changes}
        return Settings(embedding_provider=provider, **values)  # type: ignore[arg-type]

    def answer(self, request: Received) -> Reply:
        """Vectors, unless something else is to be said."""
        self.received.append(request)
        if self.is_down:
            return Reply(503, b'{"error": {"message": "overloaded\\nfor now"}}')
        if self.replies:
            return self.replies.pop(0)
        given = request.headers.get("x-goog-api-key") or request.headers.get("authorization", "").removeprefix(
            "Bearer "
        )
        if given != KEY:
            return Reply(401, json.dumps({"error": {"message": f"Incorrect API key: {given}"}}).encode())
        vectors = [embedded(text, self.dimensions) for text in request.texts]
        for vector in vectors:
            vector[0] += self.drift * len(self.received)
        return Reply(200, json.dumps(_shaped(request.path, vectors)).encode())


def embedded(text: str, dimensions: int = 384) -> list[float]:
    """The sum of the vectors of a text's words, not of unit length."""
    words = text.lower().replace("?", "").replace(".", "").split()
    total: Any = np.resize(sum(own_vector(word) for word in words), dimensions)
    return [float(number) for number in total]


def _shaped(path: str, vectors: Sequence[list[float]]) -> dict[str, Any]:
    if path == "/api/embed":
        return {"model": "all-minilm", "embeddings": vectors}
    if path.startswith("/v1beta/"):
        return {"embeddings": [{"values": vector} for vector in vectors]}
    rows = [{"object": "embedding", "index": row, "embedding": vector} for row, vector in enumerate(vectors)]
    return {"object": "list", "data": rows[::-1]}


@contextmanager
def served() -> Iterator[Provider]:
    """A running server."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = provider.answer(Received(self.path, headers, body))
            self.send_response(reply.status)
            for name, value in {**reply.headers, "content-length": str(len(reply.content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider = Provider(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
