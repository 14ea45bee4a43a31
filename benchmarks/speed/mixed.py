"""All kinds of requests by many concurrent clients on one of many namespaces, like a server's daily load."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, islice

import numpy as np
from msgspec.structs import replace

from benchmarks.speed.client import Connection, Request, bare, mixed_loop, post
from benchmarks.speed.corpus import BLOCK, Corpus
from benchmarks.speed.figures import MixedKind, MixedLoad
from benchmarks.speed.plan import large_name
from benchmarks.speed.queries import Queries
from benchmarks.speed.searches import TOP_K, search_path
from benchmarks.speed.server import Server
from benchmarks.speed.writing import delete_tagged
from retrieval.types.memory import MemoryInput, MemoryPatch
from retrieval.types.search import ContextRequest, SearchRequest

CLIENTS = 64
SHARES = {"search": 12, "add": 5, "patch": 3, "context": 1, "get": 1, "list": 1, "delete": 1}
"""Of 24 requests half search and a third write; each other kind comes once."""

MAX_TOKENS = 1_000
LISTED = 20
QUERIES = 4_000
"""Number of different queries, repeated in turn: more than a server process caches."""

WRITTEN = 4_000
"""Number of different texts to write."""

_STREAM = 2_000_000
"""A stream used by no namespace."""


class MixedClient:
    """The requests of one client, which only changes and deletes its own memories."""

    def __init__(self, number: int, size: int, queries: Iterator[str], memories: Iterator[MemoryInput]) -> None:
        """Use the namespace of `size` memories; `queries` and `memories` are endless and may be shared."""
        self.tag = f"mixed-{number}"
        self._base, self._size = f"/v1/namespaces/{large_name(size)}", size
        self._queries, self._memories = queries, memories
        self._rng = np.random.default_rng([8, number])
        self._written = 0
        self._own: list[str] = []

    def __iter__(self) -> Iterator[Request]:
        kinds = [kind for kind, share in SHARES.items() for _ in range(share)]
        while True:
            for at in self._rng.permutation(len(kinds)):
                kind = kinds[at] if self._own or kinds[at] not in ("patch", "delete") else "add"
                yield Request(kind, self._content(kind))

    def _content(self, kind: str) -> bytes:
        path = f"{self._base}/memories"
        match kind:
            case "search":
                return post(f"{self._base}/search", SearchRequest(query=next(self._queries), top_k=TOP_K))
            case "context":
                return post(f"{self._base}/context", ContextRequest(query=next(self._queries), max_tokens=MAX_TOKENS))
            case "add":
                return post(path, {"memories": [self._new()]})
            case "patch":
                own = self._own[self._rng.integers(len(self._own))]
                return post(f"{path}/{own}", self._change(), method="PATCH")
            case "delete":
                return bare("DELETE", f"{path}/{self._own.pop()}")
            case "list":
                return bare("GET", f"{path}?limit={LISTED}&cursor={self._rng.integers(self._size)}")
            case _:
                return bare("GET", f"{path}/m{self._rng.integers(self._size)}")

    def _new(self) -> MemoryInput:
        """A memory of this client: the next turn of its session, or a note."""
        made, number = next(self._memories), self._written
        self._written += 1
        self._own.append(f"{self.tag}-{number}")
        session = f"{self.tag}-{number // BLOCK}" if made.kind == "message" else None
        return replace(
            made,
            id=self._own[-1],
            kind="message" if session else "memory",
            session_id=session,
            position=None,
            document_id=None,
            tags=[*made.tags, self.tag],
        )

    def _change(self) -> MemoryPatch:
        """A change, half of the time to the text, otherwise only to the metadata."""
        if self._rng.random() < 0.5:
            return MemoryPatch(text=next(self._memories).text)
        return MemoryPatch(metadata={"seen": int(self._rng.integers(1_000_000))})


def measure_mixed(server: Server, corpus: Corpus, size: int, workers: int, seconds: float) -> MixedLoad:
    """Measure the load on the namespace of `size` memories, and delete what was written.

    Raises:
        StoreUnavailable: the written memories cannot be deleted.
    """
    queries = cycle(Queries(corpus, size, seed=5).take(QUERIES))
    memories = cycle(list(corpus.memories(_STREAM, 0, WRITTEN)))
    with Connection(server.port) as connection:
        for query in islice(queries, CLIENTS):
            connection.ask(post(search_path(large_name(size)), SearchRequest(query=query, top_k=TOP_K)))
    clients = [MixedClient(number, size, queries, memories) for number in range(CLIENTS)]
    before = server.resident_bytes()
    results = mixed_loop(server.port, [iter(client) for client in clients], seconds=seconds)
    after = server.resident_bytes()
    with Connection(server.port) as connection:
        for client in clients:
            delete_tagged(connection, large_name(size), client.tag)
    return MixedLoad(
        size=size,
        clients=CLIENTS,
        workers=workers,
        seconds=max(result.seconds for result in results.values()),
        kinds=[MixedKind(kind=kind, **results[kind].figures) for kind in SHARES if kind in results],
        resident_before=before,
        resident_after=after,
    )
