"""The HNSW index and exact search: many namespaces in one index, filters, ties."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import LiteralString

import numpy as np
import pytest
from numpy.typing import NDArray
from pgvector import HalfVector

from graph.graph_rows import DocGraph
from postgres.connection import Connection
from retrieval.store import vectors
from retrieval.store.memories import NewMemory, insert
from retrieval.store.migrate import bundled, migrate
from retrieval.store.pool import open_pool
from retrieval.store.visibility import by_ordinal, seen_by
from retrieval.text.analysis import bag
from retrieval.types.memory import Kind, MemoryInput
from retrieval.types.search import Filters, SearchOptions
from tests.conftest import PostgresServer

LARGE, SMALL, OTHER = 1, 2, 77
SIZES = {LARGE: 400, SMALL: 60, OTHER: 100}
START = datetime(2024, 1, 1, tzinfo=UTC)
EVERYTHING = seen_by(SearchOptions())
ENTER_ALL: LiteralString = "update memory set indexed = true"
# As the first version did.
INSERT: LiteralString = """
    insert into memory (ns, doc, id, kind, text, created_at, tags, metadata, entities, relations, fingerprint, length,
        embedding)
    values (%s, %s, %s, 'memory', '', now(), '{}', '{}', '[]', '[]', '', 2, %s)
"""


def unit_vectors(ns: int, count: int) -> NDArray[np.float32]:
    """Unit vectors around centres that all namespaces share, like texts on the same subjects."""
    centres = np.random.default_rng(0).normal(size=(40, 384))
    rng = np.random.default_rng(ns)
    rows = centres[rng.integers(0, len(centres), count)] + rng.normal(scale=0.8, size=(count, 384))
    unit: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    return unit.astype(np.float32)


def memory(ns: int, doc: int, vector: NDArray[np.float32]) -> NewMemory:
    tags = [f"every {step}" for step in (2, 20, 200) if doc % step == 0]
    kind: Kind = "memory" if doc % 3 else "chunk"
    given = MemoryInput(text=f"memory {doc}", tags=tags, kind=kind, metadata={"third": doc % 3})
    return NewMemory(
        id=f"{ns}:{doc}",
        input=given,
        created_at=START + timedelta(minutes=doc),
        fingerprint=b"",
        bag=bag(given.text, None, "simple", title_weight=1),
        graph=DocGraph(doc),
        embedding=vector,
        traits=0,
    )


def exactly(ns: int, query: NDArray[np.float32], docs: Sequence[int], k: int) -> list[int]:
    """The nearest of these, by numpy."""
    stored = unit_vectors(ns, SIZES[ns])[list(docs)]
    return [docs[at] for at in np.argsort(-(stored @ query), kind="stable")[:k]]


async def fill(database_url: str) -> None:
    """Write three namespaces."""
    async with open_pool(database_url, 1) as pool, pool.connection() as conn:
        for ns, size in SIZES.items():
            await insert(conn, ns, {doc: memory(ns, doc, vector) for doc, vector in enumerate(unit_vectors(ns, size))})
        await conn.execute(ENTER_ALL)


@pytest.fixture(scope="module")
def filled(postgres_server: PostgresServer) -> Iterator[str]:
    with postgres_server.filled(fill) as name:
        yield name


@pytest.fixture
async def conn(postgres_server: PostgresServer, filled: str) -> AsyncIterator[Connection]:
    with postgres_server.clone(filled) as url:
        async with open_pool(url, 1) as pool, pool.connection() as conn:
            yield conn


def queries(count: int) -> NDArray[np.float32]:
    return unit_vectors(5, count)


async def uses_of_index(conn: Connection) -> int:
    await conn.execute("select pg_stat_force_next_flush()")
    statement = "select idx_scan from pg_stat_user_indexes where indexrelname = 'memory_embedding'"
    row = await (await conn.execute(statement, prepare=False)).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("ns", SIZES)
async def test_the_index_finds_a_namespace_among_others(conn: Connection, ns: int) -> None:
    """Nearly all that exact search finds, whatever the namespace's share of the index."""
    before, found, k = await uses_of_index(conn), 0, 10
    for query in queries(20):
        rows = await vectors.by_index(conn, ns, HalfVector(query), k=k, condition=EVERYTHING, ef_search=64)
        assert len(rows) == k
        stored = unit_vectors(ns, SIZES[ns])
        assert [score for _, score in rows] == pytest.approx([float(stored[doc] @ query) for doc, _ in rows], abs=2e-3)
        found += len({doc for doc, _ in rows} & set(exactly(ns, query, range(SIZES[ns]), k)))
    assert found >= 0.98 * 20 * k
    assert await uses_of_index(conn) >= before + 20


