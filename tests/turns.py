"""Chat turns for the tests: a cheap embedder, and the turn table compared with its definition."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector import HalfVector
from pgvector.psycopg import register_vector

from retrieval.embedding.cache import CachedEmbedder, Embedder
from retrieval.embedding.embedders import Embedders

DIMENSIONS = 384
HALF_PRECISION = 2e-3


class HashedEmbedder:
    """Every text its own random unit vector."""

    model = "hashed"

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vector of a text."""
        return own_vector(text)

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of texts, one per row."""
        return np.stack([own_vector(text) for text in texts])

    def fragment_share(self, _text: str) -> float:
        """None, as all texts are treated alike."""
        return 0.0

    def count_pieces(self, text: str) -> int:
        """Its words."""
        return len(text.split())

    async def aclose(self) -> None:
        """Hold nothing."""


class CountingEmbedder(HashedEmbedder):
    """Records the texts it was given."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of texts, one per row."""
        self.texts += texts
        return await super().embed_documents(texts)


def hashed() -> Embedders:
    """Hashed vectors for all namespaces."""
    return uncached(HashedEmbedder())


def uncached(embedder: Embedder) -> Embedders:
    """One embedder for all namespaces, without a cache of queries."""
    return Embedders(CachedEmbedder(embedder, max_entries=0, max_age_s=0))


def own_vector(text: str) -> NDArray[np.float32]:
    """A unit vector determined by the text."""
    seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
    vector = np.random.default_rng(seed).standard_normal(DIMENSIONS)
    return np.asarray(vector / np.linalg.norm(vector), np.float32)


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A row of `turn` with the ids of its neighbours, and its vectors."""

    id: str
    session_id: str
    place: int
    previous: str | None
    next: str | None
    own: NDArray[np.float32]
    embedding: NDArray[np.float32]


def stored_turns(database_url: str) -> dict[str, StoredTurn]:
    """All turns by id; those of one namespace, if ids are not used in two."""
    with psycopg.connect(database_url) as db:
        register_vector(db)
        rows = db.execute("""
            select t.id, t.session_id, t.place, p.id, n.id, t.own, m.embedding,
                t.previous is null or p.id is not null, t.next is null or n.id is not null,
                m.id = t.id and m.session_id = t.session_id
            from turn t join memory m on m.ns = t.ns and m.doc = t.doc
                left join turn p on p.ns = t.ns and p.doc = t.previous
                left join turn n on n.ns = t.ns and n.doc = t.next
        """).fetchall()
        counted = db.execute("""
            select (select count(*) from turn),
                   (select count(*) from memory where session_id is not null)
        """).fetchone()
    assert counted == (len(rows), len(rows)), "every memory of a session is a turn, and no other"
    assert all(all(row[7:]) for row in rows), "pointers lead to turns, and the rows agree"
    turns = [StoredTurn(*columns, *map(_floats, vectors)) for columns, vectors in ((row[:5], row[5:7]) for row in rows)]
    return {turn.id: turn for turn in turns}


def check_turns(database_url: str, texts: Mapping[str, str]) -> dict[str, StoredTurn]:
    """Compare order, pointers and vectors of all turns with their definition; returns the turns by id.

    Args:
        database_url: of the database.
        texts: by id, of all memories with a session.
    """
    turns = stored_turns(database_url)
    assert turns.keys() == texts.keys()
    for session in sessions_of(turns.values()).values():
        owns = [own_vector(texts[turn.id]) for turn in session]
        for at, turn in enumerate(session):
            np.testing.assert_allclose(turn.own, owns[at], atol=HALF_PRECISION)
            total = owns[at] + 0.3 * _at(owns, at - 1) + 0.2 * _at(owns, at - 2)
            np.testing.assert_allclose(turn.embedding, total / np.linalg.norm(total), atol=HALF_PRECISION)
        assert [turn.previous for turn in session] == [None, *(turn.id for turn in session[:-1])]
        assert [turn.next for turn in session] == [*(turn.id for turn in session[1:]), None]
        assert all((a.place, a.id.encode()) < (b.place, b.id.encode()) for a, b in pairwise(session))
    return turns


def sessions_of(turns: Iterable[StoredTurn]) -> dict[str, list[StoredTurn]]:
    """The turns of each session in their order."""
    sessions: dict[str, list[StoredTurn]] = defaultdict(list)
    for turn in sorted(turns, key=lambda turn: (turn.session_id, turn.place, turn.id.encode())):
        sessions[turn.session_id].append(turn)
    return sessions


def _at(owns: Sequence[NDArray[np.float32]], at: int) -> NDArray[np.float32]:
    return owns[at] if at >= 0 else np.zeros(DIMENSIONS, np.float32)


def _floats(vector: HalfVector) -> NDArray[np.float32]:
    return vector.to_numpy().astype(np.float32)
