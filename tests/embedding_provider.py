"""A server on loopback that embeds as OpenAI, Ollama and Google do, by hashes of the texts' words."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from retrieval.settings import Settings
from tests.loopback import Reply, Request, answering
from tests.processes import PATIENCE_S
from tests.turns import own_vector

KEY = "sk-of-the-provider-9f8e7d"
MODELS = {"openai": "text-embedding-3-small", "ollama": "all-minilm", "google": "gemini-embedding-001"}


class Received(NamedTuple):
    """A request: its path, its headers in lower case, and its body."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        """What is to be embedded."""
        if "requests" in self.body:
            return [one["content"]["parts"][0]["text"] for one in self.body["requests"]]
        return list(self.body["input"])


@dataclass
class Provider:
    """The requests that the server has received, and how it answers.

    Attributes:
        replies: given to the next requests instead of vectors.
        is_down: every request is a 503.
        drift: how much the vectors of a text differ between requests.
    """

    url: str = ""
    dimensions: int = 384
    received: list[Received] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    is_down: bool = False
    drift: float = 0.0
    _goes_on: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._goes_on.set()

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """No request is answered during this block; waiting ones are at its end."""
        self._goes_on.clear()
        try:
            yield
        finally:
            self._goes_on.set()

    def settings(self, provider: str, **changes: Any) -> Settings:
        """Settings for this server as one of the providers."""
        values = {"embedding_url": self.url, "embedding_api_key": KEY, **changes}
        return Settings(embedding_provider=provider, **values)  # type: ignore[arg-type]

    def answer(self, request: Received) -> Reply:
        """Vectors, unless another reply is due."""
        self.received.append(request)
        self._goes_on.wait(PATIENCE_S)
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
    provider = Provider()

    def answer(request: Request) -> Reply:
        return provider.answer(Received(request.path, request.headers, json.loads(request.body)))

    with answering(answer) as provider.url:
        yield provider
