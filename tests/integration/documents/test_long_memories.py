"""Memories of any length: stored whole, found by all legs, packed correctly."""

from __future__ import annotations

import random

import numpy as np
import psycopg
from pgvector.psycopg import register_vector

from retrieval.engine import Trivet
from retrieval.store.bm25 import compaction
from retrieval.types.memory import MAX_TEXT_CHARS, MemoryInput
from retrieval.types.search import Mode, SearchRequest
from tests.turns import HALF_PRECISION, HashedEmbedder

FILLER = "The baker sold bread and rolls at the corner of the market. " * 60
TOPIC = (
    "A comet was discovered by an astronomer with a telescope, and the planets and stars shone in the night sky. " * 40
)


async def test_the_second_half_of_a_long_turn_is_found_by_its_vector(trivet: Trivet) -> None:
    """Only its beginning used to be embedded."""
    long = MemoryInput(id="long", text=FILLER + TOPIC, speaker="Ana", session_id="s", position=0)
    others = [MemoryInput(id=f"m{number}", text=f"{FILLER} {number}") for number in range(30)]
    await trivet.add("n", [*others, long])
    answer = await trivet.search("n", SearchRequest(query="astronomy: stars and comets", mode=Mode.VECTOR, top_k=1))
    assert answer.results[0].id == "long"


async def test_a_text_of_a_million_characters_is_stored_and_its_terms_are_packed(
    trivet: Trivet, database_url: str
) -> None:
    """With more distinct terms, and one more frequent term, than fit in 16 bits."""
    words = [f"w{number}" for number in range(90_000)] + ["often"] * 70_000
    random.Random(3).shuffle(words)
    text = " ".join(words)[: MAX_TEXT_CHARS - 20] + " quetzalcoatl"
    trivet.embedders.default.embed_documents = HashedEmbedder().embed_documents  # type: ignore[method-assign]
    await trivet.add("n", [MemoryInput(id="book", text=text), MemoryInput(id="note", text="often w7")])

    async def check() -> None:
        assert (await trivet.get("n", "book")).text == text
        for query, expected in (
            ("quetzalcoatl", ["book"]),
            ("often", ["book", "note"]),
            ("w7", ["book", "note"]),
        ):
            answer = await trivet.search("n", SearchRequest(query=query, mode=Mode.BM25))
            assert sorted(result.id for result in answer.results) == expected

    await check()
    async with trivet._pool.connection() as conn:
        await compaction.compact(conn, 1)
    async with Trivet.open(trivet.settings) as other:  # reads the packed terms
        answer = await other.search("n", SearchRequest(query="quetzalcoatl", mode=Mode.BM25))
        assert [result.id for result in answer.results] == ["book"]
    await check()
    with psycopg.connect(database_url) as db:
        [(length,)] = db.execute("select length from memory where id = 'book'").fetchall()
    assert length > 100_000


async def test_a_chunks_vector_is_its_own(trivet: Trivet, database_url: str) -> None:
    """Its neighbours count in BM25 alone, while a turn's count in its vector, too."""
    texts = ["The kettle is copper.", "Slugs ate the lettuce.", "The train leaves at nine."]
    chunks = [
        MemoryInput(id=f"c{number}", kind="chunk", document_id="d", position=number, text=text)
        for number, text in enumerate(texts)
    ]
    turns = [
        MemoryInput(id=f"t{number}", session_id="s", position=number, text=text) for number, text in enumerate(texts)
    ]
    alone = [MemoryInput(id=f"a{number}", text=text) for number, text in enumerate(texts)]
    await trivet.add("n", [*chunks, *turns, *alone])
    with psycopg.connect(database_url) as db:
        register_vector(db)
        rows = db.execute("select id, embedding from memory").fetchall()
    vectors = {memory_id: vector.to_numpy() for memory_id, vector in rows}
    for number in range(3):
        np.testing.assert_allclose(vectors[f"c{number}"], vectors[f"a{number}"], atol=HALF_PRECISION)
    assert np.abs(vectors["t1"] - vectors["a1"]).max() > 10 * HALF_PRECISION
