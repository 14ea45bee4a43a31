"""Other hybrid searches over the same memories and embeddings; each needs a library that may be missing."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, Protocol

from retrieval.benchmarking.peers.base import Documents, Variant
from retrieval.errors import InvalidInput


class OpenPeer(Protocol):
    """Indexes documents; for as long as the block lasts, its ways to search them."""

    def __call__(self, documents: Documents, folder: Path, url: str) -> AbstractContextManager[Sequence[Variant]]:
        """Keep files in `folder`, rows in the database at `url`."""
        ...


class Peer(NamedTuple):
    """A peer by the module that has it as `opened`, and the library that it needs."""

    module: str
    library: str


PEERS: dict[str, Peer] = {
    "pgvector": Peer("handwritten", "psycopg"),
    "lancedb": Peer("lance", "lancedb"),
    "txtai": Peer("txt", "txtai"),
}


def is_installed(name: str) -> bool:
    """Whether the peer's library is there."""
    return find_spec(PEERS[name].library) is not None


def open_peer(name: str) -> OpenPeer:
    """The peer, its library imported."""
    opened: OpenPeer = import_module(f"{__name__}.{PEERS[name].module}").opened
    return opened


def parse_peers(text: str) -> tuple[str, ...]:
    """Peers of a comma-separated list, each once; `all` and `none` stand for what they say.

    Raises:
        InvalidInput: there is no such peer.

    >>> parse_peers("txtai,lancedb")
    ('txtai', 'lancedb')
    """
    if text in ("all", "none"):
        return tuple(PEERS) if text == "all" else ()
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        if name not in PEERS:
            raise InvalidInput(f"{name!r} is no peer: use {', '.join(PEERS)}")
    return names
