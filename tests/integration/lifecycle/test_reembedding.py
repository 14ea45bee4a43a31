"""New vectors for a whole namespace: as if written with that embedder, and never two kinds at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from pgvector import HalfVector

from postgres.connection import Connection
from retrieval.embedding import multilingual
from retrieval.embedding.cache import CachedEmbedder
from retrieval.embedding.embedders import Embedders
from retrieval.engine import Trivet
from retrieval.errors import InvalidInput, NotFound
from retrieval.legs import vector
from retrieval.legs.base import LegQuery, LegRanking
from retrieval.store import namespaces, vector_index, vectors
from retrieval.store.namespaces import Namespace
from retrieval.store.pool import Pool
from retrieval.store.visibility import seen_by
from retrieval.types.document import DocumentInput
from retrieval.types.memory import MemoryInput
from retrieval.types.namespace import NamespaceSettings
from retrieval.types.search import Mode, SearchOptions, SearchRequest
from tests.serving import settings_for

SESSION = [MemoryInput(id=f"t{at}", text=f"Turn {at} of a talk about boats.", session_id="s") for at in range(5)]
MEMORIES = [MemoryInput(id=f"m{at}", text=f"Recipe {at} is for soup.", title="Soups") for at in range(70)]
OTHER = NamespaceSettings(embedder="multilingual-e5-small")


class Mirrored:
    """An embedder for tests: the default one with the components in reverse order, slow if asked to be."""

    model = "mirrored"

    def __init__(self, trivet: Trivet) -> None:
        self._inner = trivet.embedders.default
        self.embedded: list[str] = []
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        return (await self._inner.embed_query(text))[::-1].copy()

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        await self.may_go_on.wait()
        self.embedded += texts
        return (await self._inner.embed_documents(texts))[:, ::-1].copy()

    def fragment_share(self, text: str) -> float:
        return 0.0

    def count_pieces(self, text: str) -> int:
        return self._inner.count_pieces(text)

    async def aclose(self) -> None:
        """Nothing is open."""


@pytest.fixture
async def mirrored(trivet: Trivet, monkeypatch: pytest.MonkeyPatch) -> Mirrored:
    """Stands in for the multilingual embedder, in every process; `n` has memories by the default one."""
    embedder, get = Mirrored(trivet), Embedders.get
    cached = CachedEmbedder(embedder, max_entries=0, max_age_s=0)
    monkeypatch.setattr(multilingual, "is_installed", lambda: True)
    monkeypatch.setattr(Embedders, "get", lambda self, name: cached if name == OTHER.embedder else get(self, name))
    await write(trivet, "n")
    return embedder


async def write(trivet: Trivet, name: str) -> None:
    await trivet.add(name, [*SESSION, *MEMORIES])
    await trivet.documents.put(name, DocumentInput(id="d", text="# Knots\n\nA bowline holds.\n\n" * 60))


async def stored(trivet: Trivet, pool: Pool, name: str) -> dict[str, NDArray[np.float32]]:
    """Each memory's vector in context and of its own text, by id, shape (2, dimensions)."""
    async with pool.connection() as conn:
        found = await namespaces.find(conn, name)
        read = await vectors.read(conn, found.ns, range(found.next_doc), generation=found.generation)
        ids = dict(await (await conn.execute("select doc, id from memory where ns = %s", [found.ns])).fetchall())
    own = dict(zip(read.turns.tolist(), read.text_vectors, strict=True))
    both = zip(read.docs.tolist(), read.context_vectors, strict=True)
    return {ids[doc]: np.stack([vector, own.get(doc, vector)]) for doc, vector in both}


async def assert_as_if_written(trivet: Trivet, pool: Pool, name: str, fresh: str) -> None:
    """`name` has the vectors of `fresh`, which was written by the embedder that `name` has now."""
    found, expected = await stored(trivet, pool, name), await stored(trivet, pool, fresh)
    assert found.keys() == expected.keys()
    for memory_id, vectors_of_memory in expected.items():
        np.testing.assert_allclose(found[memory_id], vectors_of_memory, atol=1e-3)


async def best(trivet: Trivet, name: str) -> list[str]:
    """The vector leg's results; no leg failed."""
    answer = await trivet.search(name, SearchRequest(query="a talk about boats", mode=Mode.VECTOR, top_k=5))
    assert answer.degraded == []
    return [result.id for result in answer.results]


async def test_memories_turns_and_chunks_have_the_vectors_of_a_namespace_written_by_that_embedder(
    trivet: Trivet, mirrored: Mirrored, pool: Pool
) -> None:
    await write(trivet, "bystander")
    bystander = await stored(trivet, pool, "bystander")
    await trivet.put_namespace("fresh", OTHER)
    await write(trivet, "fresh")
    before = await best(trivet, "n")
    memories = await trivet.reembedding.run("n", OTHER.embedder)
    described = await trivet.get_namespace("n")
    assert (memories, described.settings) == (described.memories, OTHER)
    await assert_as_if_written(trivet, pool, "n", "fresh")
    assert await best(trivet, "n") == before  # as all cosines are unchanged
    after = await stored(trivet, pool, "bystander")
    assert all(np.array_equal(after[memory_id], both) for memory_id, both in bystander.items())


async def test_searches_and_writes_go_on_and_what_was_written_meanwhile_is_not_missed(
    trivet: Trivet, mirrored: Mirrored, pool: Pool
) -> None:
    before = await best(trivet, "n")
    mirrored.may_go_on.clear()
    running = asyncio.create_task(trivet.reembedding.run("n", OTHER.embedder))
    late = MemoryInput(id="late", text="A late turn about boats.", session_id="s", position=2)
    changes = [late, MemoryInput(id="m3", text="No recipe any more.")]
    for name in ("n", "fresh"):
        if name == "fresh":
            await trivet.put_namespace(name, OTHER)
            mirrored.may_go_on.set()
            await write(trivet, name)
        await trivet.delete(name, "m7")
        await trivet.add(name, changes)
        if name == "n":
            assert not running.done()
            assert "late" in (found := await best(trivet, "n"))
            assert set(found) <= {*before, "late"}
    await running
    await assert_as_if_written(trivet, pool, "n", "fresh")
    async with pool.connection() as conn:
        assert await (await conn.execute("select from new_embedding")).fetchall() == []


