"""The vector leg with the plan it chooses, exact or HNSW, and filters of any selectivity."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from numpy.typing import NDArray

from graph.graph_rows import DocGraph
from retrieval.index import small_namespaces
from retrieval.index.quantized_vectors import EligibleRows
from retrieval.legs import vector as leg
from retrieval.legs.base import LegRanking
from retrieval.legs.vector import VectorRetriever
from retrieval.store import changes, vector_index
from retrieval.store.memories import NewMemory, insert, set_embeddings
from retrieval.store.namespaces import allocate_docs, create, find_or_new
from retrieval.store.pool import Pool
from retrieval.text.analysis import bag
from retrieval.types.memory import MemoryInput
from retrieval.types.search import Filters
from tests.snapshot import Ask, Indexed

SIZE = 400


def units(seed: int, count: int) -> NDArray[np.float32]:
    """Unit vectors around some centres."""
    centres = np.random.default_rng(0).normal(size=(40, 384))
    rng = np.random.default_rng(seed)
    rows = centres[rng.integers(0, len(centres), count)] + rng.normal(scale=0.8, size=(count, 384))
    unit: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    return unit.astype(np.float32)


STORED = units(1, SIZE)


@pytest.fixture
async def indexed(pool: Pool) -> Indexed:
    async with pool.connection() as conn:
        namespace = await create(conn, await find_or_new(conn, "n"))
        ns = namespace.ns
        await allocate_docs(conn, namespace, SIZE)
        await insert(
            conn,
            ns,
            {
                doc: NewMemory(
                    id=f"{doc:03}",
                    input=MemoryInput(text="t", tags=[f"every {step}" for step in (2, 10, 100) if doc % step == 0]),
                    created_at=datetime(2024, 1, 1, tzinfo=UTC),
                    fingerprint=b"",
                    bag=bag("t", None, "simple", title_weight=1),
                    graph=DocGraph(doc),
                    embedding=vector,
                    traits=0,
                )
                for doc, vector in enumerate(STORED)
            },
        )
    return Indexed(pool)


async def asked(indexed: Indexed, pool: Pool, query: NDArray[np.float32], **more: object) -> LegRanking:
    async def embedding() -> NDArray[np.float32]:
        return query

    ask = Ask(text="t", namespace="n", embedding=embedding, fan_out=20, explain=True, **more)  # type: ignore[arg-type]
    return await indexed.search(VectorRetriever(pool), ask)


@pytest.mark.parametrize(
    ("plan", "exact_up_to", "read"),
    [("exact", 5_000, 500), ("quantised", 100, 500), ("exact", 5_000, 0), ("hnsw", 100, 0)],
)
async def test_every_plan_finds_what_there_is(
    indexed: Indexed, pool: Pool, monkeypatch: pytest.MonkeyPatch, plan: str, exact_up_to: int, read: int
) -> None:
    """Unfiltered and with filters that keep a half, a tenth and a hundredth: all memories up to the fan-out.

    From the index's vectors, or the database's if the index has not read them.
    """
    monkeypatch.setattr(leg, "EXACT_UP_TO", exact_up_to)
    monkeypatch.setattr(leg, "READ_BY_QUERY", read)
    monkeypatch.setattr(leg, "_COMPARED", 3)
    if plan == "hnsw":
        monkeypatch.setattr(vector_index, "MOST_OUTSIDE", 0)
        async with pool.connection() as conn:
            await conn.execute("update memory set indexed = true")
    monkeypatch.setattr(
        small_namespaces, "MOST_ORDINALS", SIZE - 1
    )  # the vectors of a small namespace come with its index
    for step in (1, 2, 10, 100):
        docs = list(range(0, SIZE, step))
        filters = Filters(tags_all=[f"every {step}"]) if step > 1 else Filters()
        found, plans = 0.0, set()
        for query in units(2, 10):
            ranking = await asked(indexed, pool, query, filters=filters)
            plans.add(ranking.details["plan"])
            got = {hit.doc for hit in ranking.hits}
            assert len(ranking.hits) == min(20, len(docs))
            assert got <= set(docs)
            best = [docs[at] for at in np.argsort(-(STORED[docs] @ query))[:10]]
            found += len(got & set(best)) / len(best)
        assert found >= 9.5
        if step == 1:
            assert plans == {plan}
        if step == 100:
            assert plans == {"exact"}


async def test_a_least_similarity(indexed: Indexed, pool: Pool) -> None:
    query = units(2, 1)[0]
    everything = (await asked(indexed, pool, query)).hits
    least = everything[9].score
    assert (await asked(indexed, pool, query, min_similarity=least)).hits == everything[:10]
    assert (await asked(indexed, pool, query, min_similarity=1.0)).hits == ()


async def test_a_cosine_is_at_most_1(indexed: Indexed, pool: Pool) -> None:
    """Stored vectors are rounded, some to a length above 1."""
    for vector in STORED[:20]:
        assert (await asked(indexed, pool, vector)).hits[0].score == pytest.approx(1, abs=1e-3)
        assert max(hit.score for hit in (await asked(indexed, pool, vector)).hits) <= 1


async def test_a_vector_that_changed_is_found_where_it_is_now(indexed: Indexed, pool: Pool) -> None:
    query = units(2, 1)[0]
    before = await asked(indexed, pool, query)
    far = int(np.argmin(STORED @ query))
    async with pool.connection() as conn, conn.transaction():
        await set_embeddings(conn, 1, {far: query})
        await changes.record(conn, 1, [far])
    after = await asked(indexed, pool, query)
    assert far not in {hit.doc for hit in before.hits}
    assert after.hits[0].doc == far
    assert after.hits[0].score == pytest.approx(1.0, abs=2e-3)


async def test_vectors_that_are_forgotten_while_a_query_reads_are_counted_all_the_same(
    indexed: Indexed, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another query saw a change and dropped a vector: this one compares what it has read itself."""
    query = units(2, 1)[0]
    best = (await asked(indexed, pool, query)).hits
    vectors = (await indexed.query(Ask(text="t", namespace="n"))).snapshot.index.vectors
    eligible_rows = vectors.eligible_rows
    calls = iter(range(100))

    def forgetful(mask: NDArray[np.bool_]) -> EligibleRows:
        if next(calls) == 2:
            vectors.remove(np.array([best[0].doc, best[3].doc]))
        return eligible_rows(mask)

    monkeypatch.setattr(vectors, "eligible_rows", forgetful)
    again = (await asked(indexed, pool, query)).hits
    assert [hit.id for hit in again] == [hit.id for hit in best]