async def test_directions_of_namespaces(conn: Connection) -> None:
    """The same for the same, of length 1/2, and otherwise far from each other."""
    statement = "select namespace_direction(ns) from generate_series(1, 400) as ns order by ns"
    rows = await (await conn.execute(statement, binary=True)).fetchall()
    directions = np.array([row[0].to_numpy() for row in rows], np.float64)
    assert directions.shape == (400, 16)
    products = directions @ directions.T
    assert np.diag(products) == pytest.approx(0.25, abs=1e-3)
    apart = products[~np.eye(400, dtype=bool)]
    assert abs(apart.mean()) < 0.01
    assert apart.max() < 0.2


@pytest.mark.parametrize("step", [2, 20, 200])
async def test_a_filter_starves_no_search(conn: Connection, step: int) -> None:
    """All that are eligible are found up to k, if only one in 200 is."""
    condition = seen_by(SearchOptions(filters=Filters(tags_all=[f"every {step}"])))
    docs = list(range(0, SIZES[LARGE], step))
    for query in queries(5):
        found = await vectors.by_index(
            conn, LARGE, HalfVector(query), k=40, condition=condition, ef_search=vectors.breadth(64, 400, 1 / step)
        )
        assert len(found) == min(40, len(docs))
        assert {doc for doc, _ in found} <= set(docs)
        best = exactly(LARGE, query, docs, 10)
        assert len(set(best) & {doc for doc, _ in found}) >= len(best) - 1


async def test_an_exact_look_among_some(conn: Connection) -> None:
    docs = list(range(0, SIZES[LARGE], 7))
    for query in queries(5):
        found = await vectors.exactly(conn, LARGE, HalfVector(query), k=12, condition=by_ordinal(docs))
        scores = [score for _, score in found]
        assert scores == sorted(scores, reverse=True)
        assert [doc for doc, _ in found] == exactly(LARGE, query, docs, 12)
    assert await vectors.exactly(conn, LARGE, HalfVector(query), k=12, condition=by_ordinal([])) == []
    gone = await vectors.exactly(conn, LARGE, HalfVector(query), k=12, condition=by_ordinal([SIZES[LARGE], 10_000]))
    assert gone == []


async def test_ties_at_the_cut_go_by_id(conn: Connection) -> None:
    """Not by ordinal: "1:1000" is before "1:1001" and "1:999"."""
    same = unit_vectors(9, 1)[0]
    added = [1_001, 999, 1_000]
    await insert(conn, LARGE, {doc: memory(LARGE, doc, same) for doc in added})
    found = await vectors.exactly(conn, LARGE, HalfVector(same), k=2, condition=by_ordinal(added))
    assert [doc for doc, _ in found] == [1_000, 1_001]


async def test_a_database_with_memories_gets_the_index(empty_database_url: str) -> None:
    """And finds by it what was there before, and what came later."""
    await migrate(empty_database_url, series=bundled()[:7])
    async with open_pool(empty_database_url, 1) as pool, pool.connection() as conn:
        for doc, vector in enumerate(unit_vectors(SMALL, SIZES[SMALL])[:40]):
            await conn.execute(INSERT, (SMALL, doc, f"{SMALL}:{doc}", HalfVector(vector)))
    await migrate(empty_database_url)
    async with open_pool(empty_database_url, 1) as pool, pool.connection() as conn:
        later = enumerate(unit_vectors(SMALL, SIZES[SMALL]))
        await insert(conn, SMALL, {doc: memory(SMALL, doc, vector) for doc, vector in later if doc >= 40})
        await conn.execute(ENTER_ALL)
        for query in queries(5):
            found = await vectors.by_index(conn, SMALL, HalfVector(query), k=10, condition=EVERYTHING, ef_search=64)
            assert len({doc for doc, _ in found} & set(exactly(SMALL, query, range(SIZES[SMALL]), 10))) >= 9