async def test_a_run_takes_up_what_an_interrupted_one_of_the_same_model_collected(
    trivet: Trivet, mirrored: Mirrored, pool: Pool
) -> None:
    before = await stored(trivet, pool, "n")

    def interrupt(done: int, _total: int) -> None:
        if done >= 64:
            raise KeyError

    with pytest.raises(KeyError):
        await trivet.reembedding.run("n", OTHER.embedder, report=interrupt)
    assert (await trivet.get_namespace("n")).settings == NamespaceSettings()
    after = await stored(trivet, pool, "n")
    assert all(np.array_equal(after[memory_id], both) for memory_id, both in before.items())
    await trivet.delete("n", "m1")  # of which nothing is left, then
    async with pool.connection() as conn:
        assert await (await conn.execute("select count(*) from new_embedding")).fetchall() == [(63,)]
    mirrored.embedded.clear()
    told: list[tuple[int, int]] = []
    memories = await trivet.reembedding.run("n", OTHER.embedder, report=lambda done, total: told.append((done, total)))
    probe = 1
    assert len(mirrored.embedded) == memories - 63 + probe
    assert (told[0], told[-1]) == ((63, memories), (memories, memories))
    # Back again, over a half-finished set that is useless, as it is from another model.
    await trivet.put_namespace("fresh", NamespaceSettings())
    await write(trivet, "fresh")
    await trivet.delete("fresh", "m1")
    with pytest.raises(KeyError):
        await trivet.reembedding.run("n", report=interrupt)
    await trivet.reembedding.run("n", "all-MiniLM-L6-v2")
    await assert_as_if_written(trivet, pool, "n", "fresh")


async def test_a_memory_that_was_embedded_before_is_embedded_again(trivet: Trivet, mirrored: Mirrored) -> None:
    """Its writer had its ordinal before the vectors were replaced."""
    allocate = namespaces.allocate_docs

    async def late(conn: Connection, namespace: Namespace, docs: int) -> range:
        found = await allocate(conn, namespace, docs)
        if namespace.generation == 0:
            await trivet.reembedding.run("n", OTHER.embedder)
        return found

    mirrored.embedded.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(namespaces, "allocate_docs", late)
        assert [result.status for result in await trivet.add("n", [MemoryInput(text="A sail.")])] == ["created"]
    assert mirrored.embedded[-1] == "A sail."


@pytest.mark.parametrize("large", [False, True])
async def test_another_process_compares_no_vectors_of_two_models(
    trivet: Trivet, mirrored: Mirrored, database_url: str, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    """Also a query that has its own vector already when those of the memories are replaced."""
    if large:
        monkeypatch.setattr(vector, "READ_BY_QUERY", 0)
        monkeypatch.setattr(vector, "EXACT_UP_TO", 0)
        monkeypatch.setattr(vector_index, "MOST_OUTSIDE", 0)
    async with Trivet.open(settings_for(database_url)) as other:
        before = await best(other, "n")
        search, calls = vector.VectorRetriever.search, 0

        async def replaced_meanwhile(self: vector.VectorRetriever, query: LegQuery) -> LegRanking:
            nonlocal calls
            calls += 1
            await query.embedding()
            if calls == 1:
                index = query.snapshot.index
                index.vectors.remove(np.flatnonzero(index.memories.alive.values))  # so that it reads the database
                await trivet.reembedding.run("n", OTHER.embedder)
            return await search(self, query)

        monkeypatch.setattr(vector.VectorRetriever, "search", replaced_meanwhile)
        assert await best(other, "n") == before
        assert calls == 2
        assert await best(other, "n") == before


async def test_vectors_that_are_not_in_the_index_yet_are_found_and_enter_it(
    trivet: Trivet, mirrored: Mirrored, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    await trivet.reembedding.run("n", OTHER.embedder)
    await trivet.add("n", [MemoryInput(id="new", text="A talk about boats again.")])
    query = HalfVector(await mirrored.embed_query("a talk about boats"))
    async with pool.connection() as conn:
        ns = (await namespaces.find(conn, "n")).ns

        async def found() -> tuple[list[int], int]:
            hits = await vectors.by_index(conn, ns, query, k=6, condition=seen_by(SearchOptions()), ef_search=64)
            unindexed = await (await conn.execute("select from memory where ns = %s and not indexed", [ns])).fetchall()
            return [doc for doc, _ in sorted(hits, key=lambda hit: -hit[1])][:6], len(unindexed)

        before, unindexed = await found()
        assert unindexed == (await trivet.get_namespace("n")).memories
        monkeypatch.setattr(vector_index, "MOST_OUTSIDE", 0)
        await trivet.maintain()
        assert await found() == (before, 0)


async def test_what_cannot_be_reembedded(trivet: Trivet, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotFound, match="no namespace 'absent'"):
        await trivet.reembedding.run("absent")
    await trivet.add("n", [MemoryInput(text="A sail.")])
    monkeypatch.setattr(multilingual, "PACKAGE", "not_installed_at_all")
    with pytest.raises(InvalidInput, match="multilingual"):
        await trivet.reembedding.run("n", OTHER.embedder)
    await trivet.put_namespace("empty", NamespaceSettings())
    assert await trivet.reembedding.run("empty") == 0
