"""The graph leg as the pipeline sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, LiteralString

import numpy as np
import pytest
from numpy.typing import NDArray
from psycopg import AsyncConnection

from graph import store
from graph.extraction import extract
from graph.store import DocGraph
from retrieval.legs.base import LegQuery, LegRanking
from retrieval.legs.graph import GraphRetriever
from retrieval.store.pool import Pool
from retrieval.types import Filters, Leg

NS = 7
TEXTS = {
    1: "I met Caroline at the choir in Rome.",
    2: "Caroline sells paintings.",
    3: "The choir sang in Oslo.",
    4: "Bread needs flour.",
}
_MEMORY: LiteralString = """
    insert into memory (ns, doc, id, kind, text, created_at, tags, metadata, entities, relations, fingerprint,
                        length, embedding)
    values (%(ns)s, %(doc)s, %(id)s, 'memory', %(text)s, %(created_at)s, %(tags)s, '{}', '[]', '[]', '', 1,
            %(embedding)s::halfvec)
"""


def axis(number: int) -> NDArray[np.float32]:
    vector = np.zeros(384, dtype=np.float32)
    vector[number] = 1
    return vector


def given(vector: NDArray[np.float32]) -> Callable[[], Awaitable[NDArray[np.float32]]]:
    async def embedding() -> NDArray[np.float32]:
        return vector

    return embedding


async def dead() -> NDArray[np.float32]:
    raise ConnectionError("no embedder")


@pytest.fixture
async def leg(pool: Pool) -> GraphRetriever:
    """Memory n has the unit vector of axis n, the id mn, the tag tn and was created on the n-th."""
    async with pool.connection() as conn, conn.transaction():
        await _fill(conn)
    return GraphRetriever(pool)


async def _fill(conn: AsyncConnection[Any]) -> None:
    for doc, text in TEXTS.items():
        row = {"ns": NS, "doc": doc, "id": f"m{doc}", "text": text, "tags": [f"t{doc}"]}
        row["created_at"] = datetime(2024, 1, doc, tzinfo=UTC)
        row["embedding"] = str(axis(doc).tolist())
        await conn.execute(_MEMORY, row)
    await store.write(conn, NS, [DocGraph(doc, extract(text)) for doc, text in TEXTS.items()])


ASK = LegQuery(
    ns=NS,
    language="english",
    text="Where did Caroline go?",
    embedding=given(axis(300)),
    filters=Filters(),
    as_of=None,
    include_superseded=False,
    fan_out=10,
    ef_search=64,
    max_hops=2,
    min_similarity=None,
    explain=False,
    docs_given_out=5,
)


def ids(ranking: LegRanking) -> list[str]:
    return [hit.id for hit in ranking.hits]


async def test_it_finds_what_mentions_the_entity_and_what_lies_behind(leg: GraphRetriever) -> None:
    ranking = await leg.search(replace(ASK, explain=True))
    assert leg.leg is Leg.GRAPH
    assert sorted(ids(ranking)[:2]) == ["m1", "m2"]
    assert ids(ranking)[2:] == ["m3"]
    assert ranking.hits[2].path == ("Caroline", "choir")
    assert all(0 < hit.score <= 1 for hit in ranking.hits)


async def test_similarity_decides_between_memories_as_near(leg: GraphRetriever) -> None:
    assert ids(await leg.search(replace(ASK, embedding=given(axis(2)))))[0] == "m2"
    assert ids(await leg.search(replace(ASK, embedding=given(axis(1)))))[0] == "m1"
    assert ids(await leg.search(replace(ASK, embedding=given(axis(3)))))[0] != "m4"


async def test_without_hops_only_mentions_count(leg: GraphRetriever) -> None:
    assert sorted(ids(await leg.search(replace(ASK, max_hops=0)))) == ["m1", "m2"]


async def test_it_lives_when_the_embedder_is_dead(leg: GraphRetriever) -> None:
    ranking = await leg.search(replace(ASK, embedding=dead))
    assert sorted(ids(ranking)) == ["m1", "m2", "m3"]
    assert ranking.hits[0].score == 1.0
    assert ranking.details["similarity"] is False


@pytest.mark.parametrize("text", ["", "what is it?", "Zorro", "\U0001f389", "the \x00 of"])
async def test_with_nothing_to_say_it_returns_nothing(leg: GraphRetriever, text: str) -> None:
    assert (await leg.search(replace(ASK, text=text, embedding=dead))).hits == ()


async def test_filters_and_time_hold_also_for_what_is_walked_through(leg: GraphRetriever) -> None:
    assert ids(await leg.search(replace(ASK, filters=Filters(tags_any=["t2", "t3"])))) == ["m2"]
    assert ids(await leg.search(replace(ASK, as_of=datetime(2024, 1, 1, tzinfo=UTC)))) == ["m1"]


async def test_it_cuts_to_the_fan_out(leg: GraphRetriever) -> None:
    full = await leg.search(ASK)
    cut = await leg.search(replace(ASK, fan_out=1))
    assert ids(cut) == ids(full)[:1]


async def test_another_namespace_is_empty(leg: GraphRetriever) -> None:
    assert (await leg.search(replace(ASK, ns=NS + 1))).hits == ()
